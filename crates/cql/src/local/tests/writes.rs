//! INSERT, UPDATE, DELETE and BATCH: what they write, with and without bound values.

use super::harness::{Rows, Session, code, request};
use crate::backend::{Backend, Batch, BatchEntry, BatchKind, BoundValue, Identity, Outcome, Request, Values};
use crate::error::CqlError;

const T: &str = "CREATE TABLE t (k int, c int, s text static, v text, n int, PRIMARY KEY (k, c))";

fn bytes(value: &[u8]) -> BoundValue<'_> {
    BoundValue::Bytes(value)
}

#[test]
fn bound_values_are_written_and_unset_ones_left_alone() {
    let mut session = Session::with(&[T]);
    let insert = "INSERT INTO t (k, c, v, n) VALUES (?, ?, ?, ?)";
    let (one, two, five) = (1_i32.to_be_bytes(), 2_i32.to_be_bytes(), 5_i32.to_be_bytes());
    session.execute(insert, &[bytes(&one), bytes(&two), bytes(b"a"), bytes(&five)]).unwrap();
    assert_eq!(session.rows("SELECT * FROM t"), "1,2,null,5,'a'");
    session.execute(insert, &[bytes(&one), bytes(&two), BoundValue::Unset, BoundValue::Null]).unwrap();
    assert_eq!(session.rows("SELECT * FROM t"), "1,2,null,null,'a'");
    // An UPDATE without values makes no row; an INSERT does.
    let update = "UPDATE t SET v = ?, n = ? WHERE k = ? AND c = 9";
    session.execute(update, &[BoundValue::Unset, BoundValue::Unset, bytes(&one)]).unwrap();
    assert_eq!(session.rows("SELECT c FROM t"), "2");
    session.run_with(insert, &[bytes(&one), bytes(&five), BoundValue::Unset, BoundValue::Unset]).unwrap();
    assert_eq!(session.rows("SELECT c FROM t"), "2;5");
}

#[test]
fn wrong_bound_values_are_refused_in_cassandra_s_words() {
    let mut session = Session::with(&[T]);
    let insert = "INSERT INTO t (k, c, v) VALUES (?, ?, ?) USING TIMESTAMP ? AND TTL ?";
    let one = 1_i32.to_be_bytes();
    let (good, long) = (bytes(&one), 5_i64.to_be_bytes());
    let null = BoundValue::Null;
    let too_long = vec![b'x'; 65_536];
    let negative = (-1_i32).to_be_bytes();
    let far = (630_720_001_i32).to_be_bytes();
    let cases: &[(&[BoundValue<'_>], &str)] = &[
        (&[good, good], "there were 5 markers(?) in CQL but 2 bound variables"),
        (&[bytes(b"abc"), good, null, null, null], "Expected 4 or 0 byte int (3) (column k)"),
        (&[null, good, null, null, null], "Invalid null value in condition for column k"),
        (&[bytes(b""), good, null, null, null], "Key may not be empty"),
        (&[BoundValue::Unset, good, null, null, null], "Invalid unset value for column k"),
        (&[good, null, null, null, null], "Invalid null value in condition for column c"),
        (
            &[good, good, bytes(&[0xff]), BoundValue::Unset, BoundValue::Unset],
            "String didn't validate. (column v)",
        ),
        (&[good, good, null, null, BoundValue::Unset], "Invalid null value of timestamp"),
        (
            &[good, good, null, bytes(&long), bytes(&negative)],
            "A TTL must be greater or equal to 0, but was -1",
        ),
        (
            &[good, good, null, bytes(&long), bytes(&far)],
            "ttl is too large. requested (630720001) maximum (630720000)",
        ),
    ];
    for (values, expected) in cases {
        let error = session.execute(insert, values).unwrap_err().to_string();
        assert_eq!(error, *expected);
    }
    session.ok("CREATE TABLE x (k text, j text, c text, PRIMARY KEY ((k, j), c))");
    session.ok("CREATE TABLE y (k text PRIMARY KEY, v text)");
    let told = session.execute("INSERT INTO y (k) VALUES (?)", &[bytes(&too_long)]).unwrap_err().to_string();
    assert_eq!(told, "Key length of 65536 is longer than maximum of 65535");
    let values = [bytes(&too_long), bytes(b"a"), bytes(b"b")];
    let told = session.execute("INSERT INTO x (k, j, c) VALUES (?, ?, ?)", &values).unwrap_err().to_string();
    assert_eq!(told, "Key length of 65537 is longer than maximum of 65535");
    let values = [bytes(b"a"), bytes(b""), bytes(&too_long)];
    let told = session.execute("INSERT INTO x (k, j, c) VALUES (?, ?, ?)", &values).unwrap_err().to_string();
    assert_eq!(told, "Key length of 65536 is longer than maximum of 65535");
    let values = [bytes(b""), bytes(b""), bytes(b"")];
    session.execute("INSERT INTO x (k, j, c) VALUES (?, ?, ?)", &values).unwrap();
    assert_eq!(session.rows("SELECT * FROM x"), "'','',''");
    let told = session.run_with("INSERT INTO y (k) VALUES (?)", &[]).unwrap_err().to_string();
    assert_eq!(told, "Invalid amount of bind variables");
}

#[test]
fn timestamps_decide_and_ttls_expire() {
    let mut session =
        Session::with(&[T, "CREATE TABLE d (k int PRIMARY KEY, v int) WITH default_time_to_live = 100"]);
    session.ok("INSERT INTO t (k, c, v) VALUES (1, 1, 'new') USING TIMESTAMP 20");
    session.ok("INSERT INTO t (k, c, v) VALUES (1, 1, 'old') USING TIMESTAMP 10");
    assert_eq!(session.rows("SELECT v, writetime(v) FROM t"), "'new',20");
    session.ok("DELETE FROM t USING TIMESTAMP 20 WHERE k = 1 AND c = 1");
    assert_eq!(session.rows("SELECT v FROM t"), "");
    session.ok("INSERT INTO t (k, c, v) VALUES (1, 2, 'x') USING TTL 50");
    session.ok("INSERT INTO d (k, v) VALUES (1, 1)");
    session.ok("INSERT INTO d (k, v) VALUES (2, 2) USING TTL 0");
    assert_eq!(session.rows("SELECT v, ttl(v) FROM t"), "'x',50");
    assert_eq!(session.rows("SELECT k, ttl(v) FROM d"), "1,100;2,null");
    session.machine.advance(51_000_000_000);
    assert_eq!(session.rows("SELECT v FROM t"), "");
    session.machine.advance(50_000_000_000);
    assert_eq!(session.rows("SELECT k FROM d"), "2");
}

#[test]
fn deletes_take_rows_ranges_columns_and_partitions() {
    let mut session = Session::with(&[
        "CREATE TABLE r (k int, a int, b int, v int, PRIMARY KEY (k, a, b)) WITH CLUSTERING ORDER BY (a ASC, b DESC)",
    ]);
    let fill = |session: &mut Session| {
        for a in 0..3 {
            for b in 0..3 {
                session.ok(&format!("INSERT INTO r (k, a, b, v) VALUES (1, {a}, {b}, 0)"));
            }
        }
    };
    for (delete, left) in [
        ("DELETE FROM r WHERE k = 1 AND a = 1", "0,2;0,1;0,0;2,2;2,1;2,0"),
        ("DELETE FROM r WHERE k = 1 AND a > 0", "0,2;0,1;0,0"),
        ("DELETE FROM r WHERE k = 1 AND a >= 1 AND a < 2", "0,2;0,1;0,0;2,2;2,1;2,0"),
        ("DELETE FROM r WHERE k = 1 AND a = 1 AND b > 0", "0,2;0,1;0,0;1,0;2,2;2,1;2,0"),
        ("DELETE FROM r WHERE k = 1 AND a = 1 AND b <= 1", "0,2;0,1;0,0;1,2;2,2;2,1;2,0"),
        ("DELETE FROM r WHERE k = 1 AND a = 1 AND b > 1 AND b < 1", "0,2;0,1;0,0;1,2;1,1;1,0;2,2;2,1;2,0"),
        ("DELETE FROM r WHERE k = 1 AND a IN (0, 2) AND b IN (0, 1)", "0,2;1,2;1,1;1,0;2,2"),
        ("DELETE FROM r WHERE k = 1 AND (a, b) IN ((0, 1), (1, 1))", "0,2;0,0;1,2;1,0;2,2;2,1;2,0"),
        ("DELETE FROM r WHERE k IN (1, 2) AND a IN (0, 1)", "2,2;2,1;2,0"),
        ("DELETE FROM r WHERE k = 1", ""),
    ] {
        fill(&mut session);
        session.ok(delete);
        assert_eq!(session.rows("SELECT a, b FROM r WHERE k = 1"), left, "{delete}");
    }
    fill(&mut session);
    session.ok("DELETE v FROM r WHERE k = 1 AND a = 0 AND b = 0");
    assert_eq!(session.rows("SELECT v FROM r WHERE k = 1 AND a = 0 AND b IN (0, 1)"), "0;null");
}

#[test]
fn collections_are_replaced_added_to_and_taken_from() {
    let mut session = Session::with(&[
        "CREATE TYPE addr (street text, zip int)",
        "CREATE TABLE x (k int PRIMARY KEY, l list<int>, s set<text>, m map<text, int>, u addr, f frozen<set<int>>)",
    ]);
    session.ok("INSERT INTO x (k, l, s, m, u, f) VALUES (1, [1, 2], {'b', 'a', 'b'}, {'z': 1, 'a': 2}, {street: 'x', zip: 5}, {3, 1, 3})");
    let all = "SELECT l, s, m, u, f FROM x";
    assert_eq!(session.rows(all), "[1, 2],{'a', 'b'},{'a': 2, 'z': 1},{street: 'x', zip: 5},{1, 3}");
    session.ok("UPDATE x SET l = l + [3], s = s + {'c'}, m = m + {'q': 9}, u.zip = 6 WHERE k = 1");
    session.ok("UPDATE x SET l = [-1, 0] + l, s = s - {'a'}, m = m - {'z'} WHERE k = 1");
    session.ok("UPDATE x SET m['a'] = 7, m['b'] = 8, m['a'] = 7 WHERE k = 1");
    assert_eq!(
        session.rows(all),
        "[-1, 0, 1, 2, 3],{'b', 'c'},{'a': 7, 'b': 8, 'q': 9},{street: 'x', zip: 6},{1, 3}"
    );
    session.ok("DELETE m['b'], s['c'], u.street FROM x WHERE k = 1");
    assert_eq!(session.rows(all), "[-1, 0, 1, 2, 3],{'b'},{'a': 7, 'q': 9},{street: null, zip: 6},{1, 3}");
    session.ok("UPDATE x SET l = [9], s = {}, m = null, u = null WHERE k = 1");
    assert_eq!(session.rows(all), "[9],null,null,null,{1, 3}");
    session.ok("DELETE l, f FROM x WHERE k = 1");
    assert_eq!(session.rows(all), "null,null,null,null,null");
}

#[test]
fn a_batch_is_one_mutation_with_one_timestamp() {
    let mut session = Session::with(&[T, "CREATE TABLE o (k int PRIMARY KEY, v int)"]);
    let identity = Identity::default();
    let values = [BoundValue::Bytes(&[0, 0, 0, 7])];
    let prepared =
        session.backend.prepare("INSERT INTO o (k, v) VALUES (?, 1)", Some("ks"), &identity).unwrap();
    let entry = |query| BatchEntry::Query(query, Values::Positional(&[]));
    let batch = Batch {
        kind: BatchKind::Logged,
        entries: vec![
            entry("INSERT INTO t (k, c, v) VALUES (1, 1, 'a')"),
            entry("UPDATE t SET n = 5 WHERE k = 1 AND c = 1"),
            entry("INSERT INTO t (k, c, v) VALUES (1, 2, 'b')"),
            BatchEntry::Prepared(&prepared, Values::Positional(&values)),
        ],
    };
    let request = Request { timestamp_us: Some(77), ..request(&identity, Some("ks"), &[]) };
    let Outcome::Done(ticket) =
        session.backend.batch(&batch, &request, &mut Rows::default()).unwrap().outcome
    else {
        panic!()
    };
    ticket.wait().unwrap();
    assert_eq!(
        session.rows("SELECT c, v, writetime(v), n, writetime(n) FROM t"),
        "1,'a',77,5,77;2,'b',77,null,null"
    );
    assert_eq!(session.rows("SELECT k, writetime(v) FROM o"), "7,77");
    let wrong = Batch { kind: BatchKind::Logged, entries: vec![entry("SELECT * FROM t")] };
    let error = session.backend.batch(&wrong, &request, &mut Rows::default()).err().unwrap().to_string();
    assert_eq!(error, "Invalid statement in batch: only UPDATE, INSERT and DELETE statements are allowed.");
    let wrong = Batch { kind: BatchKind::Logged, entries: vec![entry("INSERT INTO o (k) VALUES (?)")] };
    let error = session.backend.batch(&wrong, &request, &mut Rows::default()).err().unwrap().to_string();
    assert_eq!(error, "There were 1 markers(?) in CQL but 0 bound variables");
}

#[test]
fn a_batch_too_large_is_refused_and_nothing_of_it_written() {
    let mut session = Session::with(&["CREATE TABLE o (k int PRIMARY KEY, v text)"]);
    let value = "x".repeat(30_000);
    let insert = |k| format!("INSERT INTO o (k, v) VALUES ({k}, '{value}');");
    let error = session.error(&format!("BEGIN BATCH {} {} APPLY BATCH", insert(1), insert(2)));
    assert_eq!(error, "Batch too large");
    assert_eq!(session.rows("SELECT k FROM o"), "");
    // A batch to one partition is a single mutation of any size.
    session.ok(&format!("BEGIN BATCH {} {} APPLY BATCH", insert(1), insert(1)));
    assert_eq!(session.rows("SELECT k FROM o"), "1");
}

/// Sizes as Cassandra 5.0.9 counts them: 8 bytes of deletions, 21 of an empty static row, 21 of a row, 20 of a cell,
/// and values.
#[test]
fn batches_are_warned_of_as_cassandra_warns() {
    let mut session = Session::with(&[
        "CREATE TABLE o (k int PRIMARY KEY, v text)",
        "CREATE TABLE g (k int PRIMARY KEY, v text) WITH gc_grace_seconds = 0",
    ]);
    let insert = |k: i32, bytes| format!("INSERT INTO o (k, v) VALUES ({k}, '{}');", "x".repeat(bytes));
    session.ok(&format!("BEGIN BATCH {} {} APPLY BATCH", insert(1, 2490), insert(2, 2490)));
    assert_eq!(session.warnings, [""; 0], "2 * 70 + 2 * 2490 = 5120 is not beyond 5 KiB");
    session.ok(&format!("BEGIN BATCH {} {} APPLY BATCH", insert(1, 2490), insert(2, 2491)));
    let warning = "Batch for [ks.o] is of size 5121, exceeding specified threshold of 5120 by 1.";
    assert_eq!(session.warnings, [warning]);
    session.ok(&format!("BEGIN BATCH {} APPLY BATCH", insert(1, 20_000)));
    assert_eq!(session.warnings, [""; 0], "one partition is one mutation");
    let many: String = (0..11).map(|k| insert(k, 1)).collect();
    session.ok(&format!("BEGIN UNLOGGED BATCH {many} APPLY BATCH"));
    let warning = "Unlogged batch covering 11 partitions detected against table [ks.o]. You should use a logged batch for \
                   atomicity, or asynchronous writes for performance.";
    assert_eq!(session.warnings, [warning]);
    session.ok(&format!("BEGIN BATCH {many} APPLY BATCH"));
    assert_eq!(session.warnings, [""; 0]);
    session.ok(
        "BEGIN BATCH INSERT INTO g (k, v) VALUES (1, 'a'); INSERT INTO o (k, v) VALUES (1, 'a'); APPLY BATCH",
    );
    let [warning] = &session.warnings[..] else { panic!("{:?}", session.warnings) };
    assert!(
        warning.starts_with(
            "Executing a LOGGED BATCH on table [ks.g], configured with a gc_grace_seconds of 0."
        )
    );
    session
        .ok("CREATE KEYSPACE three WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3}");
    assert_eq!(session.warnings.len(), 1, "more replicas than nodes: {:?}", session.warnings);
}

#[test]
fn levels_of_consistency_that_make_no_sense_are_refused() {
    let mut session = Session::with(&["CREATE TABLE o (k int PRIMARY KEY, v text)"]);
    let identity = Identity::default();
    let mut run = |query: &str, consistency| {
        let request = Request { consistency, ..request(&identity, Some("ks"), &[]) };
        session.backend.query(query, &request, &mut Rows::default()).map(|answer| session.settle(answer))
    };
    let text = run("SELECT * FROM o", 0x00).unwrap_err().to_string();
    assert_eq!(text, "ANY ConsistencyLevel is only supported for writes");
    for serial in [0x08, 0x09] {
        let text = run("INSERT INTO o (k) VALUES (1)", serial).unwrap_err().to_string();
        assert_eq!(text, "You must use conditional updates for serializable writes");
        assert!(run("SELECT * FROM o", serial).is_ok());
        assert!(run("SELECT * FROM o WHERE k IN (1)", serial).is_ok());
        let text = run("SELECT * FROM o WHERE k IN (1, 2)", serial).unwrap_err().to_string();
        assert_eq!(text, "SERIAL/LOCAL_SERIAL consistency may only be requested for one partition at a time");
    }
    assert!(run("INSERT INTO o (k) VALUES (1)", 0x00).is_ok());
}

#[test]
fn a_paging_state_that_nobody_gave_is_a_protocol_error_whatever_the_statement() {
    let mut session = Session::with(&["CREATE TABLE o (k int PRIMARY KEY, v text)"]);
    session.ok("INSERT INTO o (k) VALUES (1)");
    let identity = Identity::default();
    // The paging state of DESCRIBE under another schema: the key's length, its parts, no row, no limits.
    let release = crate::virtual_table::RELEASE_VERSION.as_bytes();
    let length = release.len() as u8;
    let other = [&[28 + length, 0, 1, 0, length][..], release, &[7; 16], &[0; 8], &[0, 1, 1]].concat();
    let garbage: [&[u8]; 2] = [b"", b"garbage"];
    for query in
        ["SELECT * FROM o", "SELECT count(*) FROM o", "INSERT INTO o (k) VALUES (2)", "DESCRIBE TABLES"]
    {
        for state in garbage {
            let request = Request { paging_state: Some(state), ..request(&identity, Some("ks"), &[]) };
            let error = session.backend.query(query, &request, &mut Rows::default()).err().expect(query);
            assert_eq!(
                (code(&error), error.to_string().as_str()),
                ("000A", "Invalid value for the paging state")
            );
        }
    }
    assert_eq!(session.rows("SELECT k FROM o"), "1");
    let request = Request { paging_state: Some(&other), ..request(&identity, Some("ks"), &[]) };
    let error = session.backend.query("DESCRIBE TABLES", &request, &mut Rows::default()).err().unwrap();
    assert!(error.to_string().starts_with("The schema has changed since the previous page"), "{error}");
}

#[test]
fn an_oversized_mutation_names_its_key() {
    let mut session = Session::with(&["CREATE TABLE o (k text, j int, v text, PRIMARY KEY ((k, j)))"]);
    let value = vec![b'x'; 17 << 20];
    let error = session.execute("INSERT INTO o (k, j, v) VALUES ('a', 5, ?)", &[bytes(&value)]).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, CqlError::Invalid(_)));
    assert!(text.starts_with("Rejected an oversized mutation (178"), "{text}");
    assert!(text.ends_with("/16777216) for keyspace: ks. Top keys are: o.a:5"), "{text}");
}

#[test]
fn a_prepared_statement_outlives_changes_of_the_schema_that_are_not_its_tables() {
    let mut session = Session::with(&["CREATE TABLE o (k int PRIMARY KEY, v int)"]);
    let identity = Identity::default();
    let insert = "INSERT INTO ks.o (k, v) VALUES (?, ?)";
    let prepared = session.backend.prepare(insert, Some("ks"), &identity).unwrap();
    assert_eq!(
        prepared.id,
        md5::compute(insert).0,
        "a statement that names its keyspace leaves the session's out"
    );
    assert_eq!(prepared.partition_key_markers, [0]);
    let short = session.backend.prepare("INSERT INTO o (k, v) VALUES (?, ?)", Some("ks"), &identity).unwrap();
    assert_eq!(short.id, md5::compute("ksINSERT INTO o (k, v) VALUES (?, ?)").0);
    session.ok("CREATE TABLE other (k int PRIMARY KEY)");
    session.ok("ALTER TABLE o WITH comment = 'of no concern'");
    let again = session.backend.prepared(&prepared.id).unwrap().unwrap();
    assert_eq!(again.id, prepared.id);
    assert!(again.epoch > prepared.epoch);
    let (one, two) = (1_i32.to_be_bytes(), 2_i32.to_be_bytes());
    let values = [bytes(&one), bytes(&two)];
    let request = request(&identity, None, &values);
    let answer = session.backend.execute(&again, &request, &mut Rows::default()).unwrap();
    let Outcome::Done(ticket) = answer.outcome else { panic!() };
    ticket.wait().unwrap();
    assert_eq!(session.rows("SELECT k, v FROM o"), "1,2");
    assert!(session.backend.prepared(&[9; 16]).unwrap().is_none());
}

/// The changes after which Cassandra drops prepared statements (`TableMetadata.changeAffectsPreparedStatements`).
#[test]
fn a_prepared_statement_has_to_be_prepared_again_when_its_table_has_changed() {
    let mut session =
        Session::with(&["CREATE TYPE u (a int)", "CREATE TABLE o (k int PRIMARY KEY, v int, f frozen<u>)"]);
    let identity = Identity::default();
    let texts = [
        "SELECT * FROM o",
        "INSERT INTO o (k, v) VALUES (?, ?)",
        "BEGIN BATCH UPDATE o SET v = ? WHERE k = ?; APPLY BATCH",
        "EXPLAIN SELECT v FROM o WHERE k = ?",
    ];
    for change in [
        "ALTER TABLE o ADD w int",
        "ALTER TABLE o DROP w",
        "ALTER TYPE u ADD b text",
        "CREATE INDEX o_v ON o (v)",
        "ALTER TABLE o WITH default_time_to_live = 5",
        "ALTER TABLE o WITH gc_grace_seconds = 5",
        "DROP TABLE o",
    ] {
        let ids = texts.map(|text| session.backend.prepare(text, Some("ks"), &identity).unwrap().id);
        session.ok(change);
        for (text, id) in texts.iter().zip(ids) {
            assert!(session.backend.prepared(&id).unwrap().is_none(), "{text} after {change}");
        }
    }
}

#[test]
fn markers_are_described_as_cassandra_describes_them() {
    let session = Session::with(&[
        "CREATE TABLE x (a int, b text, c int, m map<text, int>, s set<int>, t text, PRIMARY KEY ((a, b), c))",
    ]);
    let identity = Identity::default();
    let query = "UPDATE x USING TIMESTAMP ? AND TTL ? SET m[?] = ?, t = :named, s = s + ? WHERE b = ? AND a = ? AND c IN ?";
    let prepared = session.backend.prepare(query, Some("ks"), &identity).unwrap();
    let markers: Vec<String> =
        prepared.markers.iter().map(|m| format!("{}.{}.{} {}", m.keyspace, m.table, m.name, m.ty)).collect();
    assert_eq!(
        markers.join("; "),
        "ks.x.[timestamp] bigint; ks.x.[ttl] int; ks.x.key(m) text; ks.x.value(m) int; ks.x.named text; ks.x.s set<int>; \
         ks.x.b text; ks.x.a int; ks.x.in(c) frozen<list<int>>"
    );
    assert_eq!(prepared.partition_key_markers, [7, 6]);
}

/// Cassandra orders composites by their components; their bytes begin with lengths, and numbers have signs.
#[test]
fn composites_cluster_in_the_order_of_their_components() {
    // Each row has the number of its `c` times four, plus the number of its `d`.
    let (of_c, of_d) = (["1:aa", "7:a", "-5:z", "1:b", "1"], ["i@9", "UTF8Type@a", "i@-1", "Int32Type@3"]);
    let ordered_d = [2, 3, 0, 1];
    for (order, ordered_c) in [("ASC", [2, 4, 3, 0, 1]), ("DESC", [1, 0, 3, 4, 2])] {
        let mut session = Session::with(&[&format!(
            "CREATE TABLE t (k int, c 'CompositeType(Int32Type,ReversedType(UTF8Type))', d 'DynamicCompositeType(i=>Int32Type)', \
             v int, PRIMARY KEY (k, c, d)) WITH CLUSTERING ORDER BY (c {order}, d ASC)"
        )]);
        for (in_c, c) in of_c.iter().enumerate() {
            for (in_d, d) in of_d.iter().enumerate() {
                let v = in_c * 4 + in_d;
                session.ok(&format!("INSERT INTO t (k, c, d, v) VALUES (0, '{c}', '{d}', {v})"));
            }
        }
        let numbers = |c: &[usize]| {
            let of = |c: &usize| ordered_d.map(|d| (c * 4 + d).to_string()).join(";");
            c.iter().map(of).collect::<Vec<_>>().join(";")
        };
        let check = |session: &mut Session| {
            assert_eq!(session.rows("SELECT v FROM t WHERE k = 0"), numbers(&ordered_c), "{order}");
            assert_eq!(session.rows("SELECT v FROM t WHERE k = 0 AND c = '7:a'"), numbers(&[1]));
            let of_slice: Vec<usize> = ordered_c.into_iter().filter(|c| [0, 1].contains(c)).collect();
            let slice = "SELECT v FROM t WHERE k = 0 AND c > '1:b' AND c <= '7:a'";
            assert_eq!(session.rows(slice), numbers(&of_slice), "{order}");
            // An alias and the class that it denotes are one value.
            assert_eq!(session.rows("SELECT v FROM t WHERE k = 0 AND c = '1' AND d = 'i@3'"), "19");
        };
        check(&mut session);
        session.backend.database().flush_all().unwrap();
        check(&mut session);
        check(&mut session.crashed());
    }
}

/// Every kind of deletion with a timestamp ahead of the clock: a conditional write that was applied is there.
#[test]
fn an_applied_condition_is_above_every_deletion_of_its_row() {
    let deletions = [
        "DELETE FROM t USING TIMESTAMP # WHERE k = @",
        "DELETE FROM t USING TIMESTAMP # WHERE k = @ AND c = 1",
        "DELETE FROM t USING TIMESTAMP # WHERE k = @ AND c > 0",
        "DELETE FROM t USING TIMESTAMP # WHERE k = @ AND c >= 1 AND c < 2",
        "DELETE v, n FROM t USING TIMESTAMP # WHERE k = @ AND c = 1",
        "DELETE s FROM t USING TIMESTAMP # WHERE k = @",
        "INSERT INTO t (k, c, v, n) VALUES (@, 1, null, null) USING TIMESTAMP # AND TTL 1",
    ];
    let mut session = Session::with(&[T]);
    for (kind, deletion) in deletions.iter().enumerate() {
        for (turn, ahead_us) in [4_102_444_800_000_000, 7_000_000_000_000_000_000_i64].into_iter().enumerate()
        {
            let key = (kind * 2 + turn).to_string();
            session.ok(&deletion.replace('#', &ahead_us.to_string()).replace('@', &key));
            let row = format!("WHERE k = {key} AND c = 1");
            let set = format!("UPDATE t SET s = 'a', v = 'b', n = 1 {row} IF v = null");
            assert_eq!(session.rows(&set), "true", "{deletion}");
            assert_eq!(session.rows(&format!("SELECT s, v, n FROM t {row}")), "'a','b',1", "{deletion}");
        }
    }
    session.ok(&format!("DELETE FROM t USING TIMESTAMP {} WHERE k = 99", i64::MAX));
    assert!(
        session.error("INSERT INTO t (k, c) VALUES (99, 1) IF NOT EXISTS").contains("greatest timestamp")
    );
    assert_eq!(session.rows("SELECT c FROM t WHERE k = 99"), "");
}
