//! `helenus move verify` names every kind of difference, has no false alarm under load, and repairs what this server's cells win;
//! `helenus pull` brings a table with the same cells, masked and as a sample.

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use end_to_end::{Cql, Server, binary, refused, tool};
use serde_json::Value;
use tempfile::TempDir;

use crate::moving::wait_for_tail;
use crate::ring::Ring;

const KINDS: &str = "vr_ks.kinds";
/// Rows of the table that is written to during a comparison.
const BUSY: usize = 200;
/// Clustering keys that are written to during a comparison, each in seven partitions: so many that a row rests for longer than the tail
/// lags on a busy machine. A row that never rests cannot be compared, and `verify` says so.
const CHANGING: usize = 3_000;
/// So many writes are made before the writer waits for the target to have them all: it must not get ahead of the tail without end.
const AHEAD: usize = 500;
/// Seconds by which a TTL may differ between two reads.
const TTL_SLACK_S: i64 = 3;

const SCHEMA: [&str; 4] = [
    "CREATE KEYSPACE vr_ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    "CREATE TYPE vr_ks.place (street text, number int)",
    "CREATE TABLE vr_ks.kinds (p int, c int, st int static, sm map<int, text> static, a int, b text, m map<text, int>, s set<int>, \
     l list<text>, u place, f frozen<list<int>>, PRIMARY KEY (p, c))",
    "CREATE TABLE vr_ks.busy (p int, c int, v text, m map<int, int>, PRIMARY KEY (p, c))",
];

/// What is done at the target, and what the difference says: by row, what is named.
const CHANGES: [(&str, &str, &str); 13] = [
    (
        "UPDATE {t} USING TIMESTAMP 5000 SET a = 2 WHERE p = 1 AND c = 1",
        "p = 1, c = 1",
        "a: 1, timestamp 1000 here, 2, timestamp 5000 at the target",
    ),
    (
        "UPDATE {t} USING TIMESTAMP 1001 SET b = 'b' WHERE p = 2 AND c = 1",
        "p = 2, c = 1",
        "b: 'b', timestamp 1000 here, 'b', timestamp 1001",
    ),
    ("UPDATE {t} USING TIMESTAMP 1001 AND TTL 9000 SET b = 'b' WHERE p = 3 AND c = 1", "p = 3, c = 1", "TTL"),
    (
        "DELETE FROM {t} USING TIMESTAMP 5000 WHERE p = 4 AND c = 1",
        "p = 4, c = 1",
        "the target does not have the row",
    ),
    (
        "INSERT INTO {t} (p, c) VALUES (5, 99) USING TIMESTAMP 5000",
        "p = 5, c = 99",
        "only the target has the row",
    ),
    (
        "UPDATE {t} USING TIMESTAMP 5000 SET s = s + {7} WHERE p = 6 AND c = 1",
        "p = 6, c = 1",
        "s{7}: nothing here, timestamp 5000",
    ),
    (
        "DELETE s[1] FROM {t} USING TIMESTAMP 5000 WHERE p = 7 AND c = 1",
        "p = 7, c = 1",
        "s{1}: timestamp 1000 here, nothing",
    ),
    (
        "UPDATE {t} USING TIMESTAMP 5000 SET m['x'] = 9 WHERE p = 8 AND c = 1",
        "p = 8, c = 1",
        "m['x']: 1, timestamp 1000 here, 9",
    ),
    (
        "UPDATE {t} USING TIMESTAMP 5000 SET l = l + ['z'] WHERE p = 9 AND c = 1",
        "p = 9, c = 1",
        "l[2]: nothing here, 'z'",
    ),
    (
        "UPDATE {t} USING TIMESTAMP 5000 SET u.number = 9 WHERE p = 10 AND c = 1",
        "p = 10, c = 1",
        "u.number: 4, timestamp 1000 here, 9",
    ),
    (
        "UPDATE {t} USING TIMESTAMP 5000 SET st = 9 WHERE p = 11",
        "p = 11, static",
        "st: 5, timestamp 1000 here, 9",
    ),
    (
        "DELETE a FROM {t} USING TIMESTAMP 5000 WHERE p = 12 AND c = 1",
        "p = 12, c = 1",
        "a: 1, timestamp 1000 here, nothing at the target",
    ),
    (
        "UPDATE {t} USING TIMESTAMP 5000 SET f = [1, 2, 3] WHERE p = 13 AND c = 1",
        "p = 13, c = 1",
        "f: [1, 2]",
    ),
];

pub fn passes(ring: &Ring) {
    let folder = TempDir::with_prefix("helenus-verify-").expect("a temporary directory");
    let server = Server::start_in(folder, &[]);
    let data = server.data().to_str().expect("a path in UTF-8").to_owned();
    let (source, target) = (Cql::connect(server.address()), Cql::connect(&ring.address(1)).at_all());
    target.run("DROP KEYSPACE IF EXISTS vr_ks");
    SCHEMA.iter().for_each(|text| source.run(text));
    fill(&source);
    assert!(refused(&["move", "verify", "--data", &data]).contains("no move is under way"));
    tool(&["move", "start", "--to", &ring.address(1), "--tables", "vr_ks", "--data", &data]);
    wait_for_tail(&data);

    let clean = verify(&data, &[]);
    assert!(clean.is_ok(), "{clean:?}");
    let rows: Vec<u64> = tables(clean.as_ref().unwrap_or_else(|report| report))
        .iter()
        .map(|table| number(table, "rows"))
        .collect();
    // Each partition has a static row beside its two rows; the deleted row is not seen.
    assert_eq!(rows, [BUSY as u64, 14 * 3], "{clean:?}");
    let wrong = refused(&["move", "verify", "--tables", "vr_ks.nothing", "--data", &data]);
    assert!(wrong.contains("vr_ks.nothing is no table"), "{wrong}");

    finds_nothing_under_load((&source, &target), &data);
    names_what_is_newer_there(&target, &data);
    repairs_what_is_older_there(&target, &data);
    pulls(ring, &target);
    tool(&["move", "abort", "--data", &data]);
    target.run("DROP KEYSPACE vr_ks");
}

fn fill(cql: &Cql) {
    for p in 1..=14 {
        for c in 1..=2 {
            cql.run(&format!(
                "INSERT INTO {KINDS} (p, c, a, b, m, s, l, u, f) VALUES ({p}, {c}, 1, 'b', {{'x': 1, 'y': 2}}, {{1, 2}}, ['l', 'm'], \
                 {{street: 's', number: 4}}, [1, 2]) USING TIMESTAMP 1000"
            ));
        }
        cql.run(&format!("UPDATE {KINDS} USING TIMESTAMP 1000 SET st = 5, sm = {{1: 'sm'}} WHERE p = {p}"));
        cql.run(&format!(
            "UPDATE {KINDS} USING TIMESTAMP 1500 AND TTL 80000 SET m['t'] = 3, a = 1 WHERE p = {p} AND c = 2"
        ));
        cql.run(&format!("INSERT INTO {KINDS} (p, c, a) VALUES ({p}, 3, 1) USING TIMESTAMP 1000"));
        cql.run(&format!("DELETE FROM {KINDS} USING TIMESTAMP 2000 WHERE p = {p} AND c = 3"));
    }
    for at in 0..BUSY {
        cql.run(&format!("INSERT INTO vr_ks.busy (p, c, v) VALUES ({}, {at}, 'v')", at % 7));
    }
}

/// The report; an error if the command ends with one.
fn verify(data: &str, args: &[&str]) -> Result<Value, Value> {
    let all: Vec<&str> = ["move", "verify", "--json", "--data", data].iter().chain(args).copied().collect();
    let output = Command::new(binary()).args(all).output().expect("run helenus");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let report = serde_json::from_str(&text)
        .unwrap_or_else(|error| panic!("{error}: {text}{}", String::from_utf8_lossy(&output.stderr)));
    if output.status.success() { Ok(report) } else { Err(report) }
}

fn tables(report: &Value) -> Vec<Value> {
    let mut tables = report["tables"].as_array().expect("tables").clone();
    tables.sort_by_key(|table| table["table"].to_string());
    for table in &tables {
        assert_eq!(table["error"], Value::Null, "{table}");
    }
    tables
}

fn number(table: &Value, name: &str) -> u64 {
    table[name].as_u64().unwrap_or_else(|| panic!("{name} in {table}"))
}

/// The rows that differ in words, and those that still do.
fn differences(report: &Value) -> (Vec<String>, Vec<String>) {
    let texts = |table: &Value, name: &str| -> Vec<String> {
        let all = table[name].as_array().expect("a list");
        all.iter().map(|text| text.as_str().expect("a text").to_owned()).collect()
    };
    let tables = tables(report);
    let of = |name: &str| tables.iter().flat_map(|table| texts(table, name)).collect();
    (of("differences"), of("left"))
}

/// Rows that change all the time are no difference.
fn finds_nothing_under_load((source, target): (&Cql, &Cql), data: &str) {
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut written = 0_usize;
            while !ends.load(Ordering::Relaxed) {
                let (p, c) = (written % 7, written % CHANGING);
                match written % 5 {
                    0 => source.run(&format!("DELETE FROM vr_ks.busy WHERE p = {p} AND c = {c}")),
                    1 => source
                        .run(&format!("UPDATE vr_ks.busy SET m[{written}] = 1 WHERE p = {p} AND c = {c}")),
                    _ => source
                        .run(&format!("INSERT INTO vr_ks.busy (p, c, v) VALUES ({p}, {c}, '{written}')")),
                }
                written += 1;
                if written.is_multiple_of(AHEAD) {
                    source.run(&format!("INSERT INTO vr_ks.busy (p, c, v) VALUES (7, 0, '{written}')"));
                    let is_there = || {
                        let found = target.rows("SELECT v FROM vr_ks.busy WHERE p = 7 AND c = 0");
                        format!("{found:?}").contains(&format!("\"{written}\""))
                    };
                    while !ends.load(Ordering::Relaxed) && !is_there() {
                        std::thread::yield_now();
                    }
                }
            }
            written
        });
        for _ in 0..3 {
            let report = verify(data, &["--tables", "vr_ks.busy"]);
            let is_clean = report.is_ok();
            if !is_clean {
                ends.store(true, Ordering::Relaxed);
            }
            assert!(is_clean, "{report:?}");
        }
        ends.store(true, Ordering::Relaxed);
        assert!(writer.join().expect("the writer") > 0);
    });
}

fn names_what_is_newer_there(target: &Cql, data: &str) {
    for (text, ..) in CHANGES {
        target.run(&text.replace("{t}", KINDS));
    }
    for args in [&["--tables", KINDS][..], &["--tables", KINDS, "--repair"]] {
        let report = verify(data, args).expect_err("differences");
        let (found, left) = differences(&report);
        for (text, row, words) in CHANGES {
            let named =
                found.iter().filter(|line| line.starts_with(&format!("{row}: ")) && line.contains(words));
            assert_eq!(named.count(), 1, "{text}: {row}: {words} in {found:#?}");
        }
        assert_eq!(found.len(), CHANGES.len(), "{found:#?}");
        // All of it is newer there, and stays.
        let wanted = if args.contains(&"--repair") { CHANGES.len() } else { 0 };
        assert_eq!(left.len(), wanted, "{left:#?}");
    }
    let words = refused(&["move", "verify", "--tables", KINDS, "--data", data]);
    assert!(words.contains("13 rows differing"), "{words}");
}

/// What was lost there, and what is older there.
fn repairs_what_is_older_there(target: &Cql, data: &str) {
    target.run(&format!("TRUNCATE {KINDS}"));
    for text in [
        "INSERT INTO {t} (p, c, a, b) VALUES (1, 1, 77, 'older') USING TIMESTAMP 500",
        "INSERT INTO {t} (p, c, a) VALUES (2, 3, 1) USING TIMESTAMP 1000",
        "UPDATE {t} USING TIMESTAMP 400 SET st = 3 WHERE p = 3",
        "UPDATE {t} USING TIMESTAMP 400 SET l = ['other'] WHERE p = 4 AND c = 1",
    ] {
        target.run(&text.replace("{t}", KINDS));
    }
    let report = verify(data, &["--tables", KINDS, "--repair"]);
    let report = report.unwrap_or_else(|report| panic!("not all is repaired: {report}"));
    let table = &tables(&report)[0];
    assert_eq!((number(table, "differing"), number(table, "repaired")), (14 * 3 + 1, 14 * 3 + 1), "{report}");
    let again = verify(data, &[]);
    assert!(again.is_ok(), "{again:?}");
}

fn pulls(ring: &Ring, target: &Cql) {
    let folder = || TempDir::with_prefix("helenus-pull-").expect("a temporary directory");
    let (whole_folder, part_folder) = (folder(), folder());
    let (whole, part) = (whole_folder.path().join("data"), part_folder.path().join("data"));
    let pull = |into: &std::path::Path, args: &[&str]| {
        let into = into.to_str().expect("a path in UTF-8");
        let from = ring.address(2);
        let all: Vec<&str> = ["pull", &from, "--data", into, "--json"].iter().chain(args).copied().collect();
        let report: Value = serde_json::from_str(&tool(&all)).expect("a report");
        report["tables"]
            .as_array()
            .expect("tables")
            .iter()
            .map(|table| number(table, "rows"))
            .collect::<Vec<_>>()
    };
    let all = target.rows(&format!("SELECT p FROM {KINDS}")).len();
    assert_eq!(pull(&whole, &["--tables", KINDS, "--consistency", "quorum"]), [all as u64]);
    let sampled = pull(&part, &["--tables", "vr_ks.busy", "--sample", "30%"]);
    let busy = target.rows("SELECT p FROM vr_ks.busy").len();
    assert!(sampled[0] < busy as u64, "{sampled:?} of {busy}");
    let masked = pull(
        &part,
        &[
            "--tables",
            KINDS,
            "--partitions",
            "1; 2",
            "--mask",
            "vr_ks.kinds.b=hash",
            "--mask",
            "vr_ks.kinds.a=null",
        ],
    );
    assert_eq!(masked, [4]);
    let into = part.to_str().expect("a path in UTF-8");
    let wrong = refused(&[
        "pull",
        &ring.address(1),
        "--tables",
        KINDS,
        "--mask",
        "vr_ks.kinds.p=null",
        "--data",
        into,
    ]);
    assert!(wrong.contains("can only be hashed"), "{wrong}");
    let wrong = refused(&["pull", &ring.address(1), "--tables", "vr_ks.nothing", "--data", into]);
    assert!(wrong.contains("no table vr_ks.nothing"), "{wrong}");

    let copy = Server::start_in(whole_folder, &[]);
    let here = Cql::connect(copy.address());
    for column in ["st", "a", "b", "f"] {
        let text = format!("SELECT p, c, {column}, WRITETIME({column}), TTL({column}) FROM {KINDS}");
        let (one, other) = (here.rows(&text), target.rows(&text));
        assert_eq!(one.len(), other.len());
        for (one, other) in one.iter().zip(&other) {
            assert_eq!(one[..4], other[..4], "{column}");
            let ttl = |row: &[Option<_>]| digits(&format!("{:?}", row[4]));
            assert!((ttl(one) - ttl(other)).abs() <= TTL_SLACK_S, "{one:?} {other:?}");
        }
    }
    for column in ["sm", "m", "s", "l", "u"] {
        let text = format!("SELECT p, c, {column} FROM {KINDS}");
        assert_eq!(here.rows(&text), target.rows(&text), "{column}");
        let (one, other) = (here.times_of_elements(column, KINDS), target.times_of_elements(column, KINDS));
        for (one, other) in one.iter().zip(&other) {
            assert_eq!(one.0, other.0, "{column}");
            assert_eq!(shape(&format!("{:?}", one.1)), shape(&format!("{:?}", other.1)), "{column}");
        }
    }
    // Into a running server; the rows join those that are there.
    let data = copy.data().to_str().expect("a path in UTF-8").to_owned();
    let joined =
        tool(&["pull", &ring.address(3), "--tables", "vr_ks.busy", "--where", "v = 'v'", "--data", &data]);
    assert!(joined.starts_with("vr_ks.busy: "), "{joined}");
    let wanted = target.rows("SELECT p, c, v, WRITETIME(v) FROM vr_ks.busy WHERE v = 'v' ALLOW FILTERING");
    assert_eq!(here.rows("SELECT p, c, v, WRITETIME(v) FROM vr_ks.busy"), wanted);

    let masked = Server::start_in(part_folder, &[]);
    let masked = Cql::connect(masked.address());
    let rows = masked.rows(&format!("SELECT a, b FROM {KINDS}"));
    assert_eq!(rows.len(), 4);
    for row in &rows {
        let (a, b) = (format!("{:?}", row[0]), format!("{:?}", row[1]));
        assert!(
            a == "None" && !b.contains("\"b\"") && b.len() > 32 && b == format!("{:?}", rows[0][1]),
            "{a} {b}"
        );
    }
}

/// The first number of a text; 0 without one.
fn digits(text: &str) -> i64 {
    text.split(|sign: char| !sign.is_ascii_digit()).find_map(|part| part.parse().ok()).unwrap_or(0)
}

/// A text without its numbers, which change with the time.
fn shape(text: &str) -> String {
    text.chars().filter(|sign| !sign.is_ascii_digit()).collect()
}
