//! How CQL shows Thrift's super column families. The expected answers are those of Cassandra 3.11.19
//! (`tests/tools/rpc_compare.py` runs the same statements there).

use super::harness::{Rows, Session, request};
use crate::backend::{Backend, Identity, Outcome, Request, SchemaStep};
use crate::error::CqlError;
use helenus_model::schema::{Schema, Table};
use helenus_model::types::CqlType;
use std::sync::Arc;

/// A super column family as Thrift makes it: `text` declares its columns, and the map of undeclared ones is `others`.
fn make(session: &mut Session, name: &str, text: &str, is_dense: bool) {
    let beyond = |schema: &mut Schema, _made_us: i64| -> Result<(), CqlError> {
        let keyspace = Arc::make_mut(schema.keyspaces.get_mut("ks").unwrap());
        let table: &mut Table = Arc::make_mut(keyspace.tables.get_mut(name).unwrap());
        table.flags = vec!["super".into()];
        table.flags.extend(is_dense.then(|| "dense".to_owned()));
        table.regulars.iter_mut().find(|column| &*column.name == "others").unwrap().name = "".into();
        Ok(())
    };
    let identity = Identity::default();
    let request = Request { may_block: true, ..request(&identity, Some("ks"), &[]) };
    let step = SchemaStep { query: format!("CREATE TABLE {name} {text}"), beyond: Box::new(beyond) };
    session.backend.change_schema_in_steps(&[step], &request).unwrap();
}

fn supers() -> Session {
    let mut session = Session::with(&[]);
    let text = "(key text, column1 text, others map<bigint, text>, PRIMARY KEY (key, column1))";
    make(&mut session, "supers", text, true);
    for name in ["a", "b", "c"] {
        for number in [-7, 1, 2, 30] {
            session.ok(&format!(
                "INSERT INTO supers (key, column1, column2, value) VALUES ('kk', '{name}', {number}, '{name}{number}') \
                 USING TIMESTAMP 9100"
            ));
        }
    }
    session
}

#[test]
fn a_row_stands_for_each_column_of_a_super_column() {
    let mut session = supers();
    let b = "'kk','b',-7,'b-7';'kk','b',1,'b1';'kk','b',2,'b2';'kk','b',30,'b30'";
    assert_eq!(session.rows("SELECT * FROM supers WHERE key = 'kk' AND column1 = 'b'"), b);
    assert_eq!(session.rows("SELECT count(*) FROM supers"), "12");
    for (asked, found) in [
        ("column1 = 'b' AND column2 = 2", "'b2'"),
        ("column1 = 'b' AND column2 = 3", ""),
        ("column1 = 'b' AND column2 > 1", "'b2';'b30'"),
        ("column1 = 'b' AND column2 IN (-7, 30, 5)", "'b-7';'b30'"),
        ("column1 IN ('a', 'c')", "'a-7';'a1';'a2';'a30';'c-7';'c1';'c2';'c30'"),
        ("column1 > 'a' AND column1 <= 'c'", "'b-7';'b1';'b2';'b30';'c-7';'c1';'c2';'c30'"),
        ("(column1, column2) = ('b', 2)", "'b2'"),
        ("(column1, column2) > ('b', 1)", "'b2';'b30';'c-7';'c1';'c2';'c30'"),
        ("(column1, column2) >= ('b', 1)", "'b1';'b2';'b30';'c-7';'c1';'c2';'c30'"),
        ("(column1, column2) < ('b', 2)", "'a-7';'a1';'a2';'a30';'b-7';'b1'"),
        ("column1 = 'b' ORDER BY column1 DESC LIMIT 2", "'b-7';'b1'"),
        ("column1 >= 'b' ORDER BY column1 DESC", "'c-7';'c1';'c2';'c30';'b-7';'b1';'b2';'b30'"),
    ] {
        let query = format!("SELECT value FROM supers WHERE key = 'kk' AND {asked}");
        assert_eq!(session.rows(&query), found, "{query}");
    }
    let filtering = "SELECT value FROM supers WHERE key = 'kk' AND column2 = 2";
    assert_eq!(session.error(filtering), "Filtering is not supported on SuperColumn tables");
}

#[test]
fn changes_reach_the_columns_that_they_name() {
    let mut session = supers();
    session.ok("UPDATE supers USING TTL 100000 AND TIMESTAMP 9200 SET value = 'later' WHERE key = 'kk' AND column1 = 'a' AND column2 = 1");
    let one = "SELECT value, writetime(value) FROM supers WHERE key = 'kk' AND column1 = 'a' AND column2 = 1";
    assert_eq!(session.rows(one), "'later',9200");
    session.ok("DELETE FROM supers USING TIMESTAMP 9201 WHERE key = 'kk' AND column1 = 'a' AND column2 = 1");
    session.ok("DELETE FROM supers USING TIMESTAMP 9201 WHERE key = 'kk' AND column1 = 'b'");
    let all = "SELECT value FROM supers WHERE key = 'kk'";
    assert_eq!(session.rows(all), "'a-7';'a2';'a30';'c-7';'c1';'c2';'c30'");
    let update =
        "UPDATE supers SET value = 'if' WHERE key = 'kk' AND column1 = 'c' AND column2 = 2 IF value = 'c2'";
    assert_eq!(session.rows(update), "true");
    assert_eq!(session.rows(update), "false,'if'");
    let mut session = session.crashed();
    assert_eq!(session.rows(all), "'a-7';'a2';'a30';'c-7';'c1';'if';'c30'");
    session.ok("DELETE FROM supers WHERE key = 'kk'");
    assert_eq!(session.rows(all), "");
    for (statement, refusal) in [
        (
            "INSERT INTO supers (key, column1, value) VALUES ('k', 's', 'x')",
            "Column key is mandatory for SuperColumn tables",
        ),
        (
            "INSERT INTO supers (key, column1, column2) VALUES ('k', 's', 1)",
            "Column value is mandatory for SuperColumn tables",
        ),
        (
            "UPDATE supers SET value = 'x' WHERE key = 'k' AND column1 = 's'",
            "Column key is mandatory for SuperColumn tables",
        ),
        (
            "INSERT INTO supers (key, column2, value) VALUES ('k', 9, 'x')",
            "Some clustering keys are missing: column1",
        ),
    ] {
        assert_eq!(session.error(statement), refusal, "{statement}");
    }
}

#[test]
fn pages_end_within_a_super_column_and_go_on_there() {
    let session = supers();
    let identity = Identity::default();
    for (order, expected) in [
        ("", "a-7 a1 a2 a30 b-7 b1 b2 b30 c-7 c1 c2 c30"),
        (" ORDER BY column1 DESC", "c-7 c1 c2 c30 b-7 b1 b2 b30 a-7 a1 a2 a30"),
    ] {
        let query = format!("SELECT value FROM supers WHERE key = 'kk'{order}");
        for size in [1, 3, 5, 11, 12] {
            let mut found: Vec<String> = Vec::new();
            let mut state: Option<Vec<u8>> = None;
            loop {
                let plain = request(&identity, Some("ks"), &[]);
                let asked = Request { page_size: Some(size), paging_state: state.as_deref(), ..plain };
                let mut rows = Rows::default();
                let answer = session.backend.query(&query, &asked, &mut rows).unwrap();
                found.extend(rows.rows().iter().map(|row| row[0].trim_matches('\'').to_owned()));
                let Outcome::Rows { paging_state, .. } = answer.outcome else { panic!() };
                let Some(next) = paging_state else { break };
                state = Some(next);
            }
            assert_eq!(found.join(" "), expected, "{query} by {size}");
        }
    }
}

#[test]
fn counters_of_super_columns_count() {
    let mut session = Session::with(&[]);
    let text = "(key text, column1 text, others map<text, text>, PRIMARY KEY (key, column1))";
    make(&mut session, "plain", text, true);
    let beyond = |schema: &mut Schema, _made_us: i64| -> Result<(), CqlError> {
        let keyspace = Arc::make_mut(schema.keyspaces.get_mut("ks").unwrap());
        let table: &mut Table = Arc::make_mut(keyspace.tables.get_mut("counts").unwrap());
        table.flags = vec!["super".into(), "dense".into(), "counter".into()];
        let (key, value) = (Arc::new(CqlType::Text), Arc::new(CqlType::Counter));
        (table.regulars[0].name, table.regulars[0].ty) =
            ("".into(), CqlType::Map { key, value, frozen: false });
        Ok(())
    };
    let identity = Identity::default();
    let request = Request { may_block: true, ..request(&identity, Some("ks"), &[]) };
    let query = format!("CREATE TABLE counts {text}");
    session
        .backend
        .change_schema_in_steps(&[SchemaStep { query, beyond: Box::new(beyond) }], &request)
        .unwrap();
    for _ in 0..2 {
        session
            .ok("UPDATE counts SET value = value + 3 WHERE key = 'k1' AND column1 = 's1' AND column2 = 'x'");
    }
    assert_eq!(session.rows("SELECT * FROM counts"), "'k1','s1','x',6");
}

#[test]
fn a_family_with_declared_columns_shows_these_alone() {
    let mut session = Session::with(&[]);
    let text = "(key text, column1 text, age bigint, others map<text, text>, PRIMARY KEY (key, column1))";
    make(&mut session, "mixed", text, false);
    session.ok("INSERT INTO mixed (key, column1, age) VALUES ('k1', 's1', 7) USING TIMESTAMP 20");
    session.ok("INSERT INTO mixed (key, column1) VALUES ('k1', 's5')");
    session.ok("UPDATE mixed USING TIMESTAMP 21 SET age = 8 WHERE key = 'k1' AND column1 = 's2'");
    assert_eq!(session.rows("SELECT * FROM mixed"), "'k1','s1',7;'k1','s2',8");
    session.ok("DELETE FROM mixed USING TIMESTAMP 23 WHERE key = 'k1' AND column1 = 's1'");
    assert_eq!(session.rows("SELECT * FROM mixed"), "'k1','s2',8");
}
