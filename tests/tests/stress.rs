//! Tests `helenus stress` end to end: every interface, a fixed rate, files of statements, results and pages, and the
//! display at a terminal.

use std::process::{Command, Output};

use end_to_end::{Cql, Server, Terminal};
use serde_json::Value;
use tempfile::TempDir;

/// Starts a server with Thrift RPC, and returns its address.
fn server() -> (Server, String) {
    let server = Server::start_with(&["--rpc", "127.0.0.1:0"]);
    let line = server.head().iter().find(|line| line.starts_with("rpc")).expect("the interface's address");
    let address = line.split_whitespace().nth(1).expect("an address").to_owned();
    (server, address)
}

fn stress(args: &[&str]) -> Output {
    Command::new(end_to_end::binary()).arg("stress").args(args).output().expect("run helenus stress")
}

/// Runs a stress that must succeed, and returns its standard output. No progress may be written to a pipe.
fn done(args: &[&str]) -> String {
    let output = stress(args);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "helenus stress {args:?}: {}\n{errors}", output.status);
    assert!(!errors.contains('\r'), "no progress on a pipe: {errors:?}");
    String::from_utf8(output.stdout).expect("text")
}

fn figures(args: &[&str]) -> Value {
    let text = done(&[args, &["--json"]].concat());
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Runs a stress that must fail, and returns its message and exit code.
fn refused(args: &[&str]) -> (String, Option<i32>) {
    let output = stress(args);
    assert!(!output.status.success(), "helenus stress {args:?} succeeded");
    (String::from_utf8_lossy(&output.stderr).into_owned(), output.status.code())
}

#[test]
fn the_four_tests_go_over_every_interface_and_are_set_side_by_side() {
    let (server, rpc) = server();
    let folder = TempDir::new().expect("a temporary directory");
    let [json, page] = ["a.json", "a.html"].map(|name| folder.path().join(name));
    let data = server.data();
    let [json_path, page_path, data] =
        [json.as_path(), &page, &data].map(|path| path.to_str().expect("a path in UTF-8"));
    let doors = ["--host", server.address(), "--rpc", &rpc, "--server-data", data];
    let files = [format!("--json={json_path}"), format!("--report={page_path}")];
    let args: Vec<&str> = ["interfaces"].iter().chain(&doors).copied().collect();
    let small = ["--rows", "2000", "--in-flight", "16", "--runs", "2", &files[0], &files[1]];
    let text = done(&[&args[..], &small].concat());
    for title in [
        "Insert 2,000 rows x 5 columns (no index)",
        "(an index on one)",
        "Counter increments",
        "Read 2,000 rows",
    ] {
        assert!(text.contains(title), "{title}: {text}");
    }
    let first_cell = |line: &str| line.trim_start().split("  ").next().unwrap_or_default().to_owned();
    let lines: Vec<String> = text.lines().map(first_cell).collect();
    for name in ["RPC", "CQL", "CQL prepared", "CQL 2 over RPC"] {
        assert_eq!(lines.iter().filter(|line| *line == name).count(), 4, "{name}: {text}");
    }
    let told: Value = serde_json::from_str(&std::fs::read_to_string(&json).expect("results")).expect("JSON");
    let runs = told["runs"].as_array().expect("runs");
    assert_eq!(runs.len(), 4 * 4 * 2);
    for run in runs {
        assert_eq!((&run["operations"], &run["errors"]), (&2000.into(), &serde_json::json!({})), "{run}");
    }
    let html = std::fs::read_to_string(&page).expect("the page");
    assert_eq!((html.matches("<section>").count(), html.contains("http")), (4, false));
    let counted = Cql::connect(server.address()).rows("SELECT \"C0\" FROM stress.counter1 LIMIT 1");
    assert_eq!(counted, [[Some(scylla::value::CqlValue::Counter(scylla::value::Counter(1)))]]);

    let text = done(&["compare", json_path, json_path]);
    assert_eq!((text.matches("1.00x").count() > 100, text.contains("alone")), (true, false), "{text}");
    for over in ["cql", "cql2"] {
        for kind in [&["find"][..], &["count", "--single"], &["insert"]] {
            let door = ["--host", server.address(), "--rpc", &rpc, "--over", over];
            let told = figures(&[kind, &door, &["--rows", "2000", "--operations", "300"]].concat());
            assert_eq!(told["operations"], 300, "{kind:?} over {over}: {told}");
            assert_eq!(told["interface"], over);
        }
    }
}

#[test]
fn a_fixed_rate_is_kept_and_counts_from_when_requests_were_due() {
    let (server, _) = server();
    let door = ["--host", server.address(), "--rows", "1000"];
    let told = figures(&[&["insert", "--fresh", "--rate", "500", "--operations", "300"], &door[..]].concat());
    assert_eq!((&told["operations"], &told["rate"]["asked_per_s"]), (&300.into(), &500.0.into()), "{told}");
    // 300 requests at 500 a second take at least 0.6 s on any machine.
    assert!(told["seconds"].as_f64() >= Some(0.598), "{told}");
    assert!(told["service_us"]["p50"].as_f64() <= told["latency_us"]["p50"].as_f64(), "{told}");
    assert_eq!(
        told["histogram"]
            .as_array()
            .expect("a histogram")
            .iter()
            .map(|bucket| bucket[1].as_u64().expect("a count"))
            .sum::<u64>(),
        300
    );
    let (message, code) = refused(&["read", "--rate", "0"]);
    assert!(message.contains("a number of requests a second above 0") && code == Some(2), "{message}");
}

#[test]
fn a_file_of_statements_runs_by_its_weights_and_its_mistakes_have_lines() {
    let (server, rpc) = server();
    let folder = TempDir::new().expect("a temporary directory");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("write a file");
        path.to_str().expect("a path in UTF-8").to_owned()
    };
    let shop = write("shop.toml", SHOP);
    let door = ["--host", server.address()];
    let told = figures(&[&["run", &shop, "--operations", "600"], &door[..]].concat());
    let statements = told["statements"].as_array().expect("statements");
    let of = |name: &str| {
        statements.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("{name}: {told}"))["operations"]
            .as_u64()
    };
    assert_eq!((of("order"), of("last orders"), of("everything")), (Some(300), Some(200), Some(100)));
    let cql = Cql::connect(server.address());
    let found = cql.rows("SELECT count(*) FROM shop.orders");
    assert_eq!(found, [[Some(scylla::value::CqlValue::BigInt(300))]]);

    for (name, change, message) in [
        ("a", ("weight = 3", "wieght = 3"), "a.toml:8: unknown field `wieght`"),
        ("b", ("what = ", "whatever = "), "b.toml:7: no value for the marker `what`, which is of type text"),
        ("c", ("FROM orders WHERE", "FORM orders WHERE"), "c.toml:12: the server refuses this:"),
        (
            "d",
            ("uniform = [1, 100]", "uniform = [1, 300]"),
            "d.toml:22: value `pieces`, of type tinyint: 1 to 300",
        ),
        ("e", ("[[statement]]", "[[statement]"), "e.toml:5: "),
        ("f", ("CREATE TABLE IF", "CREATE TABEL IF"), "f.toml:3: the server refuses this:"),
    ] {
        assert!(SHOP.contains(change.0), "{}", change.0);
        let file = write(&format!("{name}.toml"), &SHOP.replacen(change.0, change.1, 1));
        let (text, code) = refused(&[&["run", &file], &door[..]].concat());
        assert!(text.contains(message) && code == Some(2), "{message}: {text}");
    }
    let (text, _) = refused(&["run", &shop, "--rpc", &rpc]);
    assert!(text.contains("`stress run` goes over CQL prepared, not over RPC"), "{text}");
    // An answer with another number of rows than the file demands is incorrect.
    let file = write("g.toml", &SHOP.replace("weight = 2", "weight = 2\nrows = 7"));
    let (text, code) = refused(&[&["run", &file, "--operations", "60"], &door[..]].concat());
    assert!(text.contains("answers were not right") && code == Some(1), "{text}");
}

const SHOP: &str = r#"keyspace = "shop"
schema = [
  "CREATE TABLE IF NOT EXISTS orders (customer int, placed timeuuid, what text, pieces tinyint, tags set<text>, PRIMARY KEY (customer, placed))",
]
[[statement]]
name = "order"
cql = "INSERT INTO orders (customer, placed, what, pieces, tags) VALUES (?, ?, ?, :pieces, ?)"
weight = 3

[[statement]]
name = "last orders"
cql = "SELECT * FROM orders WHERE customer = :customer LIMIT 10"
weight = 2

[[statement]]
name = "everything"
cql = "SELECT count(*) FROM orders"
rows = 1

[values]
customer = { zipf = [1, 1000] }
pieces = { uniform = [1, 100] }
what = { uniform = [1, 5000], length = [10, 40] }
placed = { now = true }
tags = { choice = ["gift", "fragile", "express"], count = [0, 2] }
"#;

#[test]
fn on_a_terminal_each_second_has_its_line_and_ctrl_c_ends_with_the_figures() {
    let (server, _) = server();
    done(&["insert", "--host", server.address(), "--rows", "1000"]);
    let args = ["stress", "read", "--host", server.address(), "--rows", "1000", "--duration", "3"];
    let mut terminal = Terminal::start(&args);
    terminal.expect("read over CQL prepared on 127.0.0.1:");
    terminal.expect("second      ops/s  mean us      p50      p95      p99    p99.9      max  errors\n");
    let line = terminal.expect("\n");
    let words: Vec<&str> = line.split_whitespace().collect();
    assert_eq!((words.len(), words[0], words[8]), (9, "1", "0"), "{line}");
    terminal.expect("[########");
    terminal.expect("client us/op");
    let (_, code) = terminal.end();
    assert_eq!(code, 0);

    let forever = [&args[..6], &["--duration", "600"]].concat();
    let mut terminal = Terminal::start(&forever);
    terminal.expect("errors\n");
    terminal.expect("\n");
    terminal.keys("\x03");
    let told = terminal.expect("stopped by Ctrl-C: the figures are of what was done until then");
    assert!(told.contains("client us/op"), "{told}");
    assert_eq!(terminal.end().1, 1);
}

#[test]
fn what_cannot_be_done_is_said_with_what_to_do() {
    let folder = TempDir::new().expect("a temporary directory");
    let other = folder.path().join("other.json");
    std::fs::write(&other, "{\"a\": 1}").expect("write a file");
    let other = other.to_str().expect("a path in UTF-8");
    let (text, _) = refused(&["compare", other, other]);
    assert!(text.contains("is not what `helenus stress --json` writes"), "{text}");
    let (text, _) = refused(&["compare", "nowhere.json", other]);
    assert!(text.contains("cannot read nowhere.json"), "{text}");
    let (text, _) = refused(&["slice", "--over", "cql"]);
    assert!(text.contains("`stress slice` goes over CQL prepared or RPC, not over CQL"), "{text}");
    let (text, _) = refused(&["interfaces", "--interfaces", "rpc,cql"]);
    assert!(text.contains("--rpc HOST[:PORT]"), "{text}");
    let (text, code) = refused(&["read", "--over", "thrift"]);
    assert!(text.contains("possible values: rpc, cql, prepared, cql2") && code == Some(2), "{text}");
}
