//! The embedded database as a program uses it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

use helenus::{Database, Error, Options, Slice, Value};

const KEYSPACE: &str =
    "CREATE KEYSPACE app WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}";

#[test]
fn statements_and_wide_rows_see_the_same_data_across_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let db = Database::open(dir.path()).unwrap();
    db.execute(KEYSPACE, &[]).unwrap();
    db.execute("CREATE TABLE app.feed (user text, at bigint, what text, PRIMARY KEY (user, at))", &[])
        .unwrap();
    let insert = "INSERT INTO app.feed (user, at, what) VALUES (?, ?, ?)";
    for at in 0..100i64 {
        db.execute(insert, &["foo".into(), at.into(), format!("w{at}").into()]).unwrap();
    }
    let feed = db.wide_table("app", "feed").unwrap();
    feed.put(&"foo".into(), &[(100i64.into(), "w100".into()), (5i64.into(), "five".into())]).unwrap();
    feed.delete(&"foo".into(), &[7i64.into()]).unwrap();
    for round in 0..2 {
        let last = feed.slice(&"foo".into(), &Slice::last(2)).unwrap();
        assert_eq!(last, [(100i64.into(), "w100".into()), (99i64.into(), "w99".into())], "round {round}");
        let named = feed.get(&"foo".into(), &[7i64.into(), 5i64.into(), 4i64.into()]).unwrap();
        assert_eq!(named, [(4i64.into(), "w4".into()), (5i64.into(), "five".into())]);
        let range = Slice { start: Some(3i64.into()), finish: Some(8i64.into()), ..Slice::default() };
        assert_eq!(feed.count(&"foo".into(), &range).unwrap(), 5);
        assert_eq!(db.flush().unwrap() > 0, round == 0);
    }
    db.close().unwrap();

    let db = Database::open(dir.path()).unwrap();
    let rows =
        db.execute("SELECT at, what FROM app.feed WHERE user = ? AND at >= 98", &["foo".into()]).unwrap();
    assert_eq!(rows.columns, ["at", "what"]);
    let expected: Vec<Vec<Value>> =
        (98..=100i64).map(|at| vec![at.into(), format!("w{at}").as_str().into()]).collect();
    assert_eq!(rows.rows, expected);
    db.close().unwrap();
}

#[test]
fn a_database_in_memory_needs_no_directory() {
    let db = Database::open_with(Options::in_memory()).unwrap();
    db.execute(KEYSPACE, &[]).unwrap();
    db.execute("CREATE TABLE app.t (k int PRIMARY KEY, v int)", &[]).unwrap();
    db.execute("INSERT INTO app.t (k, v) VALUES (1, 2)", &[]).unwrap();
    let rows = db.execute("SELECT v FROM app.t WHERE k = 1", &[]).unwrap();
    assert_eq!(rows.rows, [vec![Value::Int(2)]]);
}

#[test]
fn a_mistake_says_what_is_wrong_and_what_to_do() {
    let db = Database::in_memory().unwrap();
    db.execute(KEYSPACE, &[]).unwrap();
    db.execute("CREATE TABLE app.t (k int, c int, v text, PRIMARY KEY (k, c))", &[]).unwrap();
    let text = |error: Error| error.to_string();
    let wrong = db.execute("INSERT INTO app.t (k, c, v) VALUES (?, 1, 'x')", &["one".into()]);
    assert_eq!(text(wrong.unwrap_err()), "app.t: column k of type int takes no text; give a int");
    assert_eq!(
        text(db.wide_table("app", "none").err().unwrap()),
        "table app.none does not exist; create it first"
    );
    let syntax = db.execute("SELEC v FROM app.t", &[]).unwrap_err();
    assert!(matches!(syntax, Error::Syntax { .. }), "{syntax:?}");
    assert!(text(syntax).starts_with("line 1:0 "));
}

#[test]
fn a_program_can_match_errors() {
    let dir = tempfile::tempdir().unwrap();
    let db = Database::open(dir.path()).unwrap();
    db.execute(KEYSPACE, &[]).unwrap();
    let table = "CREATE TABLE app.t (k int, c int, v text, PRIMARY KEY (k, c))";
    db.execute(table, &[]).unwrap();
    let refused = |cql: &str| db.execute(cql, &[]).unwrap_err();
    let exists = refused(table);
    assert!(
        matches!(&exists, Error::AlreadyExists { keyspace, table, .. } if keyspace == "app" && table == "t"),
        "{exists:?}"
    );
    for cql in ["SELECT w FROM app.t", "SELECT v FROM app.none", "SELECT v FROM app.t WHERE k = 'x'"] {
        let error = refused(cql);
        assert!(matches!(error, Error::Invalid { .. }), "{cql}: {error:?}");
    }
    let count = refused("INSERT INTO app.t (k, c, v) VALUES (?, ?, 'x')");
    assert!(matches!(count, Error::ValueCount { markers: 2, values: 0 }), "{count:?}");
    let taken = Database::open(dir.path()).err().unwrap();
    assert!(matches!(&taken, Error::InUse { dir: of, .. } if of == dir.path()), "{taken:?}");
    let wide = db.wide_table("app", "t").unwrap();
    db.close().unwrap();
    let closed = wide.put(&1i32.into(), &[(1i32.into(), "x".into())]).unwrap_err();
    assert!(matches!(closed, Error::Closed), "{closed:?}");
}
