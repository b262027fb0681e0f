//! Acknowledged writes survive a power failure.

use super::harness::Session;

#[test]
fn acknowledged_statements_survive_a_crash() {
    let mut session = Session::with(&[
        "CREATE TABLE t (p text, c int, s text static, v text, m map<text, int>, PRIMARY KEY (p, c)) WITH CLUSTERING ORDER BY (c DESC)",
    ]);
    for c in 0..20 {
        session.ok(&format!("INSERT INTO t (p, c, v) VALUES ('a', {c}, 'v{c}')"));
    }
    session.ok("UPDATE t SET s = 'static', m = {'x': 1} WHERE p = 'a' AND c = 3");
    session.ok("UPDATE t SET m['y'] = 2 WHERE p = 'a' AND c = 3");
    session.ok("DELETE FROM t WHERE p = 'a' AND c >= 10");
    session.ok("DELETE v FROM t WHERE p = 'a' AND c = 2");
    session.ok("BEGIN BATCH INSERT INTO t (p, c, v) VALUES ('b', 1, 'x'); DELETE FROM t WHERE p = 'a' AND c = 0; APPLY BATCH");
    let all = "SELECT c, s, v, m FROM t WHERE p = 'a'";
    let before = session.rows(all);
    assert!(before.starts_with("9,'static','v9',null;8,"), "{before}");
    assert!(
        before.ends_with("3,'static','v3',{'x': 1, 'y': 2};2,'static',null,null;1,'static','v1',null"),
        "{before}"
    );
    let mut session = session.crashed();
    assert_eq!(session.rows(all), before);
    assert_eq!(session.rows("SELECT c, v FROM t WHERE p = 'b'"), "1,'x'");
    session.ok("INSERT INTO t (p, c, v) VALUES ('b', 2, 'after')");
    session.backend.database().flush_all().unwrap();
    let mut session = session.crashed();
    assert_eq!(session.rows(all), before);
    assert_eq!(session.rows("SELECT c, v FROM t WHERE p = 'b'"), "2,'after';1,'x'");
}

#[test]
fn a_truncated_table_stays_empty() {
    let mut session = Session::with(&["CREATE TABLE t (k int PRIMARY KEY, v int)"]);
    session.ok("INSERT INTO t (k, v) VALUES (1, 1)");
    session.ok("TRUNCATE t");
    session.ok("INSERT INTO t (k, v) VALUES (2, 2)");
    let mut session = session.crashed();
    assert_eq!(session.rows("SELECT k, v FROM t"), "2,2");
}
