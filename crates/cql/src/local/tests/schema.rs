//! Schema statements produce the same `system_schema` as Cassandra 5.0.9, and notify listeners.

use super::harness::{Session, code, request};
use crate::backend::{Backend, Identity, Outcome};
use crate::error::CqlError;
use helenus_engine::{SchemaChange, SchemaChangeKind};
use parking_lot::Mutex;
use std::sync::Arc;

fn made() -> Session {
    let mut session = Session::new(3);
    include_str!("schema.cql").lines().filter(|line| !line.is_empty()).for_each(|line| session.ok(line));
    session
}

fn compare(session: &mut Session) {
    let mut wrong = Vec::new();
    let mut answers = include_str!("schema_answers.txt").lines().peekable();
    while let Some(query) = answers.next() {
        let mut expected = Vec::new();
        while let Some(row) = answers.next_if(|line| line.starts_with("  ")) {
            expected.push(row.trim_start().to_owned());
        }
        let found: Vec<String> = session.run(query).unwrap().iter().map(|row| row.join(", ")).collect();
        for row in expected.iter().filter(|row| !found.contains(row)) {
            wrong.push(format!("cassandra only: {row}"));
        }
        for row in found.iter().filter(|row| !expected.contains(row)) {
            wrong.push(format!("here only:      {row}"));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn system_schema_says_what_cassandra_s_says() {
    compare(&mut made());
}

#[test]
fn the_schema_survives_a_crash() {
    compare(&mut made().crashed());
}

#[test]
fn listeners_and_answers_tell_what_changed() {
    let session = Session::with(&[]);
    let heard = Arc::new(Mutex::new(Vec::new()));
    let ears = heard.clone();
    let _listening =
        session.backend.on_schema_change(Box::new(move |change| ears.lock().push(change.clone())));
    let identity = Identity::default();
    let told = |query: &str| {
        let request = request(&identity, Some("ks"), &[]);
        match session.backend.query(query, &request, &mut super::harness::Rows::default()).unwrap().outcome {
            Outcome::SchemaChanged(change, ticket) => {
                ticket.wait().unwrap();
                change
            }
            _ => panic!("{query} is no schema change"),
        }
    };
    let change = |kind, name: Option<&str>| SchemaChange {
        kind,
        keyspace: "ks".into(),
        name: name.map(Into::into),
        is_type: false,
    };
    let created = change(SchemaChangeKind::Created, Some("t"));
    assert_eq!(told("CREATE TABLE t (k int PRIMARY KEY)"), Some(created.clone()));
    assert_eq!(told("CREATE TABLE IF NOT EXISTS t (k int PRIMARY KEY)"), None);
    let updated = change(SchemaChangeKind::Updated, Some("t"));
    assert_eq!(told("ALTER TABLE t ADD v int"), Some(updated.clone()));
    let dropped = change(SchemaChangeKind::Dropped, Some("t"));
    assert_eq!(told("DROP KEYSPACE ks"), Some(change(SchemaChangeKind::Dropped, None)));
    let heard = heard.lock();
    assert!(
        [created, updated, dropped, change(SchemaChangeKind::Dropped, None)]
            .iter()
            .all(|c| heard.contains(c))
    );
}

#[test]
fn the_granularity_of_the_row_index_is_an_extension_that_is_checked_kept_and_shown() {
    let mut session = Session::with(&[
        "CREATE TABLE t (k int, c int, PRIMARY KEY (k, c)) WITH extensions = {'helenus.row_index_granularity': '1KiB'}",
    ]);
    let granularity = |session: &Session| {
        session.backend.schema().table("ks", "t").unwrap().options.row_index_block_bytes()
    };
    assert_eq!(granularity(&session), Some(1024));
    let shown = session.rows("DESCRIBE TABLE t");
    assert!(shown.contains("extensions = {''helenus.row_index_granularity'': 0x314b6942}"), "{shown}");
    // The described form is accepted, and so are extensions of other programs.
    session
        .ok("ALTER TABLE t WITH extensions = {'helenus.row_index_granularity': 0x36354b6942, 'other': 0x00}");
    assert_eq!(granularity(&session), Some(65 << 10));
    for (value, text) in [
        (
            "'helenus.row_index_granularity': '4 rows'",
            "Invalid value '4 rows' for extension 'helenus.row_index_granularity': a size from 1KiB to 16MiB is \
             expected, such as '4KiB'",
        ),
        (
            "'helenus.speed': 'more'",
            "Unknown extension 'helenus.speed'; Helenus has only 'helenus.row_index_granularity'",
        ),
    ] {
        let error = session.run(&format!("ALTER TABLE t WITH extensions = {{{value}}}")).unwrap_err();
        assert_eq!((code(&error), error.to_string().as_str()), ("2300", text));
    }
    assert_eq!(granularity(&session.crashed()), Some(65 << 10));
}

#[test]
fn a_schema_change_is_never_made_where_it_may_not_block() {
    let session = Session::with(&["CREATE TABLE t (k int PRIMARY KEY)"]);
    let identity = Identity::default();
    for query in ["CREATE TABLE u (k int PRIMARY KEY)", "DROP TABLE t", "TRUNCATE t"] {
        let request = super::harness::request(&identity, Some("ks"), &[]);
        let request = crate::backend::Request { may_block: false, ..request };
        let refused = session.backend.query(query, &request, &mut super::harness::Rows::default());
        assert!(matches!(refused, Err(CqlError::WouldBlock)), "{query}");
    }
    assert!(session.backend.schema().table("ks", "u").is_none());
}

#[test]
fn what_is_not_supported_yet_says_so() {
    let mut session = Session::with(&["CREATE TABLE t (k int PRIMARY KEY, v int)"]);
    const ANONYMOUS: &str = "You have to be logged in and not anonymous to perform this request";
    const VIEW: &str = "CREATE MATERIALIZED VIEW v AS SELECT * FROM t WHERE k IS NOT NULL PRIMARY KEY (k)";
    for (query, answer) in [
        (
            VIEW,
            (
                "2200",
                "CREATE MATERIALIZED VIEW is not supported yet: create a table with the primary key that the view has, and \
                 write both tables in one batch",
            ),
        ),
        (
            "CREATE FUNCTION f (a int) CALLED ON NULL INPUT RETURNS int LANGUAGE java AS 'return a;'",
            ("2200", "CREATE FUNCTION is not supported yet: compute its results in the client"),
        ),
        (
            "CREATE OR REPLACE AGGREGATE a (int) SFUNC f STYPE int",
            ("2200", "CREATE AGGREGATE is not supported yet: compute its results in the client"),
        ),
        ("CREATE ROLE r", ("2100", ANONYMOUS)),
        ("LIST USERS", ("2100", ANONYMOUS)),
        ("DROP IDENTITY IF EXISTS 'i'", ("2100", ANONYMOUS)),
    ] {
        let error = session.run(query).unwrap_err();
        assert_eq!((code(&error), error.to_string().as_str()), answer, "{query}");
    }
}

/// Cassandra's texts name settings that have no effect here.
#[test]
fn refusals_name_no_setting_without_effect() {
    let mut session = Session::with(&["CREATE TABLE t (k int PRIMARY KEY, v vector<float, 2>)"]);
    for (query, answer) in [
        (
            "CREATE TABLE u (k int PRIMARY KEY) WITH auto_repair = {'full_enabled': 'true'}",
            (
                "2300",
                "auto_repair option is not supported, because there is no other copy to repair from; leave it out",
            ),
        ),
        (
            "ALTER TABLE t WITH compaction = {'class': 'TimeWindowCompactionStrategy', \
             'unsafe_aggressive_sstable_expiration': 'true'}",
            (
                "2300",
                "unsafe_aggressive_sstable_expiration is not allowed, because dropping an SSTable before those that it \
                 shadows brings deleted rows back; set it to false",
            ),
        ),
        (
            "CREATE INDEX ON t (v) USING 'sai' WITH OPTIONS = {'construction_beam_width': '9'}",
            (
                "2200",
                "Construction beam width cannot be set, because ANN searches are exact and need no graph; leave \
                 construction_beam_width out",
            ),
        ),
    ] {
        let error = session.run(query).unwrap_err();
        assert_eq!((code(&error), error.to_string().as_str()), answer, "{query}");
    }
}

/// The expected answers are those of Cassandra 5.0.9.
#[test]
fn what_is_of_a_kind_that_is_not_built_does_not_exist() {
    let mut session = Session::with(&["CREATE TABLE t (k int PRIMARY KEY, v int)"]);
    for keyspace in ["ks", "nope"] {
        for statement in [
            "DROP MATERIALIZED VIEW IF EXISTS {}.v",
            "ALTER MATERIALIZED VIEW IF EXISTS {}.v WITH comment = 'x'",
            "DROP FUNCTION IF EXISTS {}.f",
            "DROP FUNCTION IF EXISTS {}.f(int)",
            "DROP AGGREGATE IF EXISTS {}.a",
            "DROP TRIGGER IF EXISTS x ON {}.t",
        ] {
            session.run(&statement.replace("{}", keyspace)).unwrap();
        }
        for (statement, text) in [
            ("DROP MATERIALIZED VIEW {}.v", "Materialized view '{}.v' doesn't exist"),
            ("ALTER MATERIALIZED VIEW {}.v WITH comment = 'x'", "Materialized view '{}.v' doesn't exist"),
            ("DROP FUNCTION {}.f", "Function '{}.f' doesn't exist"),
            ("DROP FUNCTION {}.f(int, text)", "Function '{}.f(int, text)' doesn't exist"),
            ("DROP AGGREGATE {}.a(int)", "Aggregate '{}.a(int)' doesn't exist"),
            ("DROP TRIGGER x ON {}.t", "Trigger 'x' on '{}.t' doesn't exist"),
            (
                "CREATE TRIGGER x ON {}.nope USING 'a.b.C'",
                if keyspace == "ks" { "Table 'nope' doesn't exist" } else { "Keyspace 'nope' doesn't exist" },
            ),
        ] {
            let error = session.run(&statement.replace("{}", keyspace)).unwrap_err();
            let expected = text.replace("{}", keyspace);
            assert_eq!((code(&error), error.to_string()), ("2200", expected), "{statement}");
        }
    }
    let error = session.run("CREATE TRIGGER x ON t USING 'a.b.C'").unwrap_err();
    assert_eq!(error.to_string(), "Trigger class 'a.b.C' couldn't be loaded");
}

/// Written by Cassandra 5.0.9, without most table options.
const COMMENTED: &str = r#"CREATE TYPE IF NOT EXISTS s.pair (
    a int
);

/*
Warning: Table s.t omitted because it has constructs not compatible with CQL (was created via legacy API).
Approximate structure, for reference:
(this should not be used to reproduce this schema)

CREATE TABLE IF NOT EXISTS s.t (
    column1 boolean,
    value1 frozen<pair>,
    "it's" text,
    gone int static,
    again int static,
    PRIMARY KEY ((column1, value1))
) WITH COMPACT STORAGE
    AND ID = a404cf40-e9bf-11f1-8887-9b4370a46eee
    AND CLUSTERING ORDER BY (column2 ASC)
    AND comment = 'it''s; one';
ALTER TABLE s.t DROP gone USING TIMESTAMP 1700000000000000;
ALTER TABLE s.t DROP again USING TIMESTAMP 1700000000000001;
ALTER TABLE s.t ADD again int static;
*/

CREATE INDEX IF NOT EXISTS t_again_idx ON s.t (again);

/*
Warning: Table s.u omitted because it has constructs not compatible with CQL (was created via legacy API).
Approximate structure, for reference:
(this should not be used to reproduce this schema)

CREATE TABLE IF NOT EXISTS s.u (
    k int,
    c int,
    PRIMARY KEY (k, c)
) WITH COMPACT STORAGE
    AND ID = a404cf40-e9bf-11f1-8887-9b4370a46eef
    AND CLUSTERING ORDER BY (c DESC)
    AND comment = '';
*/
"#;

#[test]
fn compact_tables_are_read_from_the_comments_that_cassandra_writes_of_them() {
    let session = Session::new(3);
    let schema = session.backend.schema_of_text(COMMENTED).unwrap();
    let (t, u) = (schema.table("s", "t").unwrap(), schema.table("s", "u").unwrap());
    assert!(t.is_static_compact() && t.flags.is_empty(), "{:?}", t.flags);
    let names = |table: &helenus_model::schema::Table| {
        table.columns().map(|column| column.name.to_string()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names(t), "column1 value1 column2 again it's value");
    assert_eq!(t.dropped.keys().map(|name| &**name).collect::<Vec<_>>(), ["again", "gone"]);
    assert_eq!(t.options.comment, "it's; one");
    assert!(t.indexes.contains_key("t_again_idx"));
    assert_eq!(u.flags, ["dense"]);
    assert!(u.clustering[0].reversed && u.columns_in_select_order().count() == 2);
    // A comment of which nothing can be executed is ignored.
    let unknown =
        COMMENTED.replace("frozen<pair>", "frozen<nothing>").replace("CREATE INDEX IF", "-- CREATE INDEX IF");
    let schema = session.backend.schema_of_text(&unknown).unwrap();
    assert!(schema.table("s", "t").is_none() && schema.table("s", "u").is_some());
}
