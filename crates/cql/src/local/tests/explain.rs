//! EXPLAIN and EXPLAIN ANALYZE on known tables: their lines, and the counts of a run.

use super::harness::{Session, request};
use crate::backend::{Backend, BoundValue, Identity, Probe, Trace};
use helenus_engine::read::SkipReason;
use parking_lot::Mutex;
use std::collections::HashMap;

const T: &str = "CREATE TABLE t (k int, c int, v text, PRIMARY KEY (k, c))";

/// The text of a string literal.
fn text(literal: &str) -> String {
    literal[1..literal.len() - 1].replace("''", "'")
}

/// A session whose SSTables have names in the order of their flushes: A is the first.
struct Explained {
    session: Session,
    names: HashMap<String, String>,
}

impl Explained {
    fn with(statements: &[&str]) -> Explained {
        Explained { session: Session::with(statements), names: HashMap::new() }
    }

    fn ok(&mut self, query: &str) {
        self.session.ok(query);
    }

    fn flush(&mut self, table: &str) {
        let database = self.session.backend.database();
        database.flush_all().unwrap();
        let schema = database.schema();
        let view = database.view(schema.table("ks", table).unwrap()).unwrap();
        for sstable in &view.sstables {
            let name = char::from(b'A' + self.names.len() as u8).to_string();
            self.names.entry(sstable.descriptor().id.to_string()).or_insert(name);
        }
    }

    /// The lines as `operation | target | detail`, with the SSTables' names replaced.
    fn lines(&mut self, query: &str) -> Vec<String> {
        let rows = self.session.run(query).unwrap_or_else(|error| panic!("{query}: {error}"));
        let line = |row: &Vec<String>| {
            let texts: Vec<String> = row[1..4].iter().map(|literal| text(literal)).collect();
            texts.join(" | ")
        };
        let named = |line: String| self.names.iter().fold(line, |line, (id, name)| line.replace(id, name));
        rows.iter().map(line).map(named).collect()
    }

    /// The counts of a run, by operation and target.
    fn counts(&mut self, query: &str) -> HashMap<String, i64> {
        let rows = self.session.run(query).unwrap_or_else(|error| panic!("{query}: {error}"));
        assert!(rows.len() < 100);
        let counted = rows.iter().filter(|row| row[4] != "null");
        let key = |row: &Vec<String>| format!("{} {}", text(&row[1]), text(&row[2]));
        let mut counts = HashMap::new();
        for row in counted {
            let key = self.names.iter().fold(key(row), |key, (id, name)| key.replace(id, name));
            counts.insert(key, row[4].parse().unwrap());
        }
        counts
    }

    /// The line about an SSTable.
    fn source(&mut self, query: &str, name: &str) -> String {
        let lines = self.lines(query);
        let is_it = |line: &&String| line.split(" | ").nth(1) == Some(name);
        lines.iter().find(is_it).unwrap_or_else(|| panic!("no {name} in {lines:#?}")).clone()
    }
}

#[test]
fn a_read_of_memory_alone_is_explained() {
    let mut db = Explained::with(&[T]);
    assert_eq!(
        db.lines("EXPLAIN SELECT * FROM t WHERE k = 1 AND c = 2"),
        [
            "read | point | ks.t: one row by its primary key",
            "partition | k = 1 | 1 partition, token -4069959284402364209",
            "rows | c = 2 | 1 name",
            "order | c ASC | as stored",
            "memtable | memory | nothing of it in memory",
        ]
    );
    db.ok("INSERT INTO t (k, c, v) VALUES (1, 2, 'a')");
    assert_eq!(
        db.lines("EXPLAIN SELECT v FROM t WHERE k IN (1, 2) AND c > 1 AND c <= 9 AND v = 'a' PER PARTITION LIMIT 2 LIMIT 3 ALLOW FILTERING"),
        [
            "read | slice | ks.t: rows between two bounds",
            "partition | k IN (1, 2) | 2 partitions, one after the other",
            "rows | c > 1 AND c <= 9 | 1 slice",
            "order | c ASC | as stored",
            "filter | v = 'a' | tested on each row after it was read",
            "limit | 2 rows | of each partition",
            "limit | 3 rows | reading stops there",
            "memtable | memory | 1 partition found in memory",
            "advice | filter | a clustering column or a table of its own would bound the rows instead of testing them",
        ]
    );
}

#[test]
fn the_kinds_of_a_read_are_told_apart() {
    let mut db = Explained::with(&[T, "CREATE TABLE flat (k int PRIMARY KEY, v text)"]);
    for (query, kind) in [
        ("SELECT * FROM t WHERE k = 1 AND c = 2", "point"),
        ("SELECT * FROM flat WHERE k = 1", "point"),
        ("SELECT * FROM t WHERE k = 1 AND c IN (2, 3)", "names"),
        ("SELECT * FROM flat WHERE k IN (1, 2)", "names"),
        ("SELECT * FROM t WHERE k = 1 AND c > 2", "slice"),
        ("SELECT * FROM t WHERE k = 1", "partition"),
        ("SELECT * FROM t WHERE k = 1 AND v = 'a' ALLOW FILTERING", "partition"),
        ("SELECT * FROM t WHERE token(k) > 5", "token range"),
        ("SELECT * FROM t", "range scan"),
        ("SELECT count(*) FROM t WHERE c = 1 ALLOW FILTERING", "range scan"),
        ("SELECT * FROM t WHERE k IN ()", "nothing"),
        ("SELECT * FROM system.local", "virtual table"),
    ] {
        let lines = db.lines(&format!("EXPLAIN {query}"));
        assert!(lines[0].starts_with(&format!("read | {kind} | ")), "{query}: {lines:#?}");
        db.lines(&format!("EXPLAIN ANALYZE {query}"));
    }
}

/// Three int partition keys, in token order.
fn keys_by_token() -> [i32; 3] {
    let mut keys = [1, 2, 3];
    keys.sort_by_key(|key: &i32| helenus_model::token::KeyHash::of(&key.to_be_bytes()).token.0);
    keys
}

#[test]
fn each_reason_to_skip_an_sstable_is_told() {
    let [low, between, high] = keys_by_token();
    let open = "WITH bloom_filter_fp_chance = 1.0";
    let mut db =
        Explained::with(&[T, &T.replace("TABLE t", "TABLE unfiltered").replace("))", &format!(")) {open}"))]);
    // A: two partitions around the third. B: only one of them.
    for table in ["t", "unfiltered"] {
        db.ok(&format!("INSERT INTO {table} (k, c, v) VALUES ({low}, 1, 'a') USING TIMESTAMP 10"));
        db.ok(&format!("INSERT INTO {table} (k, c, v) VALUES ({high}, 1, 'a') USING TIMESTAMP 10"));
    }
    db.flush("t");
    db.flush("unfiltered");
    let of = |key: i32, rest: &str| format!("SELECT * FROM t WHERE k = {key}{rest}");
    let explained = |query: &str| format!("EXPLAIN {query}");
    assert_eq!(db.source(&explained(&of(between, "")), "A"), "skip | A | Bloom filter");
    assert_eq!(db.source(&explained(&of(low, " AND c > 5")), "A"), "skip | A | clustering range");
    assert!(db.source(&explained(&of(low, "")), "A").starts_with("sstable | A | 2 partitions in "));
    // Without a Bloom filter only a run can tell.
    let absent = format!("SELECT * FROM unfiltered WHERE k = {between}");
    assert!(db.source(&format!("EXPLAIN {absent}"), "B").starts_with("sstable | B | "));
    assert_eq!(db.source(&format!("EXPLAIN ANALYZE {absent}"), "B"), "skip | B | partition absent");
    db.ok(&format!("INSERT INTO t (k, c, v) VALUES ({low}, 2, 'b') USING TIMESTAMP 20"));
    db.flush("t");
    assert_eq!(db.source(&explained(&of(high, "")), "C"), "skip | C | key range");
    // A newer deletion in memory is part of the forecast.
    db.ok(&format!("DELETE FROM t USING TIMESTAMP 15 WHERE k = {low}"));
    assert_eq!(db.source(&explained(&of(low, "")), "A"), "skip | A | newer partition deletion");
    assert!(db.source(&explained(&of(low, "")), "C").starts_with("sstable | C | "));
    let counts = db.counts(&format!("EXPLAIN ANALYZE {}", of(low, "")));
    assert_eq!((counts["sources sstables"], counts["sstable C"], counts["skip A"]), (2, 1, 1));
    assert_eq!(counts["answer rows"], 1);
}

#[test]
fn older_sstables_are_left_out_where_newer_ones_have_all_that_is_asked_of_a_row() {
    let mut db = Explained::with(&[
        "CREATE TABLE t (k int, c int, v text, w text, m map<int, int>, PRIMARY KEY (k, c))",
    ]);
    let insert =
        |v: &str, timestamp: i32| format!("(k, c, {v}) VALUES (1, 1, 'x') USING TIMESTAMP {timestamp}");
    db.ok("INSERT INTO t (k, c, v, w) VALUES (1, 1, 'old', 'old') USING TIMESTAMP 10");
    db.flush("t");
    db.ok(&format!("INSERT INTO t {}", insert("v", 20)));
    db.flush("t");
    let row = "FROM t WHERE k = 1 AND c = 1";
    let counts_of =
        |db: &mut Explained, what: &str| db.counts(&format!("EXPLAIN ANALYZE SELECT {what} {row}"));
    let of = |counts: &HashMap<String, i64>| {
        (counts["answer rows"], counts["sources sstables"], counts.get("skip A").copied())
    };
    assert_eq!(db.source(&format!("EXPLAIN ANALYZE SELECT v {row}"), "A"), "skip | A | older than the row");
    assert_eq!(of(&counts_of(&mut db, "v")), (1, 2, Some(1)));
    assert_eq!(of(&counts_of(&mut db, "k, c")), (1, 2, Some(1)), "the row's own marker is newer");
    // Requests for what an older source may have: another column, a map's cells, a whole row.
    for what in ["v, w", "m", "*", "count(*)"] {
        assert_eq!(of(&counts_of(&mut db, what)).2, None, "{what}");
    }
    let filtered = format!("EXPLAIN ANALYZE SELECT v {row} AND w = 'old' ALLOW FILTERING");
    assert_eq!(of(&db.counts(&filtered)), (1, 2, None), "a filter looks at w");
    // An UPDATE writes no row marker, but a live value also shows the row.
    db.ok("UPDATE t USING TIMESTAMP 30 SET v = 'new', w = 'new' WHERE k = 1 AND c = 1");
    assert_eq!(counts_of(&mut db, "v, w").get("skip B").copied(), Some(1), "memory has both");
    assert_eq!(counts_of(&mut db, "k, c").get("skip B").copied(), None, "only B knows of a marker");
    // A null does not tell whether the row exists.
    db.ok("UPDATE t USING TIMESTAMP 40 SET v = null WHERE k = 1 AND c = 1");
    assert_eq!(of(&counts_of(&mut db, "v")), (1, 2, Some(1)), "B's marker shows it, A is older");
}

#[test]
fn an_answer_has_less_than_a_hundred_lines_however_many_sstables_there_are() {
    // Compaction would reduce their number.
    let apart = "compaction = {'class': 'UnifiedCompactionStrategy', 'enabled': 'false'}";
    let mut db = Explained::with(&[&T.replace("))", &format!(")) WITH {apart}"))]);
    for (k, rows) in [(1, 60), (2, 30)] {
        for c in 0..rows {
            db.ok(&format!("INSERT INTO t (k, c, v) VALUES ({k}, {c}, 'a')"));
            db.session.backend.database().flush_all().unwrap();
        }
    }
    let query = "SELECT * FROM t WHERE k = 1";
    let lines = db.lines(&format!("EXPLAIN {query}"));
    for line in ["sstable | 36 more | asked as well", "skip | others | "] {
        assert!(lines.iter().any(|found| found.starts_with(line)), "no {line} in {lines:#?}");
    }
    assert!(lines.len() < 100, "{} lines", lines.len());
    assert!(lines.iter().any(|line| line.starts_with("advice | sstable | rows lie in many SSTables")));
    let counts = db.counts(&format!("EXPLAIN ANALYZE {query}"));
    assert_eq!((counts["sources sstables"], counts["sstable 36 more"], counts["answer rows"]), (90, 36, 60));
}

#[test]
fn several_partitions_are_counted_table_by_table() {
    let [low, between, high] = keys_by_token();
    let mut db = Explained::with(&[T]);
    for key in [low, high] {
        db.ok(&format!("INSERT INTO t (k, c, v) VALUES ({key}, 1, 'a')"));
    }
    db.flush("t");
    let query = format!("EXPLAIN ANALYZE SELECT * FROM t WHERE k IN ({low}, {between}, {high})");
    let first = db.counts(&query);
    assert!(first["index nodes"] > 0 && !first.contains_key("index key cache"));
    assert!(db.source(&query, "A").ends_with("; skipped for others: Bloom filter"));
    let counts = db.counts(&query);
    assert_eq!((counts["sstable A"], counts["sources sstables"], counts["answer rows"]), (2, 3, 2));
    assert_eq!((counts["index nodes"], counts["index key cache"]), (0, 2));
}

/// A partition of 3,000 rows in an SSTable; another SSTable deletes 500 of them one by one and 500 with a range.
fn wide() -> Explained {
    let mut db = Explained::with(&[T]);
    for first in (0..3000).step_by(100) {
        let rows = (first..first + 100)
            .map(|c| format!("INSERT INTO t (k, c, v) VALUES (1, {c}, 'value {c:0>40}');"));
        db.ok(&format!("BEGIN UNLOGGED BATCH {} APPLY BATCH", rows.collect::<String>()));
    }
    db.flush("t");
    let gone = (0..500).map(|c| format!("DELETE FROM t WHERE k = 1 AND c = {c};"));
    db.ok(&format!("BEGIN UNLOGGED BATCH {} APPLY BATCH", gone.collect::<String>()));
    db.ok("DELETE FROM t WHERE k = 1 AND c >= 500 AND c < 1000");
    db.flush("t");
    db
}

#[test]
fn a_run_counts_what_it_touched() {
    let mut db = wide();
    let slice = "EXPLAIN ANALYZE SELECT * FROM t WHERE k = 1 AND c >= 1000 LIMIT 10";
    let counts = db.counts(slice);
    assert_eq!((counts["answer rows"], counts["merge passed"]), (10, 0));
    assert!(counts["merge rows"] >= 10 && counts["merge rows"] < 300, "the index leads near: {counts:?}");
    assert!(counts["index nodes"] > 0 && counts["disk blocks"] + counts["cache blocks"] > 0);
    assert!(!counts.contains_key("filter dropped"));
    // The second run reads nothing from files.
    let counts = db.counts(slice);
    assert_eq!((counts["disk blocks"], counts["disk bytes"], counts["decompress blocks"]), (0, 0, 0));
    assert!(counts["cache blocks"] > 0);
    let counts = db.counts("EXPLAIN ANALYZE SELECT * FROM t WHERE k = 1 AND c >= 100 LIMIT 10");
    assert_eq!(counts["answer rows"], 10);
    assert!(counts["merge passed"] >= 401 && counts["merge tombstones"] >= 401, "{counts:?}");
    let lines = db.lines("EXPLAIN ANALYZE SELECT * FROM t WHERE k = 1 AND c >= 100 LIMIT 10");
    assert!(lines.iter().any(|line| line.starts_with("advice | tombstones | ")), "{lines:#?}");
}

#[test]
fn reversed_reads_and_names_are_counted_too() {
    let mut db = wide();
    let counts = db.counts("EXPLAIN ANALYZE SELECT * FROM t WHERE k = 1 ORDER BY c DESC LIMIT 10");
    assert_eq!((counts["answer rows"], counts["merge passed"]), (10, 0));
    assert!(counts["merge rows"] < 600, "{counts:?}");
    assert_eq!(
        db.lines("EXPLAIN SELECT * FROM t WHERE k = 1 AND c < 2000 ORDER BY c DESC LIMIT 10")[2..5],
        [
            "rows | c < 2000 | 1 slice",
            "order | c DESC | reversed: from the last row to the first",
            "limit | 10 rows | reading stops there"
        ]
    );
    let counts = db.counts("EXPLAIN ANALYZE SELECT * FROM t WHERE k = 1 AND c IN (7, 1500, 2500)");
    assert_eq!(counts["answer rows"], 2);
    let counts = db.counts("EXPLAIN ANALYZE SELECT * FROM t WHERE v = 'no' ALLOW FILTERING");
    assert_eq!((counts["answer rows"], counts["filter dropped"]), (0, 2000));
}

#[test]
fn analyze_runs_all_pages_up_to_the_limit() {
    let mut db = wide();
    let mut session = std::mem::replace(&mut db.session, Session::new(9));
    let identity = Identity::default();
    let mut rows = super::harness::Rows::default();
    let asked = request(&identity, Some("ks"), &[]);
    let asked = crate::backend::Request { page_size: Some(100), ..asked };
    let outcome = session.backend.query("EXPLAIN ANALYZE SELECT * FROM t LIMIT 750", &asked, &mut rows);
    session.settle(outcome.unwrap());
    let answer = rows.rows().iter().find(|row| row[1] == "'answer'").unwrap();
    assert!(answer[3].ends_with(" in 8 pages'"), "{answer:?}");
    assert_eq!(answer[4], "750");
}

#[test]
fn explain_writes_nothing_and_analyze_writes() {
    let mut db = Explained::with(&[T]);
    assert_eq!(
        db.lines("EXPLAIN INSERT INTO t (k, c, v) VALUES (1, 2, null)"),
        [
            "write | insert | 1 row, 1 cell; reads nothing",
            "partition | k = 1 | ks.t, token -4069959284402364209: 1 row, 1 cell, 37 bytes",
            "log | 1 record | applied and replayed whole or not at all",
            "memtable | memory | the changes become visible in one step",
            "advice | null | a null writes a tombstone, which reads pass; leave a column unset instead of null",
        ]
    );
    assert_eq!(db.session.rows("SELECT * FROM t"), "");
    let counts = db.counts("EXPLAIN ANALYZE INSERT INTO t (k, c, v) VALUES (1, 2, 'a')");
    assert_eq!(counts["write partitions"], 1);
    assert_eq!(db.session.rows("SELECT * FROM t"), "1,2,'a'");
    let batch = "BEGIN BATCH UPDATE t SET v = 'b' WHERE k = 1 AND c = 2; DELETE FROM t WHERE k = 2 AND c > 5; APPLY BATCH";
    let lines = db.lines(&format!("EXPLAIN {batch}"));
    assert_eq!(lines[0], "write | batch | 1 row, 1 cell, 1 range deletion; reads nothing");
    assert!(lines.last().unwrap().starts_with("advice | delete | a range tombstone"));
    db.lines("EXPLAIN ANALYZE DELETE FROM t WHERE k = 1");
    assert_eq!(db.session.rows("SELECT * FROM t"), "");
}

#[test]
fn markers_are_bound_and_wrong_values_refused() {
    let mut db = Explained::with(&[T]);
    let query = "EXPLAIN SELECT * FROM t WHERE k = ? AND c IN ? AND token(k) > ? LIMIT ?";
    let (one, list) = (1_i32.to_be_bytes(), [0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 7]);
    let token = i64::MIN.to_be_bytes();
    let values = [&one[..], &list, &token, &one].map(BoundValue::Bytes);
    let rows = db.session.execute(query, &values).unwrap();
    let target = |row: usize| text(&rows[row][2]);
    assert_eq!(target(1), "token(k) > -9223372036854775808 AND k = 1");
    assert_eq!((target(2), target(4)), ("c IN (7)".to_owned(), "1 row".to_owned()));
    let error = db.session.execute(query, &[BoundValue::Null; 4]).unwrap_err().to_string();
    assert_eq!(error, "Invalid null value of limit");
    let error = db.session.error("EXPLAIN SELECT * FROM t WHERE c = 1");
    assert!(error.contains("use ALLOW FILTERING"), "{error}");
}

#[test]
fn json_is_one_text_with_the_same_lines() {
    let mut db = Explained::with(&[T]);
    let rows = db.session.run("EXPLAIN FORMAT JSON SELECT * FROM t WHERE k = 1 AND c = 2").unwrap();
    assert_eq!(
        rows,
        [[concat!(
            r#"'{"analyzed":false,"steps":[{"step":1,"operation":"read","target":"point","detail":"ks.t: one row by its primary key"},"#,
            r#"{"step":2,"operation":"partition","target":"k = 1","detail":"1 partition, token -4069959284402364209"},"#,
            r#"{"step":3,"operation":"rows","target":"c = 2","detail":"1 name"},"#,
            r#"{"step":4,"operation":"order","target":"c ASC","detail":"as stored"},"#,
            r#"{"step":5,"operation":"memtable","target":"memory","detail":"nothing of it in memory","count":0}]}'"#
        )]]
    );
}

#[test]
fn a_trace_says_what_the_probe_has_counted_in_its_order() {
    let [low, between, high] = keys_by_token();
    let mut db = Explained::with(&[T]);
    for key in [low, high] {
        db.ok(&format!("INSERT INTO t (k, c, v) VALUES ({key}, 1, 'a')"));
    }
    db.flush("t");
    let identity = Identity::default();
    let probe = Mutex::new(Probe::default());
    let asked = crate::backend::Request { probe: Some(&probe), ..request(&identity, Some("ks"), &[]) };
    for query in
        [format!("SELECT * FROM t WHERE k IN ({low}, {between})"), format!("DELETE FROM t WHERE k = {low}")]
    {
        let answer = db.session.backend.query(&query, &asked, &mut super::harness::Rows::default()).unwrap();
        db.session.settle(answer);
    }
    let session = uuid::Uuid::parse_str("5d4f7b2a-e5bb-11f1-8da0-47b9608b3323").unwrap();
    let trace = Trace {
        session,
        client: None,
        request: "Execute CQL3 query",
        parameters: vec![("query", "SELECT")],
        started_us: 5,
        duration_us: 900,
        probe: &probe.into_inner(),
    };
    db.session.backend.record_trace(&trace).unwrap();
    let told = db.session.run("SELECT activity FROM system_traces.events").unwrap();
    let told: Vec<String> = told.iter().map(|row| text(&row[0])).collect();
    let told: Vec<&str> = told.iter().map(String::as_str).collect();
    let [asked, skipped, index, blocks, decompressed, decoded, merged, put, wrote, ready] = told[..] else {
        panic!("other events: {told:#?}")
    };
    assert_eq!(asked, "Asked 0 memtables and 1 of 2 SSTables");
    assert!(skipped.starts_with("Skipped SSTable ") && skipped.ends_with(": Bloom filter"));
    assert!(index.starts_with("Visited ") && blocks.starts_with("Read 1 block"), "{index}, {blocks}");
    assert!(decompressed.starts_with("Decompressed 1 block"), "{decompressed}");
    assert_eq!(decoded, "Decoded 1 row, 1 cell, 0 tombstones");
    assert_eq!(merged, "Merged sources, passed 0 dead rows and range tombstones");
    assert_eq!(put, "Put 1 row into the answer");
    assert!(wrote.starts_with("Wrote ") && wrote.ends_with(" bytes of 1 partition to log and memtable"));
    assert_eq!(ready, "Answer ready");
    assert_eq!(
        db.session.rows("SELECT duration, request FROM system_traces.sessions"),
        "900,'Execute CQL3 query'"
    );
}

#[test]
fn a_request_with_a_probe_is_counted() {
    let mut db = wide();
    db.ok("INSERT INTO t (k, c) VALUES (1, 5000)");
    let identity = Identity::default();
    let probe = Mutex::new(Probe::default());
    let asked = crate::backend::Request { probe: Some(&probe), ..request(&identity, Some("ks"), &[]) };
    for query in ["SELECT * FROM t WHERE k = 1 LIMIT 5", "SELECT * FROM t WHERE k = 2"] {
        let _ = db.session.backend.query(query, &asked, &mut super::harness::Rows::default()).unwrap();
    }
    let probe = probe.into_inner();
    assert_eq!((probe.reads, probe.partitions, probe.rows), (2, 2, 5));
    assert_eq!((probe.memtables, probe.sstables, probe.skipped(SkipReason::KeyRange)), (1, 2, 2));
}
