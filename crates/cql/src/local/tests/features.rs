//! Vector search, masks, dropping COMPACT STORAGE, tombstone warnings, guardrails, EXPLAIN of writes that read first.
//! The expected texts are Cassandra's (recorded by tests/conformance/scripts).

use super::harness::Session;
use crate::backend::{Backend, Identity};
use crate::guardrails::{Feature, Guardrails, Threshold};
use crate::local::LocalOptions;

const T: &str = "CREATE TABLE t (k int, c int, v int, l list<int>, PRIMARY KEY (k, c))";

fn with(options: LocalOptions, statements: &[&str]) -> Session {
    let mut session = Session::with_options(options);
    session.ok("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    session.ok("USE ks");
    statements.iter().for_each(|statement| session.ok(statement));
    session
}

#[test]
fn rows_come_in_the_order_of_their_nearness_also_after_a_crash() {
    let mut session = Session::with(&["CREATE TABLE d (k int PRIMARY KEY, v vector<float, 2>, n int)"]);
    session.ok("CREATE CUSTOM INDEX ON d (v) USING 'sai'");
    session.ok("CREATE CUSTOM INDEX ON d (n) USING 'sai'");
    let vectors = [(1, "[1, 0]"), (2, "[0.8, 0.3]"), (3, "[0, 1]"), (4, "[-1, 0]"), (5, "[0.5, 0.5]")];
    for (k, v) in vectors {
        session.ok(&format!("INSERT INTO d (k, v, n) VALUES ({k}, {v}, {})", k % 2));
    }
    session.ok("INSERT INTO d (k, n) VALUES (6, 1)");
    assert_eq!(session.rows("SELECT k FROM d ORDER BY v ANN OF [1, 0] LIMIT 3"), "1;2;5");
    assert_eq!(session.rows("SELECT k FROM d ORDER BY v ANN OF [1, 0] LIMIT 1000"), "1;2;5;3;4");
    assert_eq!(session.rows("SELECT k FROM d WHERE n = 1 ORDER BY v ANN OF [1, 0] LIMIT 9"), "1;5;3");
    session.ok("DELETE FROM d WHERE k = 1");
    let mut session = session.crashed();
    assert_eq!(session.rows("SELECT k FROM d ORDER BY v ANN OF [1, 0] LIMIT 2"), "2;5");
    let error = session.error("SELECT k FROM d ORDER BY v ANN OF [1, 0]");
    assert!(error.starts_with("Top-K queries must have a limit specified"), "{error}");
    let error = session.error("SELECT k FROM d ORDER BY n ANN OF 1 LIMIT 2");
    assert_eq!(error, "ANN ordering is only supported on float vector indexes");
}

#[test]
fn a_statement_that_cannot_be_kept_is_refused_and_every_other_is_found_by_its_id() {
    let options = LocalOptions { prepared_bytes_max: 4 << 20, ..LocalOptions::default() };
    let session = with(options, &[T]);
    let identity = Identity::server();
    let lengths = [1_000, 100_000, 300_000, 500_000, 900_000, 1_200_000, 3_000_000];
    let is_refused = lengths.map(|length| {
        let text = format!("SELECT v FROM t /* {} */", "x".repeat(length));
        match session.backend.prepare(&text, Some("ks"), &identity) {
            Ok(prepared) => {
                let found = session.backend.prepared(&prepared.id).unwrap();
                assert!(found.is_some(), "of {length} bytes");
                false
            }
            Err(error) => {
                assert!(error.to_string().contains("prepared_statements_cache_size"), "{error}");
                true
            }
        }
    });
    assert_eq!(is_refused, [false, false, false, false, false, true, true]);
}

#[test]
fn masks_stand_in_the_schema_and_outlive_a_crash() {
    let options = LocalOptions { masks_columns: true, ..LocalOptions::default() };
    let mut session =
        with(options, &["CREATE TABLE t (k int PRIMARY KEY, v text MASKED WITH mask_inner(1, null))"]);
    session.ok("ALTER TABLE t ADD w int MASKED WITH DEFAULT");
    session.ok("INSERT INTO t (k, v, w) VALUES (1, 'secret', 2)");
    let mut session = session.crashed();
    assert_eq!(session.rows("SELECT v, w FROM t"), "'secret',2");
    let masks = "SELECT column_name, function_keyspace, function_name, function_argument_types, \
                 function_argument_values, function_argument_nulls FROM system_schema.column_masks \
                 WHERE keyspace_name = 'ks'";
    assert_eq!(
        session.rows(masks),
        "'v','system','mask_inner',['int', 'int'],['1', ''],[False, True];\
         'w','system','mask_default',[],[],[]"
            .replace("False", "false")
            .replace("True", "true")
    );
    let described = session.rows("DESCRIBE TABLE t");
    assert!(described.contains("v text MASKED WITH system.mask_inner(1, null)"), "{described}");
    assert!(described.contains("w int MASKED WITH system.mask_default()"), "{described}");
    session.ok("ALTER TABLE t ALTER v DROP MASKED");
    session.ok("ALTER TABLE t DROP w");
    assert_eq!(session.rows(masks), "");
    // In the session after the crash masks are not enabled.
    assert!(session.error("ALTER TABLE t ALTER v MASKED WITH DEFAULT").starts_with("Cannot mask columns"));
}

#[test]
fn a_compact_table_that_is_let_go_shows_what_it_hid() {
    let options = LocalOptions { drops_compact_storage: true, ..LocalOptions::default() };
    let mut session = with(options, &["CREATE TABLE p (k int PRIMARY KEY, v int) WITH COMPACT STORAGE"]);
    session.ok("INSERT INTO p (k, v) VALUES (1, 7)");
    assert_eq!(session.rows("SELECT * FROM p"), "1,7");
    session.ok("ALTER TABLE p DROP COMPACT STORAGE");
    assert_eq!(session.rows("SELECT k, v, column1, value FROM p"), "1,7,null,null");
    let error = session.error("ALTER TABLE p DROP COMPACT STORAGE");
    assert_eq!(error, "Cannot DROP COMPACT STORAGE on table without COMPACT STORAGE");
}

#[test]
fn changes_of_compact_tables_refuse_what_cassandra_refuses_in_its_words() {
    let mut session = with(
        LocalOptions { drops_compact_storage: true, ..LocalOptions::default() },
        &[
            "CREATE TABLE declared (k int PRIMARY KEY, a int, b int) WITH COMPACT STORAGE",
            "CREATE TABLE dense (k int, c int, v int, PRIMARY KEY (k, c)) WITH COMPACT STORAGE",
            "CREATE TABLE keys (k int, c int, d int, PRIMARY KEY (k, c, d)) WITH COMPACT STORAGE",
            "CREATE INDEX ON declared (a)",
        ],
    );
    let (key, value) = (
        "Secondary indexes are not supported on PRIMARY KEY columns in COMPACT STORAGE tables",
        "Secondary indexes are not supported on compact value column of COMPACT STORAGE tables",
    );
    let keyspace = session
        .rows("SELECT keyspace_name FROM system_schema.tables WHERE table_name = 'dense' ALLOW FILTERING");
    let unknown = |name: &str, table: &str| {
        format!("Undefined column name {name} in table {}.{table}", keyspace.trim_matches('\''))
    };
    for (statement, refusal) in [
        ("CREATE INDEX ON dense (k)", key.to_owned()),
        ("CREATE INDEX ON dense (c)", key.to_owned()),
        ("CREATE INDEX ON dense (v)", value.to_owned()),
        ("CREATE INDEX ON dense (v) USING 'sai'", value.to_owned()),
        ("CREATE INDEX ON declared (k)", key.to_owned()),
        ("CREATE INDEX ON declared (value)", unknown("value", "declared")),
        ("CREATE INDEX ON declared (column1)", unknown("column1", "declared")),
        ("CREATE INDEX ON keys (value)", unknown("value", "keys")),
        ("ALTER TABLE declared RENAME column1 TO x", unknown("column1", "declared")),
        ("ALTER TABLE declared RENAME a TO x", "Cannot rename non PRIMARY KEY column a".into()),
        ("ALTER TABLE keys RENAME value TO x", unknown("value", "keys")),
        ("ALTER TABLE dense ADD x int", "Cannot add new column to a COMPACT STORAGE table".into()),
        ("ALTER TABLE dense DROP c", "Cannot drop PRIMARY KEY column c".into()),
        ("ALTER TABLE declared DROP column1", "Cannot drop PRIMARY KEY column column1".into()),
        (
            "ALTER TABLE declared DROP a",
            "Cannot drop column a because it has dependent secondary indexes (declared_a_idx)".into(),
        ),
        (
            "ALTER TABLE dense WITH extensions = {'helenus.flags': ''}",
            "Extension 'helenus.flags' says how a table is made: only CREATE TABLE can have it".into(),
        ),
        (
            "CREATE TABLE x (k int, c int, v int, PRIMARY KEY (k, c)) WITH COMPACT STORAGE AND extensions = {'helenus.flags': 'dense'}",
            "COMPACT STORAGE and extension 'helenus.flags' both say how rows are stored; leave one of them out".into(),
        ),
        (
            "CREATE TABLE x (k int, v int, PRIMARY KEY (k)) WITH extensions = {'helenus.flags': 'dense'}",
            "Extension 'helenus.flags' = 'dense' does not fit the columns of the table: a compact table has clustering columns"
                .into(),
        ),
    ] {
        assert_eq!(session.error(statement), refusal, "{statement}");
    }
    session.ok("ALTER TABLE dense RENAME c TO x AND k TO y");
    session.ok("ALTER TABLE declared DROP b");
    let described = session.rows("DESCRIBE TABLE dense");
    assert!(
        described
            .contains("PRIMARY KEY (y, x)\n) WITH COMPACT STORAGE\n    AND CLUSTERING ORDER BY (x ASC)\n"),
        "{described}"
    );
    let described = session.rows("DESCRIBE TABLE declared");
    assert!(
        described
            .contains("(\n    k int PRIMARY KEY,\n    a int\n) WITH COMPACT STORAGE\n    AND additional"),
        "{described}"
    );
    assert!(!session.rows("DESCRIBE TABLE keys").contains("value"));
}

#[test]
fn a_read_that_passes_many_tombstones_is_warned_of() {
    let mut session = with(LocalOptions { tombstones_warn: 5, ..LocalOptions::default() }, &[T]);
    for c in 0..10 {
        session.ok(&format!("DELETE FROM t WHERE k = 1 AND c = {c}"));
    }
    session.ok("INSERT INTO t (k, c) VALUES (1, 11)");
    assert_eq!(session.rows("SELECT c FROM t WHERE k = 1"), "11");
    let [warning] = &session.warnings[..] else { panic!("{:?}", session.warnings) };
    assert!(
        warning.starts_with("Read 1 live rows and 10 tombstone cells for query SELECT c FROM t"),
        "{warning}"
    );
    assert!(warning.ends_with("(see tombstone_warn_threshold)"), "{warning}");
    assert_eq!(session.rows("SELECT c FROM t WHERE k = 1 AND c > 7"), "11");
    assert!(session.warnings.is_empty());
}

#[test]
fn a_read_that_passes_too_many_tombstones_fails() {
    let mut session = with(LocalOptions { tombstones_fail: 5, ..LocalOptions::default() }, &[T]);
    for c in 0..6 {
        session.ok(&format!("INSERT INTO t (k, c) VALUES (1, {c})"));
        session.ok(&format!("DELETE FROM t WHERE k = 1 AND c = {c}"));
    }
    session.ok("INSERT INTO t (k, c) VALUES (1, 11)");
    let failure = "Operation failed - received 0 responses and 1 failures: READ_TOO_MANY_TOMBSTONES from ";
    for query in ["SELECT c FROM t WHERE k = 1", "SELECT c FROM t", "SELECT count(*) FROM t WHERE k = 1"] {
        let error = session.error(query);
        assert!(error.starts_with(failure), "{query}: {error}");
    }
    assert_eq!(session.rows("SELECT c FROM t WHERE k = 1 AND c > 0"), "11");
    assert_eq!(session.rows("SELECT c FROM t WHERE k = 1 ORDER BY c DESC LIMIT 1"), "11");
    // A query that combines rows starts a new count after each internal page.
    for c in 20..30_020 {
        session.ok(&format!("INSERT INTO t (k, c) VALUES (2, {c})"));
        if c % 2500 == 0 {
            session.ok(&format!("DELETE FROM t WHERE k = 2 AND c = {c}"));
        }
    }
    assert_eq!(session.rows("SELECT count(*) FROM t WHERE k = 2"), "29988");
    assert!(session.error("SELECT c FROM t WHERE k = 2").starts_with(failure));
}

#[test]
fn reads_and_lists_are_guarded() {
    let at = |warn, fail| Threshold { warn: Some(warn), fail: Some(fail) };
    let guardrails = Guardrails {
        partition_keys_in_select: at(1, 2),
        secondary_indexes_per_table: at(1, 1),
        disabled: [Feature::ReadBeforeWriteLists].into(),
        ..Guardrails::default()
    };
    let mut session = with(LocalOptions { guardrails, ..LocalOptions::default() }, &[T]);
    session.ok("SELECT * FROM t WHERE k IN (1, 2)");
    assert_eq!(
        session.warnings,
        [
            "Guardrail partition_keys_in_select violated: Query with partition keys in IN clause on table t, with number of \
          partition keys 2 exceeds warning threshold of 1."
        ]
    );
    assert_eq!(
        session.error("SELECT * FROM t WHERE k IN (1, 2, 3)"),
        "Guardrail partition_keys_in_select violated: Aborting query with partition keys in IN clause on table t, number of \
         partition keys 3 exceeds fail threshold of 2."
    );
    session.ok("INSERT INTO t (k, c, l) VALUES (1, 1, [1])");
    assert_eq!(
        session.error("UPDATE t SET l[0] = 2 WHERE k = 1 AND c = 1"),
        "Guardrail read_before_write_list_operations violated: Setting of list items by index requiring read before write \
         is not allowed"
    );
    session.ok("CREATE INDEX ON t (v)");
    assert_eq!(
        session.error("CREATE INDEX other ON t (l)"),
        "Guardrail secondary_indexes_per_table violated: Tables cannot have more than 1 secondary indexes, aborting the \
         creation of secondary index other on table t"
    );
}

#[test]
fn writes_that_read_first_are_explained_and_run_only_when_analyzed() {
    let mut session = Session::with(&[T, "CREATE TABLE n (k int PRIMARY KEY, n counter)"]);
    session.ok("INSERT INTO t (k, c, v, l) VALUES (1, 1, 5, [1, 2])");
    let lines = |session: &mut Session, query: &str| -> Vec<String> {
        let rows = session.run(query).unwrap_or_else(|error| panic!("{query}: {error}"));
        rows.iter().map(|row| format!("{} {}", row[1], row[2]).replace('\'', "")).collect()
    };
    let explained = lines(&mut session, "EXPLAIN UPDATE t SET v = 6 WHERE k = 1 AND c = 1 IF v = 5");
    assert_eq!(explained, ["write update", "lock 1 partition", "read first k = 1"]);
    assert_eq!(session.rows("SELECT v FROM t"), "5");
    let ran = lines(&mut session, "EXPLAIN ANALYZE UPDATE t SET v = 6 WHERE k = 1 AND c = 1 IF v = 5");
    assert!(ran.contains(&"condition applied".to_owned()), "{ran:?}");
    assert_eq!(session.rows("SELECT v FROM t"), "6");
    let ran = lines(&mut session, "EXPLAIN ANALYZE UPDATE t SET v = 7 WHERE k = 1 AND c = 1 IF v = 5");
    assert!(ran.contains(&"condition not applied".to_owned()), "{ran:?}");
    let explained = lines(&mut session, "EXPLAIN UPDATE t SET l = l - [1] WHERE k = 1 AND c = 1");
    assert_eq!(explained[..3], ["write update", "lock 1 partition", "read first k = 1"]);
    lines(&mut session, "EXPLAIN ANALYZE UPDATE t SET l = l - [1] WHERE k = 1 AND c = 1");
    assert_eq!(session.rows("SELECT l FROM t"), "[2]");
    let explained = lines(&mut session, "EXPLAIN UPDATE n SET n = n + 2 WHERE k = 1");
    assert!(explained.contains(&"read first counters".to_owned()), "{explained:?}");
    assert_eq!(session.rows("SELECT n FROM n"), "");
    lines(&mut session, "EXPLAIN ANALYZE UPDATE n SET n = n + 2 WHERE k = 1");
    assert_eq!(session.rows("SELECT n FROM n"), "2");
}

#[test]
fn partitions_that_are_asked_for_most_are_listed() {
    let mut session = Session::with(&[T]);
    for _ in 0..64 {
        session.ok("INSERT INTO t (k, c) VALUES (7, 1)");
        session.ok("SELECT * FROM t WHERE k = 7");
    }
    let top = "SELECT operation, rank, partition FROM system_views.top_partitions \
               WHERE keyspace_name = 'ks' AND table_name = 't'";
    assert_eq!(session.rows(top), "'read',1,'7';'write',1,'7'");
}

#[test]
fn logarithms_of_too_many_digits_are_refused_and_say_how_to_go_on() {
    let mut session =
        Session::with(&["CREATE TABLE t (k int PRIMARY KEY, d decimal)", "INSERT INTO t (k) VALUES (1)"]);
    for function in ["log", "log10", "exp"] {
        for digits in [1001, 5000, 100_000] {
            session.ok(&format!("UPDATE t SET d = 0.{} WHERE k = 1", "7".repeat(digits)));
            let error = session.error(&format!("SELECT {function}(d) FROM t WHERE k = 1"));
            let advice = "exp, log and log10 take numbers of at most 1000 digits; round or cast the number to double first";
            assert_eq!(error, format!("execution of 'system.{function}[decimal]' failed: {advice}"));
        }
        let rounded = format!("SELECT {function}(CAST(d AS double)) FROM t WHERE k = 1");
        assert!(session.run(&rounded).is_ok(), "{rounded}");
    }
}

#[test]
fn what_is_computed_of_no_rows_is_computed() {
    let mut session = Session::with(&[T]);
    assert_eq!(session.rows("SELECT to_json(v), count(*) FROM t"), "'null',0");
}
