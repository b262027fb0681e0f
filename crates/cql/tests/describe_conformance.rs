//! DESCRIBE against Cassandra's own answers (`tests/conformance/describe`).

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod support;

use std::fmt::Write as _;
use support::conformance::{cases, loaded, written};

const DATA: &str = include_str!("../../../tests/conformance/describe/data.cql");
const EXPECTED: &str = include_str!("../../../tests/conformance/describe/expected.txt");

/// Hex of a line's cells as text.
fn readable(answer: &str) -> String {
    let cell = |cell: &str| match cell.strip_prefix("0x") {
        None => cell.to_owned(),
        Some(hex) => {
            let digits: Vec<u8> =
                hex.bytes().map(|digit| (digit as char).to_digit(16).unwrap_or(0) as u8).collect();
            String::from_utf8_lossy(&digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect::<Vec<u8>>())
                .into()
        }
    };
    let line = |line: &str| match line.strip_prefix("row ") {
        None => line.to_owned(),
        Some(row) => row.split(" | ").map(cell).collect::<Vec<_>>().join(" | "),
    };
    answer.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn describe_answers_as_cassandra() {
    let server = loaded(1, DATA);
    let mut wrong = String::new();
    for (query, expected) in cases(EXPECTED) {
        let found = written(&server.select(query, None));
        if found != expected {
            _ = writeln!(
                wrong,
                "{query}\n--- expected\n{}\n--- found\n{}",
                readable(&expected),
                readable(&found)
            );
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    server.end();
}

#[test]
fn descriptions_come_in_pages() {
    let server = loaded(2, DATA);
    for query in ["DESC SCHEMA", "DESC FULL SCHEMA", "DESC KEYSPACES", "DESC TABLES", "DESC KEYSPACE system"]
    {
        let whole = server.select(query, None).expect("described").rows;
        assert!(!whole.is_empty());
        for size in [1, 2, 7, 100] {
            assert_eq!(server.paged(query, size), whole, "{query}");
        }
    }
    let state = server.select("DESC TABLES", Some((1, None))).expect("described").paging_state;
    server.run("CREATE TABLE t9 (k int PRIMARY KEY)");
    let error = server.select("DESC TABLES", Some((1, state.as_deref()))).err().expect("refused").to_string();
    assert!(error.starts_with("The schema has changed since the previous page"), "{error}");
    server.end();
}
