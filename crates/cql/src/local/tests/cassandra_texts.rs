//! Small things that clients see, as Cassandra 5.0.9 has them: orders of checks, lists and texts.

use super::harness::Session;
use crate::backend::{Backend, Identity};

#[test]
fn types_are_described_by_name_with_those_they_use_right_before() {
    let mut session = Session::with(&[
        "CREATE TYPE z (f int)",
        "CREATE TYPE b (f int)",
        "CREATE TYPE y (f frozen<z>, g int)",
        "CREATE TYPE a (f frozen<map<int, frozen<y>>>)",
        "CREATE TYPE c (f frozen<tuple<frozen<b>, int>>, g frozen<list<frozen<z>>>)",
    ]);
    let rows = session.run("DESCRIBE KEYSPACE ks").unwrap();
    let names: Vec<&str> = rows.iter().filter(|row| row[1] == "'type'").map(|row| &*row[2]).collect();
    assert_eq!(names, ["'z'", "'y'", "'a'", "'b'", "'c'"]);
}

#[test]
fn a_statement_that_a_change_of_the_schema_made_invalid_is_not_listed() {
    let mut session = Session::with(&[
        "CREATE TABLE t (k int PRIMARY KEY, v int)",
        "CREATE TABLE kept (k int PRIMARY KEY, v int)",
    ]);
    for text in ["SELECT v FROM ks.t", "SELECT v FROM ks.kept", "INSERT INTO ks.t (k) VALUES (?)"] {
        session.backend.prepare(text, None, &Identity::default()).unwrap();
    }
    let listed = |session: &mut Session| {
        let mut listed: Vec<String> = session
            .run("SELECT query_string FROM system.prepared_statements")
            .unwrap()
            .into_iter()
            .flatten()
            .collect();
        listed.sort();
        listed
    };
    assert_eq!(listed(&mut session).len(), 3);
    session.ok("CREATE TABLE other (k int PRIMARY KEY)");
    assert_eq!(listed(&mut session).len(), 3);
    session.ok("ALTER TABLE t ADD w int");
    assert_eq!(listed(&mut session), ["'SELECT v FROM ks.kept'"]);
    session.ok("DROP TABLE kept");
    assert!(listed(&mut session).is_empty());
}

#[test]
fn an_unsupported_operator_is_told_before_its_columns() {
    let mut session = Session::with(&["CREATE TABLE t (k int, c int, v int, PRIMARY KEY (k, c))"]);
    for (relation, shown) in [
        ("(v) != (0)", "(v) != (0)"),
        ("(nothing) != (0)", "(nothing) != (0)"),
        ("nothing != 0", "nothing != 0"),
        ("token(v) != 0", "token(v) != 0"),
    ] {
        let expected = format!("Unsupported \"!=\" relation: {shown}");
        assert_eq!(session.error(&format!("SELECT * FROM t WHERE {relation}")), expected);
        for statement in ["DELETE FROM t WHERE k = 1 AND", "UPDATE t SET v = 1 WHERE k = 1 AND"] {
            assert_eq!(session.error(&format!("{statement} {relation}")), expected, "{statement} {relation}");
        }
    }
}

#[test]
fn a_dimension_beyond_an_int_is_no_number_for_the_parser() {
    let mut session = Session::with(&[]);
    for (dimension, problem) in
        [("2147483648", "2147483648"), ("99999999999999999999", "99999999999999999999")]
    {
        let text = format!("CREATE TABLE v (k int PRIMARY KEY, v vector<float, {dimension}>)");
        let expected = format!(
            "Failed parsing statement: [{text}] reason: NumberFormatException For input string: \"{problem}\""
        );
        assert_eq!(session.error(&text), expected);
    }
    let told = session.error("CREATE TABLE v (k int PRIMARY KEY, v vector<float, -1>)");
    assert_eq!(told, "vectors may only have positive dimensions; given -1");
}

#[test]
fn an_index_refuses_vectors_without_a_similarity() {
    let mut session = Session::with(&[
        "CREATE TABLE d (k int PRIMARY KEY, v vector<float, 2>)",
        "CREATE TABLE e (k int PRIMARY KEY, v vector<float, 2>)",
    ]);
    // What is there before the index stays, and is in no answer.
    session.ok("INSERT INTO d (k, v) VALUES (1, [0, 0])");
    session.ok("INSERT INTO d (k, v) VALUES (2, [NaN, 1])");
    session.ok("INSERT INTO d (k, v) VALUES (3, [1, 1])");
    session.ok("CREATE INDEX ON d (v) USING 'sai'");
    session.ok("CREATE INDEX ON e (v) USING 'sai' WITH OPTIONS = {'similarity_function': 'euclidean'}");
    session.machine.run_until_idle();
    let zero = "Zero vectors cannot be indexed or queried with cosine similarity";
    for (table, vector, text) in [
        ("d", "[0, -0.0]", zero),
        ("d", "[1, NaN]", "non-finite value at vector[1]=NaN"),
        ("d", "[Infinity, 0]", "non-finite value at vector[0]=Infinity"),
        ("e", "[-Infinity, 0]", "non-finite value at vector[0]=-Infinity"),
        ("e", "[0, 1e18]", "Out-of-bounds value at vector[1]=9.9999998E17"),
    ] {
        for statement in [
            format!("INSERT INTO {table} (k, v) VALUES (9, {vector})"),
            format!("UPDATE {table} SET v = {vector} WHERE k = 9"),
            format!("UPDATE {table} SET v = {vector} WHERE k = 9 IF v = null"),
            format!(
                "BEGIN BATCH INSERT INTO {table} (k, v) VALUES (8, [1, 1]); INSERT INTO {table} (k, v) VALUES (9, {vector}) APPLY BATCH"
            ),
            format!("SELECT k FROM {table} ORDER BY v ANN OF {vector} LIMIT 3"),
        ] {
            assert_eq!(session.error(&statement), text, "{statement}");
        }
    }
    assert_eq!(session.rows("SELECT k FROM d"), "1;2;3", "nothing of a refused statement is there");
    assert_eq!(session.rows("SELECT k FROM d ORDER BY v ANN OF [1, 0] LIMIT 9"), "3");
    session.ok("INSERT INTO e (k, v) VALUES (1, [0, 0])");
    assert_eq!(session.rows("SELECT k FROM e ORDER BY v ANN OF [0, 0] LIMIT 9"), "1");
    session.ok("UPDATE d SET v = null WHERE k = 3");
}

#[test]
fn each_index_of_a_map_compares_its_own_part() {
    let mut session = Session::with(&[
        "CREATE TABLE t (k int PRIMARY KEY, m map<text, text>)",
        "CREATE INDEX ON t (keys(m)) USING 'sai' WITH OPTIONS = {'case_sensitive': 'false'}",
        "CREATE INDEX ON t (values(m)) USING 'sai'",
        "INSERT INTO t (k, m) VALUES (1, {'a': 'X'})",
        "INSERT INTO t (k, m) VALUES (2, {'A': 'x'})",
    ]);
    session.machine.run_until_idle();
    for (clause, rows) in [
        ("m CONTAINS 'x'", "2"),
        ("m CONTAINS KEY 'A'", "1;2"),
        ("m CONTAINS KEY 'A' AND m CONTAINS 'x'", "2"),
        ("m CONTAINS KEY 'a' AND m CONTAINS 'X'", "1"),
    ] {
        assert_eq!(session.rows(&format!("SELECT k FROM t WHERE {clause}")), rows, "{clause}");
    }
}
