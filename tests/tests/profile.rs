//! Tests `helenus profile` end to end: small rows in process and over CQL, its files, and incorrect answers.

use std::path::Path;
use std::process::{Command, Output};

use end_to_end::{Cql, Server};
use serde_json::Value;
use tempfile::TempDir;

const ROWS: [(&str, u64); 4] =
    [("small-row", 100), ("no-col-index", 1_200), ("five-thousand", 5_000), ("ten-thousand", 10_000)];
const ROW_NAMES: &str = "ten-thousand,small-row,no-col-index,five-thousand";

fn profile(args: &[&str]) -> Output {
    Command::new(end_to_end::binary()).arg("profile").args(args).output().expect("run helenus profile")
}

/// Runs a profile that must succeed, and returns its standard output.
fn measured(args: &[&str]) -> String {
    let output = profile(args);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "helenus profile {args:?}: {}\n{errors}", output.status);
    String::from_utf8(output.stdout).expect("text")
}

/// Runs a profile that must fail, and returns its message.
fn refused(args: &[&str]) -> String {
    let output = profile(args);
    assert!(!output.status.success(), "helenus profile {args:?} succeeded");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn json(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).expect("the results");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// Checks that the results have every case on every row, with plausible values.
fn check(results: &Value, is_probed: bool) {
    let cases = results["cases"].as_array().expect("cases");
    assert_eq!(cases.len(), 18 * ROWS.len());
    for case in cases {
        let (_, width) =
            ROWS.iter().find(|(name, _)| case["row"] == *name).expect("a row that was asked for");
        assert_eq!(case["width"], *width);
        let columns = case["columns"].as_u64().expect("columns");
        let is_spread =
            case["test"] == "names" && case["case"].as_str().is_some_and(|id| id.contains("-of-"));
        let expected = match (case["case"].as_str(), *width) {
            (Some("half-way"), 100) => 50,
            (Some("first-2-of-50" | "last-2-of-50" | "any-2-of-50"), width) => width.div_ceil(1_310) * 2,
            _ if is_spread => width.div_ceil(1_310),
            _ => 100,
        };
        assert_eq!(columns, expected, "{case}");
        let latency = ["min", "p50", "p80", "p95", "max"].map(|name| number(&case["latency_us"][name]));
        assert!(latency[0] > 0.0 && latency.is_sorted(), "{case}");
        let touched = &case["touched"];
        assert_eq!(touched.is_object(), is_probed, "{case}");
        if is_probed {
            assert_eq!(number(&touched["sstables"]), 1.0, "{case}");
            let blocks = number(&touched["blocks"]);
            assert!(blocks >= 1.0 && number(&touched["bytes"]) >= blocks, "{case}");
            assert!(number(&touched["rows_decoded"]) >= columns as f64, "{case}");
            assert!(number(&touched["blocks_read"]) == 0.0, "the warm-up has read it: {case}");
        }
    }
    assert_eq!(results["warm_ups"].as_array().map(Vec::len), Some(2 * ROWS.len()));
}

#[test]
fn in_process_every_case_is_measured_and_what_it_touched_counted() {
    let folder = TempDir::new().expect("a temporary directory");
    let [json_file, report] = ["a.json", "a.html"].map(|name| folder.path().join(name));
    let [json_path, report_path] = [&json_file, &report].map(|path| path.to_str().expect("a path in UTF-8"));
    let text = measured(&[
        "--in-process",
        "--rows",
        ROW_NAMES,
        "--repeats",
        "10",
        "--json",
        json_path,
        "--report",
        report_path,
    ]);
    let results = json(&json_file);
    check(&results, true);
    assert_eq!(results["loads"].as_array().map(Vec::len), Some(2 * ROWS.len()));
    assert_eq!((&results["reached"], &results["repeats"]), (&"in-process".into(), &10.into()));
    assert_eq!(text.matches("\nten-thousand ").count(), 18, "{text}");
    assert!(text.contains("100 columns by name, random col from 100 random pages"), "{text}");
    let page = std::fs::read_to_string(&report).expect("the report");
    assert!(page.matches("<polyline").count() > 30 && page.contains("prefers-color-scheme"), "no curves");
    for network in ["http:", "https:", "src=", "@import", "url("] {
        assert!(!page.contains(network), "the page loads something: {network}");
    }
}

#[test]
fn a_database_in_process_can_be_kept_for_the_next_run() {
    let folder = TempDir::new().expect("a temporary directory");
    let data = folder.path().join("data");
    let args = ["--in-process", "--data", data.to_str().expect("a path in UTF-8"), "--cases", "recent"];
    let run = |rows: &str| -> Value {
        let more = ["--rows", rows, "--repeats", "2", "--keep", "--json", "-"];
        let text = measured(&[&args[..], &more].concat());
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    };
    assert_eq!(run("small-row")["loads"].as_array().map(Vec::len), Some(2));
    let second = run("small-row,no-col-index");
    let loaded: Vec<&Value> =
        second["loads"].as_array().expect("loads").iter().map(|load| &load["row"]).collect();
    assert_eq!(loaded, ["no-col-index", "no-col-index"]);
}

#[test]
fn over_cql_every_case_is_measured_and_a_wrong_answer_fails_loudly() {
    let server = Server::start();
    let folder = TempDir::new().expect("a temporary directory");
    let path = |name: &str| folder.path().join(name);
    let data = server.data();
    let (first, second) = (path("first.json"), path("second.json"));
    let text = |path: &Path| path.to_str().expect("a path in UTF-8").to_owned();
    let (first_text, second_text, data) = (text(&first), text(&second), text(&data));
    let args = ["--cql", server.address(), "--rows", ROW_NAMES, "--repeats", "5"];
    let told = ["--server-data", &data, "--label", "the first run", "--json", &first_text];
    measured(&[&args[..], &told].concat());
    let results = json(&first);
    check(&results, false);
    assert_eq!(results["settled"]["sstables"], 2, "one SSTable a table: {}", results["settled"]);
    assert!(number(&results["settled"]["compact_s"]) > 0.0, "{}", results["settled"]);
    assert_eq!(results["subject"], "the first run");

    let untold = measured(&[&args[..], &["--keep", "--protocol", "5", "--json", &second_text]].concat());
    // A server on this machine is found by its address.
    assert!(untold.contains("Before: flushed and compacted, 2 SSTables."), "{untold}");
    check(&json(&second), false);
    assert_eq!(json(&second)["loads"], Value::Array(Vec::new()));

    let compared = measured(&["compare", &first_text, &second_text]);
    assert!(
        compared.starts_with("A  the first run, 5 queries a line; flushed and compacted, 2 SSTables"),
        "{compared}"
    );
    assert!(compared.contains(&format!("over {} lines", 18 * ROWS.len())), "{compared}");

    let cql = Cql::connect(server.address());
    let keep = [&args[..], &["--keep"]].concat();
    cql.run("UPDATE profile.reversed SET value = 'tampered' WHERE key = 'row-5000' AND name = '0000004990'");
    let message = refused(&keep);
    for expected in ["WRONG ANSWER", "reversed five-thousand", "column 9 ", "`tampered`", "--keep"] {
        assert!(message.contains(expected), "`{expected}` is missing: {message}");
    }
    cql.run("DELETE FROM profile.ascending WHERE key = 'row-1200' AND name = '0000001199'");
    let message = refused(&keep);
    assert!(message.contains("1199 columns instead of 1200"), "{message}");
}

#[test]
fn a_server_with_its_data_in_the_present_folder_or_in_memory_is_found_and_told_to_compact() {
    for args in [&[][..], &["--memory"]] {
        let server = Server::start_with(args);
        let data = server.data();
        let output = Command::new(end_to_end::binary())
            .current_dir(data.parent().expect("a folder"))
            .args(["profile", "--rows", "no-col-index", "--cases", "recent", "--repeats", "1"])
            .args(["--cql", server.address()])
            .output()
            .expect("run helenus profile");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && errors.contains("\ncompact "), "{args:?}: {errors}");
    }
}

#[test]
fn what_runs_after_the_load_is_named_with_the_figures() {
    let server = Server::start();
    let args = ["--cql", server.address(), "--rows", "small-row", "--cases", "recent", "--repeats", "1"];
    let text = measured(&[&args[..], &["--after-load", "true # flushes"]].concat());
    assert!(text.contains("SSTables, `true # flushes`."), "{text}");
    let message = refused(&[&args[..], &["--after-load", "false"]].concat());
    assert!(message.contains("--after-load: `false` ended with exit status: 1"), "{message}");
}

#[test]
fn wrong_use_says_what_is_right() {
    let message = refused(&[]);
    assert!(message.contains("--in-process") && message.contains("--host"), "{message}");
    assert!(refused(&["--in-process", "--rows", "huge"]).contains("ten-million"));
    assert!(refused(&["--in-process", "--keep"]).contains("--data"));
    let message = refused(&["compare", "no-such-file.json", "other.json"]);
    assert!(message.contains("no-such-file.json"), "{message}");
    let folder = TempDir::new().expect("a temporary directory");
    let file = folder.path().join("other.json");
    std::fs::write(&file, "{}").expect("write a file");
    let file = file.to_str().expect("a path in UTF-8");
    assert!(refused(&["compare", file, file]).contains("not what `helenus profile --json` writes"));
}
