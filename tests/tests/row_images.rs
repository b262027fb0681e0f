//! The feed of changes with the row before and after each change (`cdc_row_images`): the rows of the events form a chain, which ends
//! at the table.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::thread;

use end_to_end::{Cql, Server, draw, tool};
use scylla::value::CqlValue;
use serde_json::{Value, json};
use tempfile::TempDir;

const TABLE: &str = "CREATE TABLE feed.t (p int, c int, v text, n int, s text static, m map<text, int>, st set<text>, \
                     PRIMARY KEY (p, c)) WITH cdc = true";
const WRITERS: usize = 4;

fn server() -> Server {
    let folder = TempDir::with_prefix("helenus-images-").expect("a temporary directory");
    let config = folder.path().join("helenus.yaml");
    let settings = "commitlog_segment_size: 1MiB\nmemtable_heap_space: 1MiB\nmax_mutation_size: 256KiB\ncdc_row_images: feed.t\n";
    fs::write(&config, settings).expect("a file");
    let config = config.to_str().expect("a path in UTF-8").to_owned();
    let server = Server::start_in(folder, &["--config", &config]);
    let session = Cql::connect(server.address());
    session
        .run("CREATE KEYSPACE feed WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    session.run(TABLE);
    session.run("CREATE TABLE feed.plain (p int PRIMARY KEY, v int) WITH cdc = true");
    server
}

fn changes(data: &Path, args: &[&str]) -> Vec<Value> {
    let data = data.to_str().expect("a path in UTF-8");
    let all: Vec<&str> =
        ["changes"].into_iter().chain(args.iter().copied()).chain(["--json", "--data", data]).collect();
    tool(&all).lines().map(|line| serde_json::from_str(line).expect("an event")).collect()
}

/// A statement that changes one row, or the static row.
fn statement(draw: &mut draw::Draw) -> String {
    let (p, c, n) = (draw.below(3), draw.below(3), draw.below(100));
    let row = format!("WHERE p = {p} AND c = {c}");
    match draw.below(10) {
        0 => format!("INSERT INTO feed.t (p, c, v, m) VALUES ({p}, {c}, 'v{n}', {{'a': {n}}})"),
        1 => format!("UPDATE feed.t SET v = 'u{n}', n = {n} {row}"),
        2 => format!("UPDATE feed.t SET m['k{}'] = {n}, st = st + {{'e{}'}} {row}", n % 4, n % 5),
        3 => format!("UPDATE feed.t SET st = st - {{'e{}'}}, m['k{}'] = null {row}", n % 5, n % 4),
        4 => format!("DELETE n, st FROM feed.t {row}"),
        5 => format!("DELETE FROM feed.t {row}"),
        6 => format!("UPDATE feed.t SET n = {n} {row} IF v = 'v{n}'"),
        7 => format!("INSERT INTO feed.t (p, c, n) VALUES ({p}, {c}, {n}) IF NOT EXISTS"),
        8 => format!("UPDATE feed.t SET s = 's{n}' WHERE p = {p}"),
        // An older write, which changes nothing where a newer one is, or a deletion.
        _ => format!("UPDATE feed.t USING TIMESTAMP {n} SET v = 'old', s = 'old', m['k1'] = 1 {row}"),
    }
}

#[test]
fn the_row_before_a_change_is_the_one_after_the_last_across_kills_and_flushes() {
    let mut server = server();
    changes(&server.data(), &["feed.t", "--consumer", "all", "--from", "oldest", "--limit", "1"]);
    let seed = 5;
    for round in 0..draw::rounds(4) {
        thread::scope(|scope| {
            for writer in 0..WRITERS {
                let address = server.address();
                scope.spawn(move || {
                    let session = Cql::connect(address);
                    let mut draw = draw::Draw::new("row images", (seed + round * WRITERS + writer) as u64);
                    (0..60).for_each(|_| session.run(&statement(&mut draw)));
                });
            }
        });
        match round % 3 {
            0 => drop(server.admin(&["flush"])),
            1 => {
                server.kill();
                server.restart();
            }
            _ => {}
        }
    }
    let events = changes(&server.data(), &["feed.t", "--consumer", "all"]);
    let mut rows: BTreeMap<String, Value> = BTreeMap::new();
    let mut written = 0;
    for event in events.iter().filter(|event| event["op"] != "schema") {
        assert_eq!(event["row_images"], json!(true), "{event}");
        let after = rows.insert(format!("{} {}", event["key"], event["static"]), event["after"].clone());
        assert_eq!(event["before"], after.unwrap_or_default(), "{event}");
        written += 1;
    }
    assert!(written > 200, "{written} events");
    // What the chains end with is what is there.
    let session = Cql::connect(server.address());
    for answer in session.rows("SELECT JSON p, c, v, n, m, st FROM feed.t") {
        let Some(CqlValue::Text(text)) = &answer[0] else { panic!("{answer:?}") };
        let mut row: Value = serde_json::from_str(text).expect("JSON");
        let columns = row.as_object_mut().expect("an object");
        let key = json!({"p": columns.remove("p"), "c": columns.remove("c")});
        // A partition with nothing but its static row is a row here.
        if key["c"] != Value::Null {
            assert_eq!(rows.remove(&format!("{key} null")), Some(row.clone()), "{key}");
        }
    }
    rows.retain(|key, row| key.ends_with(" null") && *row != Value::Null);
    assert!(rows.is_empty(), "not in the table: {rows:?}");
}

#[test]
fn a_page_may_end_within_a_batch_and_other_tables_record_nothing() {
    let server = server();
    let session = Cql::connect(server.address());
    let from = changes(&server.data(), &["feed.t", "--from", "oldest"])[0]["position"].clone();
    let batch = |value: &str| {
        let one = |c| format!("INSERT INTO feed.t (p, c, v) VALUES (0, {c}, '{value}');");
        let other = "INSERT INTO feed.plain (p, v) VALUES (1, 1);";
        session.run(&format!("BEGIN BATCH {}{}{other}{} APPLY BATCH", one(1), one(2), one(3)));
    };
    batch("first");
    batch("second");
    let all = changes(&server.data(), &["feed.t", "--from", from.as_str().expect("a position")]);
    let before: Vec<&Value> = all.iter().map(|event| &event["before"]["v"]).collect();
    let (none, first) = (Value::Null, json!("first"));
    assert_eq!(before, [&none, &none, &none, &first, &first, &first]);
    // One by one, each read from the position of the one before.
    let mut position = from;
    for event in &all {
        let from = position.as_str().expect("a position").to_owned();
        let one = changes(&server.data(), &["feed.t", "--from", &from, "--limit", "1"]);
        assert_eq!(one, std::slice::from_ref(event));
        position = event["position"].clone();
    }
    let plain = changes(&server.data(), &["feed.plain", "--from", "oldest"]);
    assert!(plain.iter().all(|event| event.get("row_images").is_none()), "{plain:?}");
}

#[test]
fn names_that_are_none_refuse_the_start() {
    let refused = std::process::Command::new(end_to_end::binary())
        .args(["serve", "--memory", "--listen", "127.0.0.1:0", "--set", "cdc_row_images=feed.t.x"])
        .output()
        .expect("it starts");
    let text = String::from_utf8_lossy(&refused.stderr);
    assert!(
        !refused.status.success() && text.contains("cdc_row_images") && text.contains("feed.t.x"),
        "{text}"
    );
}
