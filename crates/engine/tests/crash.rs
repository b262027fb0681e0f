//! Crashes a machine before and after every sync of a run of random operations, and opens every resulting machine
//! again.
//!
//! The operations are numbered. A reopened database must be in the state after one of them: at least the last
//! acknowledged one (in `periodic` mode, where a power failure may lose acknowledged operations, the last one that
//! waited for its own sync), at most the last one that began. This single check covers everything: acknowledged
//! operations are there; others are there completely or not at all, even mutations of several partitions and tables;
//! truncated tables stay empty; and tables and rows are from the same moment. `CRASH_RUNS` sets the number of runs,
//! `CRASH_SEED` their seed.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod support;

use helenus_engine::{Database, DatabaseOptions, SyncMode, Ticket};
use helenus_host::sim::{Cut, Machine, Survives};
use helenus_model::mutation::Mutation;
use helenus_model::schema::{Schema, Table};
use parking_lot::Mutex;
use std::sync::Arc;
use support::actual::{read, table_of_shape, update};
use support::judge::{Ask, CellWrite, Change, FoundPartition, Judge, Kind, Maker, STRATEGIES, Shape, Timed};
use support::random::{Random, from_environment};
use support::{create, table_of};

const KEYS: &[&str] = &["a", "b", "c", "d"];

/// The content that the database must have after a number of operations.
#[derive(Clone)]
struct State {
    judges: Vec<Judge>,
    /// The greatest server timestamp in the content.
    server_us: i64,
}

/// The progress of a run, shared with the watcher of its syncs.
#[derive(Default)]
struct Track {
    /// The state before the first operation, and after each one that began.
    states: Vec<State>,
    /// Operation and ticket of each write.
    tickets: Vec<(usize, Arc<Ticket>)>,
    /// The last operation that returned only after a sync.
    synced: usize,
    cuts: Vec<TrackedCut>,
}

struct TrackedCut {
    cut: Cut,
    begun: usize,
    acknowledged: usize,
    synced: usize,
}

impl Track {
    fn begun(&self) -> usize {
        self.states.len() - 1
    }

    fn acknowledged(&self) -> usize {
        let ready = self.tickets.iter().filter(|(_, ticket)| ticket.is_ready().unwrap_or(false));
        ready.map(|(op, _)| *op).max().unwrap_or(0).max(self.synced)
    }
}

fn shape(name: &'static str, id: u128, clustering: Vec<(Kind, bool)>, has_map: bool) -> Shape {
    let has_static = !clustering.is_empty();
    let strategy = id as usize % STRATEGIES.len();
    Shape {
        name,
        id,
        clustering,
        has_static,
        has_map,
        compressed: has_map,
        value_bytes: 300,
        width: 8,
        strategy,
        many: 0,
    }
}

fn options(mode: SyncMode) -> DatabaseOptions {
    let mut options = DatabaseOptions::new("/db");
    options.sync = Some(mode);
    options.segment_bytes = 16 << 10;
    // The next compaction purges deleted data. Runs whose timestamps are out of order keep it (see `Run::purges`).
    options.compaction.purge.grace_s = 0;
    options.compaction.bytes_per_s = 0;
    options
}

/// The same options, but tombstones are kept.
fn keeping(mode: SyncMode) -> DatabaseOptions {
    let mut options = options(mode);
    options.compaction.purge.grace_s = i64::MAX / 4;
    options
}

struct Run {
    machine: Machine,
    database: Arc<Database>,
    random: Random,
    track: Arc<Mutex<Track>>,
    judges: Vec<Judge>,
    server_us: i64,
    next_table: u128,
    mode: SyncMode,
    /// Whether compactions purge. Then every timestamp is the server's, so that nothing older is written after a
    /// tombstone.
    purges: bool,
}

const TABLE_NAMES: &[&str] = &["t0", "t1", "t2"];

impl Run {
    fn new(seed: u64, mode: SyncMode) -> Run {
        let machine = Machine::new(seed);
        let track = Arc::new(Mutex::new(Track::default()));
        track.lock().states.push(State { judges: Vec::new(), server_us: 0 });
        let watched = track.clone();
        machine.on_every_sync(move |cut| {
            let mut track = watched.lock();
            let (begun, acknowledged, synced) = (track.begun(), track.acknowledged(), track.synced);
            track.cuts.push(TrackedCut { cut: cut.clone(), begun, acknowledged, synced });
        });
        let purges = seed.is_multiple_of(2);
        let options = if purges { options(mode) } else { keeping(mode) };
        let database = Database::open(machine.host(), options).unwrap().0;
        let random = Random::new(seed);
        let judges = Vec::new();
        Run { machine, database, random, track, judges, server_us: 0, next_table: 0x20, mode, purges }
    }

    /// Records that an operation begins, with the state after it. Returns its number.
    fn begin(&mut self) -> usize {
        let mut track = self.track.lock();
        track.states.push(State { judges: self.judges.clone(), server_us: self.server_us });
        track.begun()
    }

    fn done_synced(&self, op: usize) {
        self.track.lock().synced = op;
    }

    fn operation(&mut self) {
        match self.random.below(100) {
            _ if self.judges.is_empty() => self.create_table(),
            0..4 if self.judges.len() < TABLE_NAMES.len() => self.create_table(),
            0..2 => self.drop_table(),
            2..5 => self.truncate(),
            5..13 => self.flush(),
            13..16 => self.compact(),
            16..30 => {
                // Like a client with one request at a time.
                if !self.track.lock().tickets.is_empty() {
                    self.wait();
                }
            }
            30..45 => {
                self.machine.step();
            }
            45..48 => self.machine.advance(self.random.clone().below(3_000_000_000) as u64),
            _ => self.write(),
        }
    }

    fn wait(&self) {
        // The lock must be free during the wait, because the watcher of the syncs takes it.
        let ticket = self.track.lock().tickets.last().map(|(_, ticket)| ticket.clone());
        ticket.unwrap().wait().unwrap();
    }

    fn write(&mut self) {
        let now_s = self.database.now_s();
        let parts = if self.random.chance(30) { 2 + self.random.below(3) } else { 1 };
        let server = (self.random.chance(30) || self.purges).then(|| self.database.next_timestamp().unwrap());
        self.server_us = server.unwrap_or(0).max(self.server_us);
        let mut updates = Vec::new();
        for _ in 0..parts {
            let index = self.random.below(self.judges.len());
            let shape = self.judges[index].shape.clone();
            let mut maker = Maker { random: &mut self.random, shape: &shape, keys: KEYS };
            let key = maker.key();
            let count = 1 + maker.random.below(5);
            let mut changes: Vec<Timed> = (0..count).map(|_| maker.change()).collect();
            for timed in &mut changes {
                timed.timestamp_us = server.unwrap_or(timed.timestamp_us);
            }
            let table = table_of(&self.database, shape.name);
            updates.push(update(&table, &key, &changes, now_s));
            self.judges[index].apply(&key, &changes, now_s);
        }
        let op = self.begin();
        let ticket = self.database.write(&Mutation { updates }).unwrap();
        self.track.lock().tickets.push((op, Arc::new(ticket)));
        if self.mode != SyncMode::Group && self.random.chance(50) {
            self.wait();
        }
    }

    fn flush(&mut self) {
        let op = self.track.lock().begun();
        let index = self.random.below(self.judges.len());
        let table = table_of(&self.database, self.judges[index].shape.name);
        if self.database.flush(table.id).unwrap() > 0 {
            self.done_synced(op);
        }
    }

    fn compact(&mut self) {
        let index = self.random.below(self.judges.len());
        let table = table_of(&self.database, self.judges[index].shape.name);
        self.database.compact(vec![table.id]).wait().unwrap();
    }

    fn truncate(&mut self) {
        let index = self.random.below(self.judges.len());
        let table = table_of(&self.database, self.judges[index].shape.name);
        self.judges[index].truncate();
        let op = self.begin();
        self.database.truncate(&table).unwrap();
        self.done_synced(op);
    }

    fn create_table(&mut self) {
        let used: Vec<&str> = self.judges.iter().map(|judge| judge.shape.name).collect();
        let name = TABLE_NAMES.iter().find(|name| !used.contains(name)).unwrap();
        let clustering = match self.random.below(3) {
            0 => vec![],
            1 => vec![(Kind::Int, self.random.chance(50))],
            _ => vec![(Kind::Text, self.random.chance(50)), (Kind::Int, self.random.chance(50))],
        };
        let has_map = self.random.chance(50);
        let shape = shape(name, self.next_table, clustering, has_map);
        self.next_table += 1;
        self.judges.push(Judge::new(shape.clone()));
        let op = self.begin();
        create(&self.database, vec![table_of_shape(&shape)]);
        if self.mode != PERIODIC {
            self.done_synced(op);
        }
    }

    fn drop_table(&mut self) {
        let index = self.random.below(self.judges.len());
        let judge = self.judges.remove(index);
        let op = self.begin();
        change(&self.database, |tables| drop(tables.remove(judge.shape.name)));
        self.done_synced(op);
    }
}

const PERIODIC: SyncMode = SyncMode::Periodic { period_ms: 1000 };

type Tables = std::collections::BTreeMap<Arc<str>, Arc<Table>>;

/// Changes the tables of the test's keyspace.
fn change(database: &Database, change: impl FnOnce(&mut Tables)) {
    let changed = database.change_schema::<()>(|schema, _| {
        let mut next: Schema = schema.clone();
        let mut keyspace = (*next.keyspaces["ks"]).clone();
        change(&mut keyspace.tables);
        next.keyspaces.insert("ks".into(), Arc::new(keyspace));
        Ok(next)
    });
    changed.map_err(|_| "the schema changes").unwrap().1.wait().unwrap();
}

/// Everything that a database has: tables and their rows.
fn content(database: &Database) -> Vec<(String, Vec<FoundPartition>)> {
    let schema = database.schema();
    let tables = schema.keyspaces.get("ks").map(|keyspace| keyspace.tables.clone()).unwrap_or_default();
    let rows = |table: &Arc<Table>| read(database, table, &Ask::everything(), database.now_s()).unwrap();
    tables.iter().map(|(name, table)| (format!("{name} {:?}", table.id), rows(table))).collect()
}

fn expected(state: &State, now_s: i64) -> Vec<(String, Vec<FoundPartition>)> {
    let mut tables: Vec<_> = state
        .judges
        .iter()
        .map(|judge| {
            let id = helenus_model::schema::TableId(uuid::Uuid::from_u128(judge.shape.id));
            (format!("{} {id:?}", judge.shape.name), judge.read(&Ask::everything(), now_s))
        })
        .collect();
    tables.sort_by(|a, b| a.0.cmp(&b.0));
    tables
}

/// Checks that a database is in one of the states, and returns its number.
fn check(database: &Database, states: &[State], allowed: (usize, usize), what: &str) -> usize {
    let found = content(database);
    let now_s = database.now_s();
    let (least, greatest) = allowed;
    // Several operations may lead to the same content.
    let fits = |op: &usize| expected(&states[*op], now_s) == found;
    if let Some(op) = (least..=greatest).find(fits) {
        return op;
    }
    let other = (0..states.len()).rev().find(fits);
    let mut text = format!("{what}: the state is none of {least}..={greatest}");
    match other {
        Some(op) => text += &format!(", but that of operation {op}"),
        None => {
            let wanted = expected(&states[greatest], now_s);
            for (index, (name, rows)) in found.iter().enumerate() {
                let wanted = wanted.get(index);
                text += &format!("\n{name}: {} partitions; expected {:?}", rows.len(), wanted.map(|w| &w.0));
                for (n, row) in rows.iter().enumerate() {
                    if wanted.and_then(|w| w.1.get(n)) != Some(row) {
                        text += &format!("\n found {row:?}\n wanted {:?}", wanted.and_then(|w| w.1.get(n)));
                        break;
                    }
                }
            }
        }
    }
    panic!("{text}");
}

/// Opens a machine after a crash, checks it, and crashes it again.
///
/// `again` is `None` at the last level; otherwise it is the least operation that must survive a power failure during
/// the recovery.
fn recover(
    machine: &Machine,
    mode: SyncMode,
    states: &[State],
    allowed: (usize, usize),
    what: &str,
    again: Option<usize>,
) {
    // The clock was wrong and is set back.
    machine.set_wall_us(machine.host().clock.wall_us() - 3_000_000);
    let cuts = Arc::new(Mutex::new(Vec::new()));
    if again.is_some() {
        let kept = cuts.clone();
        machine.on_every_sync(move |cut| kept.lock().push(cut.clone()));
    }
    let database = match Database::open(machine.host(), options(mode)) {
        Ok((database, _)) => database,
        Err(error) => panic!("{what}: does not open: {error}"),
    };
    let op = check(&database, states, allowed, what);
    let next_us = database.next_timestamp().unwrap();
    let server_us = states[op].server_us;
    assert!(next_us > server_us, "{what}: server timestamp {next_us} after {server_us}");
    machine.stop_watching();
    if let Some(least) = again {
        // A write acknowledged now survives the next power failure, although the last one left unsynced bytes.
        if let Some(judge) = states[op].judges.first() {
            let mut after = states[op].clone();
            let row = Change::Row {
                clustering: judge.shape.clustering.iter().map(|_| Vec::new()).collect(),
                marker: true,
                cells: vec![CellWrite { column: "v", path: None, value: Some(b"again".to_vec()) }],
                clear_map: false,
            };
            let now_s = database.now_s();
            let changes = [Timed { change: row, timestamp_us: i64::MAX - 1, ttl_s: 0 }];
            let table = table_of(&database, judge.shape.name);
            let update = update(&table, b"again", &changes, now_s);
            database.write(&Mutation { updates: vec![update] }).unwrap().wait().unwrap();
            after.judges[0].apply(b"again", &changes, now_s);
            if mode != PERIODIC {
                recover(
                    &machine.crash(),
                    mode,
                    &[after],
                    (0, 0),
                    &format!("{what}, again, and written to"),
                    None,
                );
            }
        }
        for (index, cut) in std::mem::take(&mut *cuts.lock()).into_iter().enumerate() {
            let left =
                if index % 2 == 0 { Survives::OnlySynced } else { Survives::Torn { seed: index as u64 } };
            let what = format!(
                "{what}, then at sync {} ({:?} {}) of its recovery",
                cut.number,
                cut.when,
                cut.path.display()
            );
            recover(&cut.machine.crash_image(left), mode, states, (least, allowed.1), &what, None);
            cut.machine.end_tasks();
        }
    }
    machine.end_tasks();
}

/// Runs operations, then opens what a crash leaves at each sync: one of three images, or all of them if `thorough`.
fn run(seed: u64, mode: SyncMode, operations: usize, thorough: bool) -> usize {
    let mut run = Run::new(seed, mode);
    for _ in 0..operations {
        run.operation();
    }
    run.machine.stop_watching();
    let mut track = run.track.lock();
    let cuts = std::mem::take(&mut track.cuts);
    let count = cuts.len();
    let mut random = Random::new(seed ^ 0xFF);
    for tracked in cuts {
        let TrackedCut { cut, begun, acknowledged, synced } = tracked;
        let at = format!(
            "seed {seed}, {mode:?}, cut {:?} sync {} of {}, operation {begun}, acknowledged {acknowledged}",
            cut.when,
            cut.number,
            cut.path.display()
        );
        let kept = if mode == PERIODIC { synced } else { acknowledged };
        let torn = Survives::Torn { seed: random.next() };
        let left = [(Survives::OnlySynced, kept), (torn, kept), (Survives::EverythingWritten, acknowledged)];
        let left = if thorough { left.to_vec() } else { vec![*random.pick(&left)] };
        for (survives, least) in left {
            let again = random.chance(6).then_some(kept);
            let what = format!("{at}, {survives:?}");
            recover(&cut.machine.crash_image(survives), mode, &track.states, (least, begun), &what, again);
        }
        cut.machine.end_tasks();
    }
    drop(track);
    run.machine.end_tasks();
    count
}

#[test]
fn an_acknowledged_write_survives_a_cut_at_every_sync() {
    let runs = from_environment("CRASH_RUNS", 0);
    let first = from_environment("CRASH_SEED", 1);
    for seed in first..first + runs.max(2) {
        for mode in [SyncMode::Group, SyncMode::Batch, PERIODIC] {
            let cuts = run(seed, mode, if runs > 0 { 120 } else { 60 }, runs > 0);
            eprintln!("seed {seed}, {mode:?}: {cuts} cuts");
        }
    }
}

#[test]
fn a_column_dropped_and_made_again_is_empty_in_memory_on_disk_and_after_a_crash() {
    for flushed in [false, true] {
        let machine = Machine::new(1);
        let database = Database::open(machine.host(), options(SyncMode::Group)).unwrap().0;
        create(&database, vec![table_of_shape(&shape("t0", 1, vec![(Kind::Int, false)], false))]);
        let cells =
            |column, value: &[u8]| vec![CellWrite { column, path: None, value: Some(value.to_vec()) }];
        let write = |c: i32, cells: Vec<CellWrite>| {
            let table = table_of(&database, "t0");
            let clustering = vec![c.to_be_bytes().to_vec()];
            let change = Change::Row { clustering, marker: false, cells, clear_map: false };
            let timed = Timed { change, timestamp_us: database.next_timestamp().unwrap(), ttl_s: 0 };
            let update = update(&table, b"k", &[timed], 0);
            database.write(&Mutation { updates: vec![update] }).unwrap().wait().unwrap();
        };
        write(1, cells("v", b"old"));
        write(2, [cells("v", b"old"), cells("w", b"\0\0\0\x01")].concat());
        if flushed {
            database.flush_all().unwrap();
        }
        let dropped_us = database.next_timestamp().unwrap();
        change(&database, |tables| {
            let mut table = (*tables["t0"]).clone();
            let at = table.regulars.iter().position(|column| &*column.name == "v").unwrap();
            let column = table.regulars.remove(at);
            let dropped = helenus_model::schema::DroppedColumn {
                name: column.name.clone(),
                ty: column.ty,
                kind: column.kind,
                dropped_us: dropped_us / 1000 * 1000 + 999,
            };
            table.dropped.insert(column.name, dropped);
            tables.insert("t0".into(), Arc::new(table));
        });
        let rows = |database: &Database| {
            let table = table_of(database, "t0");
            let found = read(database, &table, &Ask::everything(), database.now_s()).unwrap();
            let rows = found.into_iter().flat_map(|partition| partition.rows);
            rows.map(|row| {
                (row.clustering[0][3], row.cells.iter().map(|(name, _)| name.0).collect::<String>())
            })
            .collect::<Vec<_>>()
        };
        assert_eq!(rows(&database), [(2, "w".to_string())]);
        machine.advance(5_000_000);
        change(&database, |tables| {
            let mut table = (*tables["t0"]).clone();
            let mut column = table.regulars[0].clone();
            (column.name, column.ty, column.id) =
                ("v".into(), helenus_model::types::CqlType::Text, Table::UNNUMBERED);
            table.regulars.push(column);
            table.arrange();
            tables.insert("t0".into(), Arc::new(table));
        });
        assert_eq!(rows(&database), [(2, "w".to_string())]);
        write(3, cells("v", b"new"));
        let expected = [(2, "w".to_string()), (3, "v".to_string())];
        assert_eq!(rows(&database), expected);
        let after = machine.crash();
        let again = Database::open(after.host(), options(SyncMode::Group)).unwrap().0;
        assert_eq!(rows(&again), expected, "after a crash, flushed before: {flushed}");
        again.flush_all().unwrap();
        assert_eq!(rows(&again), expected, "flushed after a crash");
        database.flush_all().unwrap();
        assert_eq!(rows(&database), expected, "flushed");
        after.end_tasks();
        machine.end_tasks();
    }
}
