//! Random writes, deletions, TTLs, flushes, compactions, truncates, restarts and crashes over tables whose indexes are
//! created and dropped. A search through an index must find, page by page, what a read of the whole table with a test
//! of each row finds. Timestamps come in any order: old, equal, used before, deleted before, purged before.
//!
//! `INDEX_RUNS` sets the number of runs, `INDEX_SEED` selects one.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod support;

use helenus_engine::read::{Probe, ReadEnd, RowOutcome, RowSink};
use helenus_engine::read_indexed;
use helenus_engine::{Database, DatabaseOptions, Error, ReadRequest, index_id};
use helenus_host::sim::{Machine, Survives};
use helenus_model::index::{IndexLayout, IndexLookup, IndexSearch};
use helenus_model::mutation::Mutation;
use helenus_model::row::RowView;
use helenus_model::schema::{CLASS_OPTION, Index, IndexKind, Keyspace, TARGET_OPTION, Table};
use std::collections::BTreeMap;
use std::sync::Arc;
use support::actual::{command_of, read, table_of_shape, update};
use support::judge::{Ask, CellWrite, Change, Kind, Maker, Shape, Timed};
use support::random::{Random, from_environment};
use support::{create, table_of};

const KEYS: &[&str] = &["a", "b", "c", "d", "e", "f", "g", "a\0"];
/// Indexes that a table may have: name, target, and whether it is storage-attached.
const INDEXES: &[(&str, &str, bool)] = &[
    ("on_v", "v", false),
    ("on_w", "w", true),
    ("on_c", "c0", false),
    ("on_s", "s", false),
    ("on_keys", "keys(m)", false),
    ("on_values", "values(m)", true),
    ("on_entries", "entries(m)", false),
];

/// A found row: its partition key and clustering.
type Found = (Vec<u8>, Vec<Vec<u8>>);

struct Run {
    seed: u64,
    shape: Shape,
    machine: Machine,
    database: Option<Arc<Database>>,
    /// Rows that searches have found.
    rows: std::cell::Cell<usize>,
}

fn options(seed: u64) -> DatabaseOptions {
    let mut options = DatabaseOptions::new("/db");
    options.segment_bytes = 256 << 10;
    options.compaction.purge.grace_s = if seed.is_multiple_of(2) { 0 } else { i64::MAX / 4 };
    options
}

fn change_indexes(database: &Database, change: impl FnOnce(&mut Table, i64)) {
    let changed = database.change_schema::<()>(|schema, made_us| {
        let mut next = schema.clone();
        let keyspace = next.keyspaces.get_mut("ks").unwrap();
        let mut table = Table::clone(&keyspace.tables["t"]);
        change(&mut table, made_us);
        let mut changed = Keyspace::clone(keyspace);
        changed.tables.insert("t".into(), Arc::new(table));
        *keyspace = Arc::new(changed);
        Ok(next)
    });
    changed.map_err(|_| "the schema changes").unwrap().1.wait().unwrap();
}

/// Collects the rows that match the search.
struct Finder<'a> {
    table: &'a Table,
    name: &'a str,
    value: &'a [u8],
    path: &'a [u8],
    /// Whether the row must have a value equal to or greater than `value`, instead of an equal one.
    is_range: bool,
    now_s: i64,
    key: Vec<u8>,
    in_static: bool,
    found: Vec<Found>,
    counted: u64,
}

impl Finder<'_> {
    fn holds(&self, row: RowView<'_>, column: &str) -> bool {
        let column = self.table.column(column).unwrap();
        let mut cells = row.cells_of(column.id).iter().filter(|cell| cell.is_live(self.now_s));
        cells.any(|cell| match self.name {
            "on_keys" => row.path(cell) == self.value,
            "on_entries" => row.path(cell) == self.path && row.value(cell) == self.value,
            _ if self.is_range => column.ty.compare(row.value(cell), self.value).is_ge(),
            _ => row.value(cell) == self.value,
        })
    }
}

impl RowSink for Finder<'_> {
    fn partition(&mut self, key: &[u8], static_row: Option<RowView<'_>>) -> helenus_engine::Result<()> {
        self.key = key.to_vec();
        self.in_static = self.name == "on_s" && static_row.is_some_and(|row| self.holds(row, "s"));
        Ok(())
    }

    fn row(&mut self, row: RowView<'_>) -> helenus_engine::Result<RowOutcome> {
        let takes = match self.name {
            "on_s" => self.in_static,
            "on_c" => row.clustering(0).unwrap() == self.value,
            "on_v" => self.holds(row, "v"),
            "on_w" => self.holds(row, "w"),
            _ => self.holds(row, "m"),
        };
        if !takes {
            return Ok(RowOutcome::Skipped);
        }
        let clustering =
            (0..self.table.clustering.len()).map(|index| row.clustering(index).unwrap().to_vec()).collect();
        self.found.push((self.key.clone(), clustering));
        self.counted += 1;
        Ok(RowOutcome::Counted)
    }

    fn partition_end(&mut self, _rows: u64) -> helenus_engine::Result<RowOutcome> {
        Ok(RowOutcome::Skipped)
    }
}

impl Run {
    fn new(seed: u64, shape: Shape) -> Run {
        let machine = Machine::new(seed);
        let database = Database::open(machine.host(), options(seed)).unwrap().0;
        create(&database, vec![table_of_shape(&shape)]);
        Run { seed, shape, machine, database: Some(database), rows: std::cell::Cell::new(0) }
    }

    fn database(&self) -> &Arc<Database> {
        self.database.as_ref().unwrap()
    }

    /// Creates or drops an index, if the table has its column.
    fn toggle(&self, (name, target, is_sai): (&str, &str, bool)) {
        let column = target.trim_end_matches(')').rsplit('(').next().unwrap();
        if table_of(self.database(), "t").column(column).is_none() {
            return;
        }
        change_indexes(self.database(), |table, made_us| {
            if table.indexes.remove(name).is_some() {
                return;
            }
            let mut options = BTreeMap::from([(TARGET_OPTION.to_owned(), target.to_owned())]);
            if is_sai {
                options.insert(CLASS_OPTION.to_owned(), "sai".to_owned());
            }
            let kind = if is_sai { IndexKind::Custom } else { IndexKind::Composites };
            let index = Index { name: name.into(), id: index_id(table.id, name, made_us), kind, options };
            table.indexes.insert(name.into(), Arc::new(index));
        });
    }

    fn restart(&mut self, clean: bool) {
        let database = self.database.take().unwrap();
        if clean {
            database.close().unwrap();
            drop(database);
        } else {
            let after = self.machine.crash_image(Survives::OnlySynced);
            self.machine.end_tasks();
            drop(database);
            self.machine = after;
        }
        self.database = Some(Database::open(self.machine.host(), options(self.seed)).unwrap().0);
    }

    /// Searches for a value that may or may not be there.
    fn find(&self, random: &mut Random) {
        let database = self.database();
        let table = table_of(database, "t");
        let indexes: Vec<_> = table.indexes.values().cloned().collect();
        if indexes.is_empty() {
            return;
        }
        let index = random.pick(&indexes).clone();
        let name = &*index.name;
        let now_s = database.now_s();
        let all = read(database, &table, &Ask::everything(), now_s).unwrap();
        let column = ["v", "w", "s", "m"].into_iter().find(|column| index.target().contains(column));
        let mut values: Vec<(Vec<u8>, Vec<u8>)> = vec![(Vec::new(), b"\0\0\0\x01".to_vec())];
        for partition in &all {
            let cells = partition.rows.iter().flat_map(|row| &row.cells).chain(&partition.statics);
            values.extend(
                cells
                    .filter(|((name, _), _)| Some(*name) == column)
                    .map(|((_, path), cell)| (path.clone().unwrap_or_default(), cell.value.clone())),
            );
            if name == "on_c" {
                values.extend(partition.rows.iter().map(|row| (Vec::new(), row.clustering[0].clone())));
            }
        }
        let (path, value) = random.pick(&values).clone();
        let value = if name == "on_keys" { path.clone() } else { value };
        let shape = Arc::new(IndexLayout::new(&table, &index).unwrap());
        let key = (name == "on_entries").then_some(&path[..]);
        let Ok(term) = shape.term(key, &value) else { return };
        let is_range = name == "on_w" && random.chance(50);
        let lookup = match is_range {
            true => IndexLookup::Between(Some(term), None),
            false => IndexLookup::Equal(term),
        };
        let search = [IndexSearch { shape, lookup }];
        let page_rows = *random.pick(&[None, Some(1), Some(2), Some(5)]);
        let keys = random.chance(30).then(|| vec![random.pick(KEYS).as_bytes().to_vec()]);
        let ask = Ask { page_rows, keys, ..Ask::everything() };
        let finder = || Finder {
            table: &table,
            name,
            value: &value,
            path: &path,
            is_range,
            now_s,
            key: Vec::new(),
            in_static: false,
            found: Vec::new(),
            counted: 0,
        };
        let mut plain = finder();
        let command = command_of(&table, &Ask { page_rows: None, ..ask.clone() }, now_s);
        let request = ReadRequest { may_block: true, ..ReadRequest::default() };
        let view = database.view(&table).unwrap();
        database.read(&command, &view, request, &mut plain, None).unwrap();
        let mut found = Vec::new();
        let mut command = command_of(&table, &ask, now_s);
        for page in 0.. {
            assert!(page < 10_000, "a search without an end");
            let mut sink = finder();
            let end = match read_indexed(database, &command, &search, request, &mut sink, None) {
                Err(Error::IndexNotAvailable { .. }) => return,
                end => end.unwrap(),
            };
            assert!(page_rows.is_none_or(|rows| sink.counted <= rows), "a page has at most its rows");
            found.append(&mut sink.found);
            match end {
                ReadEnd::Complete => break,
                ReadEnd::Page(at) => command.resume = Some(at),
            }
        }
        self.rows.set(self.rows.get() + found.len());
        assert_eq!(found, plain.found, "{name} {path:?} {value:?} range {is_range} {ask:?}");
    }

    fn step(&mut self, random: &mut Random, clock_us: &mut i64) {
        let table = table_of(self.database(), "t");
        match random.below(100) {
            0..50 => {
                let mut maker = Maker { random, shape: &self.shape, keys: KEYS };
                let key = maker.key();
                let count = 1 + maker.random.below(4);
                let mut changes: Vec<Timed> = (0..count).map(|_| maker.change()).collect();
                // Other runs have few timestamps, each of them for many writes and deletions.
                for timed in changes.iter_mut().filter(|_| self.seed % 4 < 2) {
                    *clock_us += 10;
                    let late_us = if random.chance(50) { random.below(300) as i64 * 10 } else { 0 };
                    timed.timestamp_us = *clock_us - late_us;
                }
                let update = update(&table, &key, &changes, self.database().now_s());
                self.database().write(&Mutation { updates: vec![update] }).unwrap().wait().unwrap();
            }
            50..80 => self.find(random),
            80..84 => self.toggle(*random.pick(INDEXES)),
            84..87 => _ = self.database().flush(table.id).unwrap(),
            87..88 => _ = self.database().flush_all().unwrap(),
            // Tables and hidden tables are flushed and compacted apart.
            88..90 => {
                let hidden = table.indexes.values().map(|index| index.id);
                let ids: Vec<_> = [table.id].into_iter().chain(hidden).collect();
                let id = *random.pick(&ids);
                match random.chance(50) {
                    true => _ = self.database().flush(id).unwrap(),
                    false => self.database().compact(vec![id]).wait().unwrap(),
                }
            }
            90..94 => (0..random.below(12)).for_each(|_| _ = self.machine.step()),
            94..95 => self.database().truncate(&table).unwrap(),
            95..96 => self.restart(random.chance(50)),
            96..97 => self.database().rebuild_indexes(&table).unwrap(),
            _ => self.machine.advance((1 + random.below(30) as u64) * 1_000_000_000),
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.machine.end_tasks();
    }
}

fn shape(random: &mut Random) -> Shape {
    let count = *random.pick(&[0, 1, 1, 2]);
    let kind = |random: &mut Random| *random.pick(&[Kind::Text, Kind::Int, Kind::Blob]);
    Shape {
        name: "t",
        id: 0x20,
        has_static: count > 0 && random.chance(60),
        has_map: random.chance(60),
        compressed: random.chance(50),
        value_bytes: 0,
        width: 0,
        strategy: random.below(4),
        many: 0,
        clustering: (0..count).map(|_| (kind(random), random.chance(50))).collect(),
    }
}

#[test]
fn a_search_finds_what_testing_every_row_finds() {
    let runs = from_environment("INDEX_RUNS", 80);
    let first = from_environment("INDEX_SEED", 1);
    let mut rows = 0;
    for seed in first..first + runs {
        let mut random = Random::new(seed);
        let mut run = Run::new(seed, shape(&mut random));
        let mut clock_us = 1_700_000_000_000_000;
        for index in INDEXES {
            if random.chance(60) {
                run.toggle(*index);
            }
        }
        eprintln!("seed {seed}");
        for _ in 0..150 {
            run.step(&mut random, &mut clock_us);
        }
        run.database().wait_for_indexes();
        for _ in 0..20 {
            run.find(&mut random);
        }
        rows += run.rows.get();
    }
    assert!(rows as u64 > runs, "searches found something: {rows} rows");
}

/// `v` of the only row of partition `a`.
fn set_v(run: &Run, value: Option<&str>, timestamp_us: i64) {
    put_v(run, "a", value, (timestamp_us, 0));
}

fn put_v(run: &Run, key: &str, value: Option<&str>, (timestamp_us, ttl_s): (i64, i32)) {
    let cells =
        vec![CellWrite { column: "v", path: None, value: value.map(|value| value.as_bytes().to_vec()) }];
    let change = Change::Row { clustering: Vec::new(), marker: false, cells, clear_map: false };
    let timed = Timed { change, timestamp_us, ttl_s };
    let table = table_of(run.database(), "t");
    let update = update(&table, key.as_bytes(), &[timed], run.database().now_s());
    run.database().write(&Mutation { updates: vec![update] }).unwrap().wait().unwrap();
}

#[test]
fn a_value_written_again_after_its_deletion_was_purged_is_found() {
    for again_us in [3, 5, 7] {
        for by_search in [false, true] {
            let mut random = Random::new(7);
            let shape =
                Shape { clustering: Vec::new(), has_static: false, has_map: false, ..shape(&mut random) };
            let run = Run::new(2, shape);
            let table = || table_of(run.database(), "t");
            run.toggle(INDEXES[0]);
            set_v(&run, Some("x"), 5);
            if by_search {
                // The write of the tombstone does not see the value, and a search removes the entry.
                run.database().flush_all().unwrap();
            }
            set_v(&run, None, 10);
            (0..10).for_each(|_| run.find(&mut random));
            run.database().flush(table().id).unwrap();
            run.machine.advance(5_000_000_000);
            run.database().compact(vec![table().id]).wait().unwrap();
            set_v(&run, Some("x"), again_us);
            (0..10).for_each(|_| run.find(&mut random));
            assert!(run.rows.get() > 0, "the value is there");
        }
    }
}

/// The year 2100 in microseconds: a timestamp that a client makes in the wrong unit, or by a wrong clock.
const FAR_US: i64 = 4_102_444_800_000_000;

/// Keys of the partitions whose `v` is `x`, and the entries of `x` that a search finds without a value.
fn found_by_x(run: &Run) -> (Vec<Vec<u8>>, u64) {
    let database = run.database();
    let table = table_of(database, "t");
    let shape = Arc::new(IndexLayout::new(&table, &table.indexes["on_v"]).unwrap());
    let term = shape.term(None, b"x").unwrap();
    let search = [IndexSearch { shape, lookup: IndexLookup::Equal(term) }];
    let command = command_of(&table, &Ask::everything(), database.now_s());
    let mut sink = Finder {
        table: &table,
        name: "on_v",
        value: b"x",
        path: b"",
        is_range: false,
        now_s: database.now_s(),
        key: Vec::new(),
        in_static: false,
        found: Vec::new(),
        counted: 0,
    };
    let mut probe = Probe::default();
    let request = ReadRequest { may_block: true, ..ReadRequest::default() };
    read_indexed(database, &command, &search, request, &mut sink, Some(&mut probe)).unwrap();
    (sink.found.into_iter().map(|(key, _)| key).collect(), probe.index_stale)
}

#[test]
fn one_timestamp_far_in_the_future_does_not_make_later_entries_lasting() {
    for (restarted, compacted) in
        [(None, false), (None, true), (Some(true), false), (Some(false), false), (Some(true), true)]
    {
        let mut random = Random::new(7);
        let shape = Shape { clustering: Vec::new(), has_static: false, has_map: false, ..shape(&mut random) };
        // Tombstones are kept.
        let mut run = Run::new(3, shape);
        run.toggle(INDEXES[0]);
        // One SSTable of the hidden table with a removal, and with a lasting entry of the far future.
        put_v(&run, "old", Some("x"), (5, 0));
        put_v(&run, "old", Some("y"), (6, 0));
        put_v(&run, "far", Some("x"), (FAR_US, 0));
        run.database().flush_all().unwrap();
        if compacted {
            put_v(&run, "older", Some("x"), (4, 0));
            put_v(&run, "older", Some("y"), (6, 0));
            run.database().flush_all().unwrap();
            let hidden = table_of(run.database(), "t").indexes["on_v"].id;
            run.database().compact(vec![hidden]).wait().unwrap();
        }
        if let Some(clean) = restarted {
            run.restart(clean);
        }
        run.database().wait_for_indexes();
        let now_us = run.database().now_s() * 1_000_000;
        for n in 0..1000 {
            put_v(&run, &format!("key {n}"), Some("x"), (now_us + n, 100));
        }
        let what = format!("restarted {restarted:?}, compacted {compacted}");
        assert_eq!(found_by_x(&run).0.len(), 1001, "{what}");
        run.machine.advance(200_000_000_000);
        // Entries that have no expiry are found without a value.
        assert_eq!(found_by_x(&run), (vec![b"far".to_vec()], 0), "{what}");
    }
}
