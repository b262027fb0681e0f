//! The jobs that raw clients repeat, and the checks of their results.

use std::sync::atomic::{AtomicBool, Ordering};

use end_to_end::Cql;
use end_to_end::raw::{RESULT, Raw};
use scylla::value::CqlValue;

/// The job of a client. Each repetition uses the next number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Job {
    /// Inserts plain rows into a partition of its own.
    Insert(i32),
    /// As `Insert`, but first deletes all except the last nine rows by a range deletion.
    Trim(i32),
    /// Adds one to a counter.
    Count,
    /// Writes the next number by a condition on the previous one.
    Swap,
    /// Overwrites the previous number with the next one and reads it. A timestamp that went backwards would hide it.
    Overwrite,
    /// Deletes a row and writes it again.
    Replace,
    /// Writes a row in each of two tables, in a logged batch.
    Batch,
}

/// All jobs, which run concurrently.
pub const JOBS: [Job; 9] = [
    Job::Insert(0),
    Job::Insert(1),
    Job::Insert(2),
    Job::Trim(100),
    Job::Count,
    Job::Swap,
    Job::Overwrite,
    Job::Replace,
    Job::Batch,
];

impl Job {
    fn statements(self, n: i64) -> Vec<String> {
        let row = |k: i32| {
            let text = "w".repeat(n as usize % 900);
            format!("INSERT INTO k.t (k, c, v, w) VALUES ({k}, {n}, {}, '{text}')", n * 7)
        };
        match self {
            Job::Insert(k) => vec![row(k)],
            Job::Trim(k) => vec![format!("DELETE FROM k.t WHERE k = {k} AND c < {}", n - 9), row(k)],
            Job::Count => vec!["UPDATE k.n SET n = n + 1 WHERE k = 0".into()],
            Job::Swap if n == 0 => vec!["INSERT INTO k.s (k, v) VALUES (0, 0)".into()],
            Job::Swap => vec![format!("UPDATE k.s SET v = {n} WHERE k = 0 IF v = {}", n - 1)],
            Job::Overwrite => {
                vec![format!("UPDATE k.s SET v = {n} WHERE k = 1"), "SELECT v FROM k.s WHERE k = 1".into()]
            }
            Job::Replace => {
                vec!["DELETE FROM k.s WHERE k = 2".into(), format!("INSERT INTO k.s (k, v) VALUES (2, {n})")]
            }
            Job::Batch => vec![format!(
                "BEGIN BATCH INSERT INTO k.a (k, c) VALUES ({}, {n}); INSERT INTO k.b (k, c) VALUES (0, {n}); APPLY BATCH",
                n % 5
            )],
        }
    }

    /// Runs from number `next` until the server is gone. Returns the first number that was not completely acknowledged.
    pub fn run(self, address: &str, next: i64, over: &AtomicBool) -> i64 {
        let Some(mut client) = Raw::try_ready(address, 4) else { return next };
        for n in next.. {
            if over.load(Ordering::Relaxed) {
                return n;
            }
            for statement in self.statements(n) {
                let Some(reply) = client.try_query(&statement) else { return n };
                if reply.opcode != RESULT {
                    let (code, text) = reply.error();
                    // These errors are refusals of a full disk or of a process without resources. Any other error is a
                    // finding.
                    assert!([0x1001, 0x1100, 0x1500].contains(&code), "{statement}: {code:#x} {text}");
                    return n;
                }
                if self == Job::Overwrite && statement.starts_with("SELECT") {
                    let found = reply.body.last_chunk().map(|bytes| i64::from_be_bytes(*bytes));
                    assert_eq!(found, Some(n), "{self:?}: the last write is hidden");
                }
            }
        }
        next
    }

    /// Checks that everything before `next` exists and is complete. Returns the number to continue with.
    pub fn check(self, cql: &Cql, next: i64) -> i64 {
        let one =
            |statement: &str| -> Vec<i64> { cql.rows(statement).remove(0).iter().map(number_of).collect() };
        let alone = |statement: &str| cql.rows(statement).first().map(|row| number_of(&row[0]));
        let found = match self {
            Job::Insert(k) => {
                let of = one(&format!("SELECT count(c), max(c), sum(v), sum(c) FROM k.t WHERE k = {k}"));
                let rows = of[0];
                assert!(rows == 0 || of[1] == rows - 1, "{self:?}: {rows} rows up to {}", of[1]);
                assert_eq!(of[2], of[3] * 7, "{self:?}: a row is not whole");
                rows
            }
            Job::Trim(k) => {
                let of = one(&format!("SELECT count(c), min(c), max(c) FROM k.t WHERE k = {k}"));
                let (rows, least, greatest) = (of[0], of[1], of[2]);
                assert!(
                    rows == 0 || rows == greatest - least + 1,
                    "{self:?}: {rows} rows, {least} to {greatest}"
                );
                let found = if rows == 0 { 0 } else { greatest + 1 };
                // The deletion before the next row may have survived a kill that the row did not survive.
                let allowed = [(found - 10).max(0), (found - 9).max(0)];
                assert!(
                    allowed.contains(&least),
                    "{self:?}: rows {least} to {greatest}, {next} acknowledged"
                );
                found
            }
            Job::Count => alone("SELECT n FROM k.n WHERE k = 0").unwrap_or(0),
            Job::Swap => alone("SELECT v FROM k.s WHERE k = 0").map_or(0, |v| v + 1),
            Job::Overwrite => alone("SELECT v FROM k.s WHERE k = 1").map_or(0, |v| v + 1),
            // A kill may have separated its two statements.
            Job::Replace => alone("SELECT v FROM k.s WHERE k = 2").map_or(next, |v| v + 1),
            Job::Batch => {
                let a = one("SELECT count(c) FROM k.a")[0];
                let b = one("SELECT count(c), max(c) FROM k.b WHERE k = 0");
                assert_eq!(a, b[0], "half of a batch");
                assert!(b[0] == 0 || b[1] == b[0] - 1, "{self:?}: {} rows up to {}", b[0], b[1]);
                a
            }
        };
        // The last request may have been executed without being acknowledged.
        assert!(found == next || found == next + 1, "{self:?}: {next} acknowledged, {found} there");
        found
    }
}

fn number(value: &CqlValue) -> i64 {
    match value {
        CqlValue::BigInt(n) => *n,
        CqlValue::Int(n) => i64::from(*n),
        CqlValue::Counter(n) => n.0,
        other => panic!("no number: {other:?}"),
    }
}

/// The number of a value; 0 for null.
pub fn number_of(value: &Option<CqlValue>) -> i64 {
    value.as_ref().map_or(0, number)
}
