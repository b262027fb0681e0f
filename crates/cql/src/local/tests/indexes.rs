//! Secondary indexes through statements.

use super::harness::{Session, code, request};
use crate::backend::{Backend, Identity, Outcome, ResultColumns, RowsOut};
use std::sync::Arc;

fn people() -> Session {
    Session::with(&[
        "CREATE TABLE t (k int, c int, v int, w text, s text STATIC, l list<int>, m map<text, int>, PRIMARY KEY (k, c))",
    ])
}

#[test]
fn rows_are_found_by_a_regular_column_through_overwrites_deletes_and_restart() {
    let mut session = people();
    session.ok("CREATE INDEX ON t (v)");
    for c in 0..5 {
        session.ok(&format!("INSERT INTO t (k, c, v, w) VALUES (1, {c}, {}, 'a')", c % 2));
    }
    assert_eq!(session.rows("SELECT c FROM t WHERE v = 1"), "1;3");
    session.ok("UPDATE t SET v = 1 WHERE k = 1 AND c = 0");
    session.ok("DELETE FROM t WHERE k = 1 AND c = 3");
    assert_eq!(session.rows("SELECT c FROM t WHERE v = 1"), "0;1");
    assert_eq!(session.rows("SELECT c FROM t WHERE v = 0"), "2;4");
    session.ok("DELETE FROM t WHERE k = 1 AND c > 1");
    assert_eq!(session.rows("SELECT c FROM t WHERE v = 0"), "");
    let mut session = session.crashed();
    assert_eq!(session.rows("SELECT c FROM t WHERE v = 1"), "0;1");
    session.ok("TRUNCATE t");
    assert_eq!(session.rows("SELECT c FROM t WHERE v = 1"), "");
    session.ok("DROP INDEX t_v_idx");
    assert!(session.error("SELECT c FROM t WHERE v = 1").contains("ALLOW FILTERING"));
}

#[test]
fn an_index_made_later_finds_what_was_there_in_memory_and_in_files() {
    let mut session = people();
    for c in 0..2500 {
        session.ok(&format!("INSERT INTO t (k, c, v) VALUES ({}, {c}, {})", c % 7, c % 10));
    }
    let table = session.backend.database().schema().table("ks", "t").unwrap().id;
    session.backend.database().flush(table).unwrap();
    session.ok("CREATE INDEX ON t (v)");
    session.backend.database().wait_for_indexes();
    assert_eq!(session.run("SELECT c FROM t WHERE v = 3").unwrap().len(), 250);
    assert_eq!(session.run("SELECT c FROM t WHERE v = 3 LIMIT 7").unwrap().len(), 7);
    let mut session = session.crashed();
    session.backend.database().wait_for_indexes();
    assert_eq!(session.run("SELECT c FROM t WHERE v = 3").unwrap().len(), 250);
    assert_eq!(session.run("SELECT c FROM t WHERE k = 3 AND v = 3").unwrap().len(), 36);
}

/// Rows as hexadecimal values, in the recorder's format.
#[derive(Default)]
struct Hex {
    row: Vec<String>,
    rows: Vec<String>,
}

impl RowsOut for Hex {
    fn columns(&mut self, _columns: &Arc<ResultColumns>) {}

    fn cell(&mut self, value: Option<&[u8]>) {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        self.row.push(value.map_or_else(|| "null".to_owned(), hex));
    }

    fn end_row(&mut self) {
        self.rows.push(std::mem::take(&mut self.row).join(","));
    }

    fn bytes(&self) -> usize {
        0
    }

    fn clear(&mut self) {
        *self = Hex::default();
    }
}

/// The answer to a statement, in the recorder's format.
fn answer(session: &mut Session, statement: &str) -> String {
    let identity = Identity::default();
    let keyspace = session.keyspace.clone();
    let mut rows = Hex::default();
    let request = request(&identity, keyspace.as_deref(), &[]);
    let answered = session.backend.query(statement, &request, &mut rows);
    let text = match answered {
        Err(error) => format!("error {} {error}", code(&error)),
        Ok(answer) => {
            let is_rows = matches!(answer.outcome, Outcome::Rows { .. });
            session.settle(answer);
            let warned: String = session.warnings.iter().map(|text| format!(" warning {text}")).collect();
            if is_rows { format!("rows {}{warned}", rows.rows.join(";")) } else { format!("ok{warned}") }
        }
    };
    text.trim_end().replace('\n', "\\n")
}

/// Statements whose answers differ on purpose, and why.
const ELSEWISE: &[(&str, &str)] = &[
    // SASI was enabled on the recorded node; in Helenus it is not built.
    (
        "CREATE CUSTOM INDEX ON reg (v) USING 'org.apache.cassandra.index.sasi.SASIIndex'",
        "error 2200 SASI indexes are not supported yet: create a storage-attached index, with USING 'sai'",
    ),
    // Cassandra fails for a partition that has only a static row.
    (
        "SELECT * FROM wide WHERE b = 'x' AND c2 = 'p' ALLOW FILTERING",
        "rows 00000002,78,00000001,70,00000001,00000007,00000004;00000001,78,00000002,70,00000002,00000007,00000002;00000001,78,00000001,70,00000001,00000007,00000001",
    ),
    // Cassandra lists the names in hash order.
    (
        "ALTER TABLE skinny DROP v",
        "error 2200 Cannot drop column v because it has dependent secondary indexes (skinny_v_idx, skinny_v_idx_1)",
    ),
];

/// Runs the recorded statements; `between` is called before each SELECT.
fn as_recorded(between: impl Fn(&mut Session)) {
    let mut session = Session::new(3);
    session.ok(
        "CREATE KEYSPACE idx_conformance WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    );
    session.ok("USE idx_conformance");
    let recorded = include_str!("../../../../../tests/conformance/index/expected.txt");
    let mut lines = recorded.lines().filter(|line| !line.is_empty());
    let (mut wrong, mut count) = (Vec::new(), 0);
    while let (Some(statement), Some(expected)) = (lines.next(), lines.next()) {
        let statement = statement.strip_prefix("> ").expect("a statement begins with >");
        if statement.starts_with("SELECT") {
            between(&mut session);
        }
        count += 1;
        let found = answer(&mut session, statement);
        let elsewise = ELSEWISE.iter().find(|(text, _)| *text == statement).map(|(_, answer)| *answer);
        if found != elsewise.unwrap_or(expected.trim_end()) {
            wrong.push(format!("{statement}\n    cassandra: {expected}\n    here:      {found}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn statements_are_answered_as_by_cassandra() {
    as_recorded(|_| {});
}

#[test]
fn they_are_with_everything_flushed_before_each_select() {
    as_recorded(|session| {
        session.backend.database().flush_all().unwrap();
    });
}
