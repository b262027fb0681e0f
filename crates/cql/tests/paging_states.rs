//! Paging states that come back with another statement: the pages that a Cassandra 5.0.9 gave for the same bytes.
//!
//! Generated ones beside a running Cassandra: `cargo xtask conformance --states --statements N`.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod support;

use helenus_cql::CqlError;
use support::{KEYSPACE, Server};

/// Pages that nothing here comes to.
const PAGES_MAX: usize = 20;

/// In the order of tokens the partitions are 1, 0, 2, 9 and 3, of rows 0, 1 and 2 but for 9, which has a static row alone.
fn server() -> Server {
    let server = Server::open(1);
    server.run(&format!(
        "CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
    ));
    for table in ["t", "i"] {
        server.run(&format!("CREATE TABLE {table} (k int, c int, s int static, v int, PRIMARY KEY (k, c))"));
    }
    server.run("CREATE INDEX ON i (v)");
    server.run("CREATE TABLE n (k int PRIMARY KEY, v int)");
    server.machine().run_until_idle();
    for k in 0..4 {
        for (table, c) in ["t", "i"].iter().flat_map(|table| [0, 1, 2].map(|c| (table, c))) {
            server.run(&format!("INSERT INTO {table} (k, c, s, v) VALUES ({k}, {c}, {k}, 0)"));
        }
        server.run(&format!("INSERT INTO n (k, v) VALUES ({k}, 0)"));
    }
    ["t", "i"].iter().for_each(|table| server.run(&format!("INSERT INTO {table} (k, s) VALUES (9, 9)")));
    server
}

/// A state as Cassandra writes it; -1 is no limit.
fn state(key: Option<u32>, row: Option<u32>, rows_left: i32, rows_left_in_partition: i32) -> Vec<u8> {
    let mut out = Vec::new();
    match key {
        None => out.push(0),
        Some(key) => out.extend([&[4][..], &key.to_be_bytes()].concat()),
    }
    match row {
        None => out.push(0),
        Some(row) => out.extend([&[6, 0, 4][..], &row.to_be_bytes()].concat()),
    }
    for rows in [rows_left, rows_left_in_partition] {
        match u8::try_from(rows) {
            Ok(rows) => out.push(rows),
            Err(_) => out.extend_from_slice(&[0xF0, 0x7F, 0xFF, 0xFF, 0xFF]),
        }
    }
    out
}

/// The pages from a state on: `1.2 0.0, 0.1` are a page of two rows and one of one.
fn pages(server: &Server, text: &str, size: u32, state: &[u8]) -> Result<String, CqlError> {
    let (mut pages, mut state) = (Vec::new(), Some(state.to_vec()));
    while let Some(at) = state {
        assert!(pages.len() < PAGES_MAX, "{text}: {pages:?}");
        let page = server.select(text, Some((size, Some(&at))))?;
        let value = |value: &Option<Vec<u8>>| match value {
            None => "-".to_owned(),
            Some(bytes) => bytes.iter().fold(0_u64, |value, byte| value << 8 | u64::from(*byte)).to_string(),
        };
        let row = |row: &Vec<Option<Vec<u8>>>| row.iter().map(value).collect::<Vec<_>>().join(".");
        pages.push(page.rows.iter().map(row).collect::<Vec<_>>().join(" "));
        state = page.paging_state;
    }
    Ok(pages.join(", "))
}

/// A statement, its page size, a state, and the pages of Cassandra.
type Case = (&'static str, u32, (Option<u32>, Option<u32>, i32, i32), &'static str);

/// A state of one partition names none; one of several partitions or of a range does.
const CARRIED: &[Case] = &[
    // To another partition, the other direction, other rows.
    ("SELECT k, c FROM t WHERE k = 2", 2, (Some(1), Some(1), -1, -1), "2.2"),
    ("SELECT k, c FROM t WHERE k = 2 ORDER BY c DESC", 2, (Some(1), Some(1), -1, -1), "2.0"),
    ("SELECT k, c FROM t WHERE k = 1 AND c > 0", 1, (None, Some(1), -1, -1), "1.2, "),
    ("SELECT k, c FROM t WHERE k = 1 AND c IN (0, 2)", 1, (None, Some(1), -1, -1), "1.2, "),
    ("SELECT k, c FROM t WHERE k = 1 AND c IN (0, 1)", 1, (None, Some(1), -1, -1), ""),
    ("SELECT k, c, s FROM t WHERE k = 9", 3, (None, Some(1), -1, -1), ""),
    ("SELECT k, c FROM t WHERE k = 1", 3, (None, None, -1, -1), "1.0 1.1 1.2, "),
    ("SELECT k, c FROM t WHERE k = 1", 3, (None, Some(1), -1, 0), ""),
    ("SELECT k, c FROM t WHERE k = 1", 3, (None, Some(1), 0, -1), ""),
    // To several keys.
    ("SELECT k, c FROM t WHERE k IN (1, 2)", 2, (None, Some(1), -1, -1), ""),
    ("SELECT k, c FROM t WHERE k IN (1, 2, 3)", 2, (Some(2), Some(1), -1, -1), "2.2 3.0, 3.1 3.2, "),
    ("SELECT k, c FROM t WHERE k IN (1, 3)", 2, (Some(2), Some(1), -1, -1), ""),
    ("SELECT k, c FROM t WHERE k IN (1, 2, 3)", 2, (Some(2), None, -1, -1), "2.0 2.1, 2.2 3.0, 3.1 3.2, "),
    (
        "SELECT k, c FROM t WHERE k IN (1, 2) PER PARTITION LIMIT 2",
        1,
        (Some(1), None, -1, 1),
        "1.0, 2.0, 2.1",
    ),
    // To a range, which may begin before its own start.
    ("SELECT k, c FROM t", 2, (Some(2), None, -1, -1), "9.- 3.0, 3.1 3.2, "),
    (
        "SELECT k, c FROM t WHERE token(k) > 0",
        3,
        (Some(1), Some(1), -1, -1),
        "1.2 0.0 0.1, 0.2 2.0 2.1, 2.2 9.- 3.0, 3.1 3.2",
    ),
    ("SELECT k, c FROM t WHERE token(k) <= token(2)", 2, (Some(2), Some(1), -1, -1), "2.2"),
    ("SELECT k, c FROM t WHERE token(k) <= token(2)", 2, (Some(2), None, -1, 0), ""),
    ("SELECT k, c, s FROM t", 3, (Some(9), Some(1), -1, -1), "3.0.3 3.1.3 3.2.3, "),
    ("SELECT k, v FROM n", 3, (Some(1), Some(1), -1, -1), "0.0 2.0 3.0, "),
    ("SELECT k, v FROM n WHERE k = 1", 3, (Some(1), Some(1), -1, -1), ""),
    // Its limits are those of the state, where there are pages.
    ("SELECT k, c FROM t LIMIT 3", 2, (Some(1), Some(1), 5, -1), "1.2 0.0, 0.1 0.2, 2.0"),
    ("SELECT k, c FROM t LIMIT 3", 3, (Some(1), Some(1), 5, -1), "1.0 1.1 1.2"),
    ("SELECT k, c FROM t LIMIT 3", 2, (Some(1), Some(1), 1, -1), "1.2"),
    ("SELECT k, c FROM t WHERE k = 1 PER PARTITION LIMIT 1", 3, (None, Some(0), -1, 2), "1.1"),
    // To what combines rows.
    ("SELECT count(*) FROM t", 2, (Some(1), Some(1), -1, -1), "11"),
    ("SELECT count(*) FROM t", 2, (Some(1), Some(1), 5, -1), "5"),
    ("SELECT count(*) FROM t WHERE k = 1", 2, (None, Some(1), -1, -1), "1"),
    ("SELECT count(*) FROM t WHERE k IN (0, 2)", 2, (None, Some(1), -1, -1), "0"),
    ("SELECT k, count(*) FROM t GROUP BY k", 2, (Some(1), Some(1), 2, -1), "1.1 0.3"),
    ("SELECT DISTINCT k FROM t", 3, (Some(1), Some(1), -1, -1), "1 0 2, 9 3"),
    ("SELECT DISTINCT k, s FROM t WHERE k = 1", 3, (Some(1), Some(1), -1, -1), "1.1"),
    // Through an index.
    ("SELECT k, c FROM i WHERE v = 0 AND k = 2", 3, (Some(2), Some(1), -1, -1), "2.2"),
    ("SELECT k, c FROM i WHERE v = 0 AND k = 2", 3, (None, Some(1), -1, -1), "2.2"),
    ("SELECT k, c FROM i WHERE v = 0", 1, (Some(2), Some(1), 2, -1), "2.2, 3.0"),
];

#[test]
fn a_state_means_what_it_means_to_cassandra_whatever_statement_it_comes_back_with() {
    let server = server();
    for flushed in [false, true] {
        if flushed {
            server.flush();
        }
        for (text, size, (key, row, rows_left, in_partition), wanted) in CARRIED {
            let state = state(*key, *row, *rows_left, *in_partition);
            let found = pages(&server, text, *size, &state).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(found, *wanted, "{text} in pages of {size} behind {key:?} {row:?}, flushed {flushed}");
        }
    }
    server.end();
}

#[test]
fn the_next_pages_may_ask_for_one_value_of_the_column_that_the_first_was_ordered_by() {
    let server = server();
    server.run("CREATE TABLE tasks (shard int, type int, id int, PRIMARY KEY (shard, type, id))");
    for row in 0..12 {
        server.run(&format!("INSERT INTO tasks (shard, type, id) VALUES (1, {}, {row})", row % 2));
    }
    let first =
        server.select("SELECT id FROM tasks WHERE shard = 1 ORDER BY type ASC", Some((2, None))).unwrap();
    let state = first.paging_state.expect("there is more");
    assert_eq!(
        pages(&server, "SELECT id FROM tasks WHERE shard = 1 AND type = 0", 3, &state).unwrap(),
        "4 6 8, 10"
    );
    server.end();
}

#[test]
fn a_state_that_can_be_none_of_the_statement_is_refused_and_keeps_the_connection() {
    let server = server();
    let refused = |text: &str, state: &[u8]| match pages(&server, text, 2, state) {
        Err(CqlError::Invalid(message)) => message,
        other => panic!("{text}: {other:?}"),
    };
    // One of a partition, for a range: Cassandra has an exception here.
    let message = refused("SELECT k, c FROM t", &state(None, Some(1), -1, -1));
    assert!(message.starts_with("Invalid value for the paging state: it is of one partition"), "{message}");
    // Rows whose values are too short, or too few.
    for mark in [&[2, 0, 4][..], &[3, 0, 4, 7], &[4, 0, 2, 7, 7], &[1, 0]] {
        let state = [&[4, 0, 0, 0, 1][..], mark, &[9, 9]].concat();
        let message = refused("SELECT k, c FROM t", &state);
        assert!(
            message.starts_with("Invalid value for the paging state: its row can be none of"),
            "{message}"
        );
    }
    // Behind the end of the range there is nothing.
    for in_partition in [0, -1] {
        let behind = state(Some(2), Some(1), -1, in_partition);
        assert_eq!(pages(&server, "SELECT k, c FROM t WHERE token(k) < token(2)", 2, &behind).unwrap(), "");
    }
    let other = state(Some(2), Some(1), -1, -1);
    assert_eq!(refused("DESCRIBE TABLES", &other), "Incompatible paging state");
    server.end();
}
