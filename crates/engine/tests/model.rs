//! Random operations, compared with the judge: writes with timestamps in any order, deletions of every kind, TTLs, flushes,
//! compactions that purge, restarts, truncates; reads by names and slices, in both directions, with limits and pages.
//!
//! A failing run is reduced to the operations it needs and printed. `MODEL_RUNS` sets the number of runs, `MODEL_SEED`
//! selects one.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod support;

use helenus_engine::{Database, DatabaseOptions};
use helenus_host::sim::{Machine, Survives};
use helenus_model::mutation::Mutation;
use helenus_model::schema::Table;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use support::actual::{read, table_of_shape, update};
use support::judge::{Ask, Change, FoundPartition, Judge, Kind, Maker, STRATEGIES, Shape, Timed};
use support::random::{Random, from_environment};
use support::{create, table_of};

const KEYS: &[&str] = &["a", "b", "c", "d", "e", "f", "g", "a\0"];

#[derive(Clone, Debug)]
enum Op {
    /// One mutation: table, key and changes of each partition.
    Write(Vec<(usize, Vec<u8>, Vec<Timed>)>),
    Read(usize, Ask),
    Flush(usize),
    Compact(usize),
    /// Steps of background work: compactions that strategies choose.
    Background(usize),
    Truncate(usize),
    Restart {
        clean: bool,
    },
    Advance {
        seconds: u64,
    },
    ColdReads(u64),
}

fn shapes(random: &mut Random) -> Vec<Shape> {
    let names = [("t0", 0x10), ("t1", 0x11)];
    let shape = |(name, id): (&'static str, u128)| {
        let kind = |random: &mut Random| *random.pick(&[Kind::Text, Kind::Int, Kind::Blob]);
        let count = *random.pick(&[0, 1, 1, 1, 2, 2]);
        let wide = count > 0 && random.chance(30);
        let mut clustering: Vec<_> = (0..count).map(|_| (kind(random), random.chance(50))).collect();
        if wide {
            clustering[0].0 = Kind::Int;
        }
        Shape {
            name,
            id,
            has_static: count > 0 && random.chance(60),
            has_map: random.chance(40),
            compressed: random.chance(50),
            value_bytes: if wide { 3000 } else { 0 },
            width: if wide { 60 } else { 0 },
            strategy: random.below(STRATEGIES.len()),
            many: 0,
            clustering,
        }
    };
    names.map(shape).to_vec()
}

/// Seconds that tombstones are kept at least; `None` if they are never purged.
fn grace_s(seed: u64) -> Option<i64> {
    match seed % 4 {
        0 => Some(0),
        2 => Some(15),
        _ => None,
    }
}

/// Whether timestamps mostly grow. Otherwise there are few, each of them for many writes and deletions.
fn has_clock(seed: u64) -> bool {
    seed % 8 < 4
}

fn operations(random: &mut Random, shapes: &[Shape], count: usize, seed: u64) -> Vec<Op> {
    let keys = &KEYS[..1 + random.below(KEYS.len())];
    let mut clock_us = 1_700_000_000_000_000;
    (0..count)
        .map(|_| {
            let index = random.below(shapes.len());
            let what = random.below(100);
            let parts = if random.chance(15) { 1 + random.below(3) } else { 1 };
            let mut maker = |index: usize, random: &mut Random| {
                let mut maker = Maker { random, shape: &shapes[index], keys };
                let key = maker.key();
                let changes = 1 + if maker.random.chance(40) { maker.random.below(8) } else { 0 };
                let mut changes: Vec<Timed> = (0..changes).map(|_| maker.change()).collect();
                for timed in changes.iter_mut().filter(|_| has_clock(seed)) {
                    clock_us += 10;
                    let late_us = if random.chance(20) { random.below(100) as i64 * 10 } else { 0 };
                    timed.timestamp_us = clock_us - late_us;
                }
                (index, key, changes)
            };
            match what {
                0..55 => {
                    Op::Write((0..parts).map(|part| maker((index + part) % shapes.len(), random)).collect())
                }
                55..88 => Op::Read(index, Maker { random, shape: &shapes[index], keys }.ask()),
                88..91 => Op::Flush(index),
                91..92 => Op::Compact(index),
                92..94 => Op::Background(random.below(12)),
                94..95 => Op::Truncate(index),
                95..96 => Op::Restart { clean: random.chance(50) },
                96..99 => Op::Advance { seconds: 1 + random.below(30) as u64 },
                _ => Op::ColdReads(*random.pick(&[0, 30, 100])),
            }
        })
        .collect()
}

/// A database and its judges.
struct Run {
    seed: u64,
    machine: Machine,
    database: Option<Arc<Database>>,
    tables: Vec<Arc<Table>>,
    judges: Vec<Judge>,
}

fn options(seed: u64) -> DatabaseOptions {
    let mut options = DatabaseOptions::new("/db");
    options.segment_bytes = 256 << 10;
    options.compaction.purge.grace_s = grace_s(seed).unwrap_or(i64::MAX / 4);
    options.compaction.threads = 1 + seed as usize % 2;
    options
}

impl Run {
    fn new(seed: u64, shapes: &[Shape]) -> Run {
        let machine = Machine::new(seed);
        let database = Database::open(machine.host(), options(seed)).unwrap().0;
        create(&database, shapes.iter().map(table_of_shape).collect());
        let tables = shapes.iter().map(|shape| table_of(&database, shape.name)).collect();
        let judge = |shape: Shape| match grace_s(seed) {
            Some(grace_s) => Judge::purging(shape, grace_s),
            None => Judge::new(shape),
        };
        let judges = shapes.iter().cloned().map(judge).collect();
        Run { seed, machine, database: Some(database), tables, judges }
    }

    fn database(&self) -> &Arc<Database> {
        self.database.as_ref().unwrap()
    }

    fn apply(&mut self, op: &Op) {
        match op {
            Op::Write(parts) => {
                let now_s = self.database().now_s();
                let updates = parts
                    .iter()
                    .map(|(index, key, changes)| update(&self.tables[*index], key, changes, now_s))
                    .collect();
                self.database().write(&Mutation { updates }).unwrap().wait().unwrap();
                for (index, key, changes) in parts {
                    self.judges[*index].apply(key, changes, now_s);
                }
            }
            Op::Read(index, ask) => {
                self.adopt(*index);
                self.compare(*index, ask);
            }
            Op::Flush(index) => {
                self.database().flush(self.tables[*index].id).unwrap();
            }
            Op::Compact(index) => {
                self.database().compact(vec![self.tables[*index].id]).wait().unwrap();
            }
            Op::Background(steps) => (0..*steps).for_each(|_| _ = self.machine.step()),
            Op::Truncate(index) => {
                self.database().truncate(&self.tables[*index]).unwrap();
                self.judges[*index].truncate();
            }
            Op::Restart { clean } => self.restart(*clean),
            Op::Advance { seconds } => self.machine.advance(seconds * 1_000_000_000),
            Op::ColdReads(percent) => self.machine.set_cold_reads(*percent),
        }
    }

    /// Has the judge take over which of several versions are visible. The read after that must show just these.
    fn adopt(&mut self, index: usize) {
        if self.judges[index].is_open() {
            let now_s = self.database().now_s();
            let found = read(self.database(), &self.tables[index], &Ask::everything(), now_s).unwrap();
            self.judges[index].adopt(&found, now_s);
        }
    }

    fn compare(&self, index: usize, ask: &Ask) {
        let now_s = self.database().now_s();
        let mut found = read(self.database(), &self.tables[index], ask, now_s).unwrap();
        let mut expected = self.judges[index].read(ask, now_s);
        if ask.may_end_early(&self.judges[index].shape) {
            let both = [&mut found, &mut expected].into_iter().flatten();
            both.for_each(|partition: &mut FoundPartition| partition.forget_unseen(ask.only));
        }
        if found != expected {
            let differs = found.iter().zip(&expected).position(|(a, b)| a != b);
            let at = differs.unwrap_or(found.len().min(expected.len()));
            panic!(
                "table {index}, {ask:?}\nat partition {at}: found\n{:?}\nexpected\n{:?}",
                found.get(at),
                expected.get(at)
            );
        }
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
        let database = Database::open(self.machine.host(), options(self.seed)).unwrap().0;
        self.tables = self.judges.iter().map(|judge| table_of(&database, judge.shape.name)).collect();
        self.database = Some(database);
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.machine.end_tasks();
    }
}

/// Runs operations, then compares everything. Returns the panic's text if this fails.
fn run(seed: u64, shapes: &[Shape], ops: &[Op]) -> Result<(), String> {
    let result = catch_unwind(AssertUnwindSafe(|| {
        let mut run = Run::new(seed, shapes);
        for op in ops {
            run.apply(op);
        }
        for index in 0..shapes.len() {
            run.adopt(index);
            for reversed in [false, true] {
                run.compare(index, &Ask { reversed, ..Ask::everything() });
            }
        }
    }));
    result.map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        text.or_else(|| panic.downcast_ref::<&str>().map(|text| text.to_string())).unwrap_or_default()
    })
}

/// Removes operations, then changes of writes, as long as the run still fails.
fn shrink(seed: u64, shapes: &[Shape], mut ops: Vec<Op>) -> Vec<Op> {
    let mut size = ops.len() / 2;
    while size > 0 {
        let mut at = 0;
        while at < ops.len() {
            let mut fewer = ops.clone();
            fewer.drain(at..(at + size).min(ops.len()));
            if run(seed, shapes, &fewer).is_err() {
                ops = fewer;
            } else {
                at += size;
            }
        }
        size /= 2;
    }
    for at in 0..ops.len() {
        let mut change = 0;
        loop {
            let mut fewer = ops.clone();
            let Op::Write(parts) = &mut fewer[at] else { break };
            let mut left = change;
            let mut found = false;
            for (_, _, changes) in parts.iter_mut() {
                if left < changes.len() {
                    changes.remove(left);
                    found = true;
                    break;
                }
                left -= changes.len();
            }
            if !found {
                break;
            }
            parts.retain(|(_, _, changes)| !changes.is_empty());
            if run(seed, shapes, &fewer).is_err() {
                ops = fewer;
            } else {
                change += 1;
            }
        }
    }
    ops
}

/// A table of two rows whose map has any number of elements.
fn large_shape(random: &mut Random) -> Shape {
    Shape {
        name: "t0",
        id: 0x10,
        clustering: vec![(Kind::Int, random.chance(50))],
        has_static: true,
        has_map: true,
        compressed: random.chance(50),
        value_bytes: 0,
        width: 2,
        strategy: random.below(STRATEGIES.len()),
        many: 1 << (14 + random.below(4)),
    }
}

/// A few operations on one partition of this table, each with many elements, and a write with many range deletions.
fn large_operations(random: &mut Random, shape: &Shape) -> Vec<Op> {
    let keys = &KEYS[..1];
    let mut ops = Vec::new();
    for number in 0..10 {
        let mut maker = Maker { random, shape, keys };
        let (key, mut changes) = (maker.key(), vec![maker.change()]);
        if number == 4 {
            let ranges = (0..maker.random.below(2000)).map(|_| maker.change());
            let is_range = |timed: &Timed| matches!(timed.change, Change::DeleteRange(..));
            changes.extend(ranges.filter(is_range));
        }
        ops.push(Op::Write(vec![(0, key, changes)]));
        ops.push(match random.below(4) {
            0 => Op::Flush(0),
            1 => Op::Compact(0),
            2 => Op::Restart { clean: random.chance(50) },
            _ => Op::Read(0, Maker { random, shape, keys }.ask()),
        });
    }
    ops
}

/// Like the test below, with rows of more cells than two bytes can count. `MODEL_LARGE_RUNS` sets the number of runs.
#[test]
fn rows_of_any_number_of_cells_are_read_flushed_compacted_and_replayed() {
    let runs = from_environment("MODEL_LARGE_RUNS", 3);
    let first = from_environment("MODEL_SEED", 1);
    let mut cells_max = 0;
    for seed in first..first + runs {
        println!("seed {seed}");
        let mut random = Random::new(seed);
        let shape = large_shape(&mut random);
        let ops = large_operations(&mut random, &shape);
        let shapes = [shape];
        if let Err(problem) = run(seed, &shapes, &ops) {
            panic!("seed {seed}\n{shapes:#?}\n{}", &problem[..problem.len().min(2000)]);
        }
        let mut judge = Judge::new(shapes[0].clone());
        for op in &ops {
            let Op::Write(parts) = op else { continue };
            parts.iter().for_each(|(_, key, changes)| judge.apply(key, changes, 0));
            let found = judge.read(&Ask::everything(), 0);
            let of_row = found.iter().flat_map(|partition| &partition.rows).map(|row| row.cells.len()).max();
            cells_max = cells_max.max(of_row.unwrap_or_default());
        }
    }
    assert!(cells_max > 65_536, "no row had more than {cells_max} cells");
}

/// A table of a few rows whose maps grow large.
fn growing_shape(random: &mut Random) -> Shape {
    let second = *random.pick(&[None, Some((Kind::Text, false)), Some((Kind::Blob, true))]);
    Shape {
        name: "t0",
        id: 0x10,
        clustering: [(Kind::Int, random.chance(50))].into_iter().chain(second).collect(),
        has_static: true,
        has_map: true,
        compressed: random.chance(50),
        value_bytes: if random.chance(50) { 3000 } else { 0 },
        width: 1 + random.below(30),
        strategy: random.below(STRATEGIES.len()),
        many: 1 << random.below(7),
    }
}

/// Many small writes of one partition: range deletions one after another, elements of one row one after another. Few
/// flushes, so that both stay in memory.
fn growing_operations(random: &mut Random, shape: &Shape, count: usize) -> Vec<Op> {
    let keys = &KEYS[..1];
    let favourite = Maker { random, shape, keys }.clustering();
    let mut number = 0;
    let mut op = |random: &mut Random| {
        let mut maker = Maker { random, shape, keys };
        number += 1;
        match maker.random.below(100) {
            0..75 => {
                let key = maker.key();
                let mut changes: Vec<Timed> =
                    (0..1 + maker.random.below(2)).map(|_| maker.change()).collect();
                for timed in &mut changes {
                    match &mut timed.change {
                        // Deletions of all would leave nothing to look at.
                        Change::DeletePartition => timed.timestamp_us = 1,
                        Change::DeleteRange(..) | Change::DeleteRow(_) => {
                            timed.timestamp_us = 900 + maker.random.below(200 + number) as i64;
                        }
                        Change::Row { clustering, .. } => {
                            timed.timestamp_us = 1000 + maker.random.below(200 + number) as i64;
                            if maker.random.chance(70) {
                                clustering.clone_from(&favourite);
                            }
                        }
                        Change::Static(_) => {}
                    }
                }
                Op::Write(vec![(0, key, changes)])
            }
            75..97 => Op::Read(0, maker.ask()),
            97 => Op::Flush(0),
            98 => Op::Restart { clean: maker.random.chance(50) },
            _ => Op::Advance { seconds: 1 + maker.random.below(30) as u64 },
        }
    };
    (0..count).map(|_| op(random)).collect()
}

/// `MODEL_GROWING_RUNS` sets the number of runs.
#[test]
fn one_partition_of_many_range_deletions_and_many_writes_of_one_row_answers_as_maps_do() {
    let runs = from_environment("MODEL_GROWING_RUNS", 30);
    let first = from_environment("MODEL_SEED", 1);
    for seed in first..first + runs {
        let mut random = Random::new(seed);
        let shapes = [growing_shape(&mut random)];
        let ops = growing_operations(&mut random, &shapes[0], 300);
        // Odd: no purging, for timestamps come in any order.
        let seed = seed * 2 + 1;
        if let Err(problem) = run(seed, &shapes, &ops) {
            let ops = shrink(seed, &shapes, ops);
            let again = run(seed, &shapes, &ops).err().unwrap_or(problem);
            let ops: Vec<String> = ops.iter().map(|op| format!("  {op:?}")).collect();
            panic!("seed {seed}\n{shapes:#?}\n{}\n{again}", ops.join("\n"));
        }
    }
}

#[test]
fn the_engine_answers_as_a_database_of_maps() {
    let runs = from_environment("MODEL_RUNS", 600);
    let first = from_environment("MODEL_SEED", 1);
    for seed in first..first + runs {
        let mut random = Random::new(seed);
        let shapes = shapes(&mut random);
        let count = if random.chance(30) { 400 } else { 120 };
        let ops = operations(&mut random, &shapes, count, seed);
        if let Err(problem) = run(seed, &shapes, &ops) {
            eprintln!("seed {seed} fails; cutting it down");
            let ops = shrink(seed, &shapes, ops);
            let again = run(seed, &shapes, &ops).err().unwrap_or(problem);
            let ops: Vec<String> = ops.iter().map(|op| format!("  {op:?}")).collect();
            panic!("seed {seed}\n{shapes:#?}\n{}\n{again}", ops.join("\n"));
        }
    }
}
