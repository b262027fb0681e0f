//! Compact tables of every form, rows larger than a frame and indexes of kind KEYS move to a real node of Cassandra, come back by a
//! rollback, and are pulled.

#![allow(clippy::unwrap_used, reason = "a test ends where its expectation does")]

#[path = "cluster/moving.rs"]
mod moving;

use std::time::{Duration, Instant};

use end_to_end::{Cql, Oracle, Server, tool};
use moving::{until_done, wait_for_tail};
use serde_json::Value;
use tempfile::TempDir;

/// Tables, with what a SELECT shows of them.
const TABLES: [(&str, &str, &str); 5] = [
    (
        "CREATE TABLE cm_ks.statics (k int PRIMARY KEY, a text, b int) WITH COMPACT STORAGE",
        "cm_ks.statics",
        "k, a, b, WRITETIME(a), WRITETIME(b)",
    ),
    (
        "CREATE TABLE cm_ks.keys (k int, c int, d int, PRIMARY KEY (k, c, d)) WITH COMPACT STORAGE",
        "cm_ks.keys",
        "k, c, d",
    ),
    (
        "CREATE TABLE cm_ks.dense (k int, c int, v text, PRIMARY KEY (k, c)) WITH COMPACT STORAGE AND CLUSTERING ORDER BY (c DESC)",
        "cm_ks.dense",
        "k, c, v, WRITETIME(v)",
    ),
    (
        "CREATE TABLE cm_ks.composites (k int, c int, d text, v text, PRIMARY KEY (k, c, d)) WITH COMPACT STORAGE",
        "cm_ks.composites",
        "k, c, d, v, WRITETIME(v)",
    ),
    (
        "CREATE TABLE cm_ks.large (k int PRIMARY KEY, a text, b text, c text, m map<int, text>)",
        "cm_ks.large",
        "k, WRITETIME(a), WRITETIME(b), WRITETIME(c), WRITETIME(m)",
    ),
];
const PATIENCE: Duration = Duration::from_secs(30);
/// Bytes of a value; four of them are more than a frame of 16 MiB.
const VALUE: usize = 5 << 20;

fn rows(cql: &Cql, table: &str, columns: &str) -> Vec<String> {
    let mut rows: Vec<String> =
        cql.rows(&format!("SELECT {columns} FROM {table}")).iter().map(|row| format!("{row:?}")).collect();
    rows.sort();
    rows
}

/// Both have the same rows, once what is not sent yet has been sent.
fn compare(one: &Cql, other: &Cql) {
    let began = Instant::now();
    for (_, table, columns) in TABLES {
        loop {
            let (of_one, of_other) = (rows(one, table, columns), rows(other, table, columns));
            if of_one == of_other {
                break;
            }
            assert!(began.elapsed() < PATIENCE, "{table}: {of_one:#?} {of_other:#?}");
        }
    }
    let large = |cql: &Cql| format!("{:?}", cql.rows("SELECT * FROM cm_ks.large"));
    assert!(large(one) == large(other), "the large values differ");
}

/// Writes of every kind, behind a number that makes their values others.
fn write(cql: &Cql, number: u32) {
    for k in 0..20 {
        let n = number + k;
        for text in [
            format!("INSERT INTO cm_ks.statics (k, a, b) VALUES ({n}, 'a{n}', {n})"),
            format!("INSERT INTO cm_ks.keys (k, c, d) VALUES ({k}, {n}, {n})"),
            format!("INSERT INTO cm_ks.dense (k, c, v) VALUES ({k}, {n}, 'v{n}')"),
            format!("INSERT INTO cm_ks.composites (k, c, d, v) VALUES ({k}, {n}, 'd', 'v{n}')"),
            // A row with fewer clustering values than columns.
            format!("INSERT INTO cm_ks.composites (k, c, v) VALUES ({k}, {n}, 'short{n}')"),
            format!("INSERT INTO cm_ks.keys (k, c) VALUES ({k}, {n})"),
        ] {
            cql.run(&text);
        }
    }
    for text in [
        format!("DELETE b FROM cm_ks.statics WHERE k = {number}"),
        format!("DELETE FROM cm_ks.statics WHERE k = {}", number + 1),
        format!("DELETE FROM cm_ks.keys WHERE k = 2 AND c = {} AND d = {}", number + 2, number + 2),
        format!("DELETE FROM cm_ks.dense WHERE k = 3 AND c = {}", number + 3),
        format!("UPDATE cm_ks.composites SET v = null WHERE k = 4 AND c = {}", number + 4),
        format!("DELETE FROM cm_ks.composites WHERE k = 5 AND c = {}", number + 5),
        "DELETE FROM cm_ks.composites WHERE k = 6".to_owned(),
    ] {
        cql.run(&text);
    }
}

#[test]
fn compact_tables_and_large_rows_go_to_a_node_and_come_back() {
    let oracle = Oracle::shared();
    let target = Cql::connect(oracle.address());
    target.run("DROP KEYSPACE IF EXISTS cm_ks");
    let folder = TempDir::with_prefix("helenus-move-").unwrap();
    let server = Server::start_in(folder, &[]);
    let data = server.data().to_str().unwrap().to_owned();
    let source = Cql::connect(server.address());
    source
        .run("CREATE KEYSPACE cm_ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    TABLES.iter().for_each(|(create, ..)| source.run(create));
    source.run("CREATE INDEX old_kind ON cm_ks.statics (b) USING 'KEYS'");
    write(&source, 0);
    for (column, letter) in [("a", "a"), ("b", "b"), ("c", "c"), ("m[1]", "d"), ("m[2]", "e")] {
        let value = letter.repeat(VALUE);
        source.run(&format!("UPDATE cm_ks.large SET {column} = '{value}' WHERE k = 1"));
    }
    let moving = |args: &[&str]| {
        let all: Vec<&str> = ["move"].iter().chain(args).copied().chain(["--data", &data]).collect();
        tool(&all)
    };
    let plan = moving(&["plan", "--to", oracle.address(), "--tables", "cm_ks", "--json"]);
    let plan: Value = serde_json::from_str(&plan).unwrap();
    assert_eq!(
        (plan["problems"].to_string(), plan["left_out"].to_string()),
        ("[]".into(), "{}".into()),
        "{plan}"
    );
    moving(&["start", "--to", oracle.address(), "--tables", "cm_ks"]);
    wait_for_tail(&data);
    write(&source, 100);
    wait_for_tail(&data);
    compare(&source, &target);
    assert_eq!(target.rows("SELECT k FROM cm_ks.statics WHERE b = 5").len(), 1);
    moving(&["verify"]);

    until_done(&["move", "cutover", "--data", &data]);
    // Connections are closed by a cut and by a rollback.
    write(&Cql::connect(server.address()), 50);
    until_done(&["move", "rollback", "--data", &data]);
    compare(&Cql::connect(server.address()), &target);
    moving(&["verify"]);
    moving(&["abort"]);

    let copy = TempDir::with_prefix("helenus-pull-").unwrap();
    let into = copy.path().join("data");
    tool(&["pull", oracle.address(), "--tables", "cm_ks", "--data", into.to_str().unwrap()]);
    let copied = Server::start_in(copy, &[]);
    compare(&Cql::connect(copied.address()), &target);
    target.run("DROP KEYSPACE cm_ks");
}
