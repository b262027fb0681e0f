//! Secondary indexes through statements.

use super::harness::Session;

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
