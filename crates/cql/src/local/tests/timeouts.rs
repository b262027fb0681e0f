//! `USING TIMEOUT` and `BYPASS CACHE`: what they accept, and that a statement ends at its own time. The clock is this
//! machine's, since a nanosecond has always passed on it.

use super::harness::{Rows, Session, code, request};
use crate::backend::{Backend, Batch, BatchEntry, BatchKind, BoundValue, Identity, Values};
use crate::error::CqlError;
use crate::local::{LocalBackend, LocalOptions};
use helenus_engine::{Database, DatabaseOptions};
use std::sync::Arc;

struct Timed(Arc<LocalBackend>);

impl Timed {
    fn new() -> Timed {
        let host = helenus_host::memory::host();
        let (database, _) = Database::open(host, DatabaseOptions::new("/db")).unwrap();
        let timed = Timed(LocalBackend::new(database, LocalOptions::default()));
        for statement in [
            "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
            "CREATE TABLE ks.t (k int PRIMARY KEY, v int)",
            "CREATE TABLE ks.c (k int PRIMARY KEY, n counter)",
            "INSERT INTO ks.t (k, v) VALUES (1, 1)",
        ] {
            timed.run(statement, &[]).unwrap();
        }
        timed
    }

    fn run(&self, statement: &str, values: &[BoundValue<'_>]) -> Result<Vec<Vec<String>>, CqlError> {
        let identity = Identity::default();
        let mut rows = Rows::default();
        self.0.query(statement, &request(&identity, None, values), &mut rows)?;
        Ok(rows.rows().to_vec())
    }

    fn code(&self, statement: &str) -> &'static str {
        self.run(statement, &[]).map_or_else(|error| code(&error), |_| "done")
    }
}

#[test]
fn a_statement_whose_time_has_passed_ends_and_has_written_nothing() {
    let timed = Timed::new();
    for statement in [
        "INSERT INTO ks.t (k, v) VALUES (1, 2) USING TIMEOUT 1ns",
        "INSERT INTO ks.t (k, v) VALUES (2, 2) IF NOT EXISTS USING TTL 5 AND TIMEOUT 1ns",
        "UPDATE ks.t USING TIMEOUT 1ns SET v = 2 WHERE k = 1",
        "UPDATE ks.t USING TIMEOUT 1ns SET v = 2 WHERE k = 1 IF v = 1",
        "UPDATE ks.c USING TIMEOUT 1ns SET n = n + 1 WHERE k = 1",
        "DELETE FROM ks.t USING TIMESTAMP 9999999999999999 AND TIMEOUT 1ns WHERE k = 1",
        "DELETE FROM ks.t USING TIMEOUT 1ns AND TIMESTAMP 9999999999999999 WHERE k = 1",
        "BEGIN BATCH USING TIMEOUT 1ns INSERT INTO ks.t (k, v) VALUES (1, 2); APPLY BATCH",
    ] {
        assert_eq!(timed.code(statement), "1100", "{statement}");
    }
    for statement in
        ["SELECT v FROM ks.t USING TIMEOUT 1ns", "SELECT v FROM ks.t WHERE k = 1 USING TIMEOUT 1ns"]
    {
        assert_eq!(timed.code(statement), "1200", "{statement}");
    }
    assert_eq!(timed.run("SELECT k, v FROM ks.t", &[]).unwrap(), [["1", "1"]]);
    assert!(timed.run("SELECT * FROM ks.c", &[]).unwrap().is_empty());
}

#[test]
fn a_long_timeout_changes_nothing_and_may_be_bound() {
    let timed = Timed::new();
    assert_eq!(timed.code("UPDATE ks.t USING TTL 100 AND TIMEOUT 1h SET v = 2 WHERE k = 1"), "done");
    let select = "SELECT v FROM ks.t WHERE k = 1 LIMIT 5 ALLOW FILTERING BYPASS CACHE USING TIMEOUT";
    assert_eq!(timed.run(&format!("{select} 30s"), &[]).unwrap(), [["2"]]);
    let minute =
        helenus_model::types::Duration { nanoseconds: 60_000_000_000, ..Default::default() }.to_bytes();
    let bound = |value| timed.run(&format!("{select} ?"), &[value]);
    assert_eq!(bound(BoundValue::Bytes(&minute)).unwrap(), [["2"]]);
    assert_eq!(bound(BoundValue::Unset).unwrap(), [["2"]]);
    assert_eq!(code(&bound(BoundValue::Null).unwrap_err()), "2200");
    assert_eq!(code(&bound(BoundValue::Bytes(b"x")).unwrap_err()), "2200");
}

#[test]
fn a_timeout_without_a_fixed_or_positive_length_is_refused_and_so_is_one_inside_a_batch() {
    let timed = Timed::new();
    for duration in ["0s", "-5s", "1mo", "1d", "1d2h"] {
        assert_eq!(timed.code(&format!("SELECT v FROM ks.t USING TIMEOUT {duration}")), "2200", "{duration}");
    }
    let inside = "INSERT INTO ks.t (k, v) VALUES (1, 2) USING TIMEOUT 5s";
    assert_eq!(timed.code(&format!("BEGIN BATCH {inside}; APPLY BATCH")), "2200");
    let identity = Identity::default();
    let entries = vec![BatchEntry::Query(inside, Values::Positional(&[]))];
    let batch = Batch { kind: BatchKind::Unlogged, entries };
    let refused = timed.0.batch(&batch, &request(&identity, None, &[]), &mut Rows::default());
    assert_eq!(refused.map_or_else(|error| code(&error), |_| "done"), "2200");
}

#[test]
fn its_words_remain_names() {
    let mut session =
        Session::with(&["CREATE TABLE timeout (bypass int PRIMARY KEY, cache int, timeout int)"]);
    session.ok("INSERT INTO timeout (bypass, cache, timeout) VALUES (1, 2, 3)");
    session.ok("UPDATE timeout USING TIMEOUT 5s SET timeout = 4 WHERE bypass = 1");
    let all = session.rows("SELECT timeout, cache AS bypass FROM timeout WHERE bypass = 1 BYPASS CACHE");
    assert_eq!(all, "4,2");
    for broken in
        ["BYPASS", "USING", "USING TIMEOUT", "USING TIMEOUT 5", "USING TTL 5", "BYPASS CACHE BYPASS CACHE"]
    {
        let error = session.run(&format!("SELECT * FROM timeout {broken}")).unwrap_err();
        assert_eq!(code(&error), "2000", "{broken}");
    }
}
