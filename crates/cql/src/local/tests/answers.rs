//! Compares the answers to a series of statements with those of Cassandra 5.0.9.
//!
//! `setup.cql` is run first, then each statement of `cassandra_answers.txt`; the line after a statement is `ok` or the
//! error's code and text.

use super::harness::{Session, code};
use crate::error::CqlError;

/// Statements whose answers differ on purpose, and why.
const ELSEWISE: &[(&str, &str)] = &[
    // Cassandra fails with an internal error for these two.
    (
        "DELETE FROM wide WHERE p1 = 1 AND p2 = 'a' AND c1 > null",
        "2200 Invalid null value in condition for column c1",
    ),
    ("CREATE KEYSPACE cqlmod_x WITH replication = {}", "2300 Missing replication strategy class"),
];

#[test]
fn statements_are_answered_as_by_cassandra() {
    let mut session = Session::new(1);
    for statement in include_str!("setup.cql").lines().filter(|line| !line.is_empty()) {
        session.ok(statement);
    }
    session.ok("USE cqlmod");
    let lines: Vec<&str> =
        include_str!("cassandra_answers.txt").lines().filter(|line| !line.is_empty()).collect();
    let mut wrong = Vec::new();
    for pair in lines.chunks(2) {
        let [statement, expected] = pair else { panic!("a statement without an answer") };
        let found = match session.run(statement) {
            Ok(_) => "ok".to_owned(),
            Err(CqlError::AlreadyExists { keyspace, table, .. }) => format!("2400 {keyspace}.{table}"),
            Err(error) => format!("{} {}", code(&error), error.to_string().replace('\n', "\\n")),
        };
        session.ok("USE cqlmod");
        let elsewise = ELSEWISE.iter().find(|(text, _)| text == statement).map(|(_, answer)| *answer);
        if found != elsewise.unwrap_or(expected) {
            wrong.push(format!("{statement}\n    cassandra: {expected}\n    here:      {found}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), lines.len() / 2, wrong.join("\n"));
}
