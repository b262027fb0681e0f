//! Tables WITH COMPACT STORAGE: drawn statements and hidden rows on one database; what it then holds, turned into writes in the form that the
//! target has, gives the same live cells there, whether the target's table is compact too or what DROP COMPACT STORAGE leaves.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on says so by panicking"
)]

use helenus_engine::read::{KeyRange, UnfilteredSink};
use helenus_model::cell::{Cell, Span};
use helenus_model::deletion::{DeletionTime, Liveness, NO_EXPIRY};
use helenus_model::mutation::{Changes, Mutation, PartitionUpdate};
use helenus_model::row::RowView;
use helenus_model::schema::Table;
use helenus_model::unfiltered::Unfiltered;
use helenus_mover::source::{OpenRange, RowWrites, SourceError, TableTexts, Write};
use std::collections::BTreeMap;
use std::sync::Arc;

mod support;

use support::{Random, Side};

const KEYSPACE: &str =
    "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}";
/// The forms: as they are made, and as DROP COMPACT STORAGE leaves them.
const FORMS: [(&str, &str); 4] = [
    (
        "CREATE TABLE ks.t (k int PRIMARY KEY, a int, b text) WITH COMPACT STORAGE",
        "CREATE TABLE ks.t (k int, column1 text, a int static, b text static, value blob, PRIMARY KEY (k, column1))",
    ),
    (
        "CREATE TABLE ks.t (k int, c int, a int, PRIMARY KEY (k, c)) WITH COMPACT STORAGE AND CLUSTERING ORDER BY (c DESC)",
        "CREATE TABLE ks.t (k int, c int, a int, PRIMARY KEY (k, c)) WITH CLUSTERING ORDER BY (c DESC)",
    ),
    (
        "CREATE TABLE ks.t (k int, c int, d text, a int, PRIMARY KEY (k, c, d)) WITH COMPACT STORAGE",
        "CREATE TABLE ks.t (k int, c int, d text, a int, PRIMARY KEY (k, c, d))",
    ),
    (
        "CREATE TABLE ks.t (k int, c int, d text, PRIMARY KEY (k, c, d)) WITH COMPACT STORAGE",
        "CREATE TABLE ks.t (k int, c int, d text, value 'org.apache.cassandra.db.marshal.EmptyType', PRIMARY KEY (k, c, d))",
    ),
];
const STATIC: usize = 0;
const KEYS_ALONE: usize = 3;

/// A column that the table does not declare, or its deletion, as the old RPC interface writes it.
fn undeclared(side: &Side, key: i32, name: &str, value: Option<&[u8]>, timestamp_us: i64) {
    let table = side.table();
    let cell = Cell {
        column: table.compact_value().unwrap().id,
        ttl_s: 0,
        timestamp_us,
        local_deletion_s: if value.is_some() { NO_EXPIRY } else { side.database().now_s() },
        path: Span::NULL,
        value: Span::NULL,
    };
    let mut changes = Changes::default();
    let marker = (Liveness::NONE, DeletionTime::LIVE);
    changes.row([Some(name.as_bytes())].into_iter(), marker, &[], |writer| {
        writer.cell(&cell, None, value.unwrap_or_default());
    });
    let update = PartitionUpdate { table, key: key.to_be_bytes().to_vec(), changes };
    side.database().write(&Mutation { updates: vec![update] }).unwrap().wait().unwrap();
}

/// Live cells by key, clustering and column, each with value, timestamp and expiry.
fn cells(side: &Side) -> BTreeMap<String, String> {
    let table = side.table();
    let mut found =
        Found { table: &table, now_s: side.database().now_s(), key: Vec::new(), cells: BTreeMap::new() };
    side.database().scan_unfiltered(&table, &KeyRange::all(), &mut found).unwrap();
    found.cells
}

struct Found<'f> {
    table: &'f Table,
    now_s: i64,
    key: Vec<u8>,
    cells: BTreeMap<String, String>,
}

impl Found<'_> {
    fn row(&mut self, row: RowView<'_>, is_static: bool) {
        let count = if is_static { 0 } else { self.table.clustering.len() };
        let clustering: Vec<_> = (0..count).map(|index| row.clustering(index)).collect();
        for cell in row.row.cells.iter().filter(|cell| cell.is_live(self.now_s)) {
            let column = &self.table.column_by_id(cell.column).unwrap().name;
            let name = format!("{:?} {clustering:?} {column}", self.key);
            let value = format!("{:?} {} {}", row.value(cell), cell.timestamp_us, cell.local_deletion_s);
            self.cells.insert(name, value);
        }
    }
}

impl UnfilteredSink for Found<'_> {
    fn partition(
        &mut self,
        key: &[u8],
        _deletion: DeletionTime,
        static_row: Option<RowView<'_>>,
    ) -> helenus_engine::Result<()> {
        self.key = key.to_vec();
        if let Some(row) = static_row {
            self.row(row, true);
        }
        Ok(())
    }

    fn element(&mut self, element: Unfiltered<'_>) -> helenus_engine::Result<()> {
        if let Unfiltered::Row(row) = element {
            self.row(row, false);
        }
        Ok(())
    }

    fn partition_end(&mut self) -> helenus_engine::Result<()> {
        Ok(())
    }
}

/// The writes of all that a database holds, for a table of this form.
struct Copy {
    rows: RowWrites,
    open: OpenRange,
    form: Arc<Table>,
    now_s: i64,
    key: Vec<u8>,
    writes: Vec<Write>,
    failed: Option<SourceError>,
}

impl Copy {
    fn of(source: &Side, form: &Arc<Table>) -> Result<Vec<Write>, SourceError> {
        let mut copy = Copy {
            rows: RowWrites::new(form),
            open: OpenRange::default(),
            form: Arc::clone(form),
            now_s: source.database().now_s(),
            key: Vec::new(),
            writes: Vec::new(),
            failed: None,
        };
        let read = source.database().scan_unfiltered(&source.table(), &KeyRange::all(), &mut copy);
        match copy.failed {
            Some(error) => Err(error),
            None => {
                read.unwrap();
                Ok(copy.writes)
            }
        }
    }

    fn done(&mut self, done: Result<(), SourceError>) -> helenus_engine::Result<()> {
        done.map_err(|error| {
            self.failed = Some(error);
            helenus_engine::Error::Cancelled
        })
    }
}

impl UnfilteredSink for Copy {
    fn partition(
        &mut self,
        key: &[u8],
        deletion: DeletionTime,
        static_row: Option<RowView<'_>>,
    ) -> helenus_engine::Result<()> {
        self.key = key.to_vec();
        self.open.clear();
        self.rows.partition_deletion(key, deletion, &mut self.writes);
        let done =
            static_row.map_or(Ok(()), |row| self.rows.static_row(key, row, self.now_s, &mut self.writes));
        self.done(done)
    }

    fn element(&mut self, element: Unfiltered<'_>) -> helenus_engine::Result<()> {
        let done = match element {
            Unfiltered::Row(row) => self.rows.row(&self.key, row, self.now_s, &mut self.writes),
            Unfiltered::Marker(marker) => self.open.marker((&self.form, &self.key), marker, &mut self.writes),
        };
        self.done(done)
    }

    fn partition_end(&mut self) -> helenus_engine::Result<()> {
        Ok(())
    }
}

/// A drawn statement for a form. `prefixes`: whether rows may have fewer clustering values than columns.
fn statement(random: &mut Random, form: usize, prefixes: bool) -> String {
    let stamp = 1_000 + random.below(60);
    let using = match random.below(4) {
        0 => format!("USING TIMESTAMP {stamp} AND TTL {}", 300 + 500 * random.below(2)),
        _ => format!("USING TIMESTAMP {stamp}"),
    };
    let (k, c, d, number) = (random.below(3), random.below(3), random.below(2), random.below(100));
    let is_prefix = prefixes && form >= 2 && random.below(3) == 0;
    let row = match form {
        STATIC => format!("k = {k}"),
        1 => format!("k = {k} AND c = {c}"),
        _ if is_prefix => format!("k = {k} AND c = {c}"),
        _ => format!("k = {k} AND c = {c} AND d = 'd{d}'"),
    };
    let set = match (form, random.below(4)) {
        (STATIC, 0) => format!("b = 'b{number}'"),
        (STATIC, 1) => "b = null".to_owned(),
        (_, 2) => "a = null".to_owned(),
        _ => format!("a = {number}"),
    };
    match random.below(10) {
        0 => format!("DELETE FROM ks.t USING TIMESTAMP {stamp} WHERE k = {k}"),
        1 if form != STATIC => format!("DELETE FROM ks.t USING TIMESTAMP {stamp} WHERE k = {k} AND c = {c}"),
        2 if form != STATIC => format!("DELETE FROM ks.t USING TIMESTAMP {stamp} WHERE k = {k} AND c > {c}"),
        3 if !is_prefix => format!("DELETE FROM ks.t USING TIMESTAMP {stamp} WHERE {row}"),
        _ if form == KEYS_ALONE && is_prefix => format!("INSERT INTO ks.t (k, c) VALUES ({k}, {c}) {using}"),
        _ if form == KEYS_ALONE => format!("INSERT INTO ks.t (k, c, d) VALUES ({k}, {c}, 'd{d}') {using}"),
        _ => format!("UPDATE ks.t {} SET {set} WHERE {row}", using),
    }
}

/// Each form, to a table of the same form and to an open one.
#[test]
fn what_a_compact_table_holds_is_written_into_a_compact_and_an_open_one() {
    for seed in 0..60 {
        for (form, (compact, open)) in FORMS.iter().enumerate() {
            for (to_open, prefixes) in [(false, true), (true, false)] {
                let create = if to_open { open } else { compact };
                let (source, target) =
                    (Side::new(seed, &[KEYSPACE, compact]), Side::new(seed + 1, &[KEYSPACE, create]));
                let mut random = Random(seed * 8 + form as u64 * 2);
                let mut script = Vec::new();
                for at in 0..50 {
                    if form == STATIC && to_open && random.below(3) == 0 {
                        let (key, stamp) = (random.below(3) as i32, 1_000 + random.below(60) as i64);
                        let name = format!("n{}", random.below(3));
                        let value = random.below(4).to_be_bytes();
                        undeclared(&source, key, &name, (value[7] != 0).then_some(&value), stamp);
                    } else {
                        let text = statement(&mut random, form, prefixes);
                        source.run(&text);
                        script.push(text);
                    }
                    if at == 25 && seed % 2 == 0 {
                        source.database().flush_all().unwrap();
                    }
                }
                [&source, &target].iter().for_each(|side| side.machine.advance(400_000_000_000));
                let there = target.table();
                let as_there =
                    Arc::new(Table { flags: there.flags.clone(), ..Table::clone(&source.table()) });
                let writes = Copy::of(&source, &as_there).unwrap();
                let texts = TableTexts::new(&as_there);
                writes.iter().rev().chain(&writes).for_each(|write| target.write(&texts, write));
                [&source, &target].iter().for_each(|side| side.machine.advance(2_000_000_000));
                assert_eq!(cells(&target), cells(&source), "seed {seed}, {create}\n{}", script.join(";\n"));
            }
        }
    }
}

#[test]
fn a_live_column_that_is_not_declared_is_named_and_a_dead_one_hinders_nothing() {
    let (compact, _) = FORMS[STATIC];
    let source = Side::new(1, &[KEYSPACE, compact]);
    source.run("INSERT INTO ks.t (k, a) VALUES (7, 1) USING TIMESTAMP 5");
    undeclared(&source, 7, "gone", None, 10);
    assert_eq!(Copy::of(&source, &source.table()).unwrap().len(), 1);
    undeclared(&source, 7, "it's", Some(b"x"), 10);
    let error = Copy::of(&source, &source.table()).unwrap_err().to_string();
    assert!(
        error.contains("the key 7") && error.contains("'it''s'") && error.contains("DROP COMPACT"),
        "{error}"
    );
}
