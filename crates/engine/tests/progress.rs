//! Progress never depends on a side effect of other work: after any start, by any way in which a process ends, and under
//! load on any one table, the log stays within its bound, and nothing is kept that nobody needs.
//!
//! `PROGRESS_RUNS` sets the number of drawn runs, `PROGRESS_SEED` their first seed.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod support;

use helenus_engine::{Database, DatabaseOptions, SyncMode};
use helenus_host::sim::{Call, Fault, Survives};
use std::io::ErrorKind;
use support::log_file::{Segment, first_change};
use support::progress::Judged;
use support::random::{Random, from_environment};
use support::world::{Form, LONG_NS, TABLES, WATCHED, World};
use support::{table, table_of};

/// Segments of load: more than the bound of the log.
const MANY: usize = 60;

/// A form in which only the log makes a flush due.
fn form(seed: u64) -> Form {
    Form { segment_bytes: 16 << 10, memtable_bytes: 512 << 20, value_bytes: (900, 1000), ..Form::drawn(seed) }
}

/// Writes some rows to each of these tables.
fn fill(world: &mut World, names: &[&'static str], rows: usize) {
    for name in names {
        for _ in 0..rows {
            world.put(name, 40);
        }
    }
}

/// The reasons for a table to be named by the oldest segment while its memtable is empty.
#[derive(Clone, Copy, Debug)]
enum Cause {
    /// Everything was flushed by a stop.
    Stopped,
    /// A flush, then the death of the process.
    Killed,
    /// Without a restart: the active segment at the flush.
    Active,
    /// A flush, then a power cut.
    Cut,
    /// A TRUNCATE whose record is logged and whose end is not.
    Truncated,
    /// The same, and then a table that is written to.
    TruncatedFlushed,
    /// Several starts with nothing between them.
    Often,
    /// Its only records of a start cannot be applied, and are skipped.
    Skipped,
}

use Cause::*;
const CAUSES: [Cause; 8] = [Stopped, Killed, Active, Cut, Truncated, TruncatedFlushed, Often, Skipped];

/// Fails the clean-up of a TRUNCATE behind its record.
fn truncate_half(world: &mut World, name: &'static str) {
    let table = table_of(&world.database, name);
    world.database.flush(table.id).unwrap();
    world.machine.fail(Fault::new(Call::Remove, 1, ErrorKind::Other).on(&format!("/{name}-")).lasting());
    assert!(world.truncate(name).is_err(), "its files cannot be removed");
    world.machine.clear_faults();
    world.known.tables.insert(name, Default::default());
}

/// Writes a row to a flushed table, and makes its record one that no table can keep. Starts without it.
fn skip_one(mut world: World, name: &'static str) -> World {
    let table = table_of(&world.database, name);
    world.database.flush(table.id).unwrap();
    let before = world.known.clone();
    world.put(name, 40);
    let machine = world.machine.crash_image(Survives::EverythingWritten);
    let value = format!("{:06}-", world.written);
    let segment = Segment::with(&machine, &value);
    let record = segment.record(&value);
    segment.rewrite(&machine, record, |content| {
        let at = first_change(content);
        content[at] = 9;
    });
    let options = DatabaseOptions { skip_damaged_log: true, ..world.form.options() };
    let (database, report) = Database::open(machine.host(), options).unwrap();
    assert_eq!(report.unappliable.len(), 1);
    world.machine.end_tasks();
    let mut known = before;
    if name == WATCHED {
        // Its readers meet the record too.
        known.consumers.clear();
        for consumer in ["c1", "c2"] {
            database.changes().drop_consumer(("ks", WATCHED), consumer).unwrap();
        }
    }
    (world.machine, world.database, world.known) = (machine, database, known);
    world
}

impl Cause {
    fn come_about(self, mut world: World, idle: &'static str) -> World {
        fill(&mut world, &[idle], 10);
        match self {
            Stopped => world.restart("stopped"),
            Killed => {
                world.database.flush_all().unwrap();
                world.kill("killed")
            }
            Active => {
                world.database.flush_all().unwrap();
                fill(&mut world, &[idle], 3);
                let table = table_of(&world.database, idle);
                world.database.flush(table.id).unwrap();
                world
            }
            Cut => {
                world.database.flush_all().unwrap();
                let next = world.start(Survives::OnlySynced, "cut");
                world.end();
                next
            }
            Truncated => {
                truncate_half(&mut world, idle);
                world.kill("truncated")
            }
            TruncatedFlushed => {
                truncate_half(&mut world, idle);
                let mut next = world.kill("truncated");
                next.load("x", 3, "after a TRUNCATE");
                next.database.flush_all().unwrap();
                next
            }
            Skipped => skip_one(world, idle),
            Often => (0..3).fold(world, |world, _| world.restart("often")),
        }
    }
}

#[test]
fn the_log_stays_within_its_bound_whatever_an_idle_table_went_through() {
    for cause in CAUSES {
        let runs = from_environment("PROGRESS_RUNS", 2);
        let first = from_environment("PROGRESS_SEED", 1);
        for seed in first..first + runs {
            let mut random = Random::new(seed);
            let world = World::new(form(seed));
            let (idle, busy) = match random.below(3) {
                0 => ("t", "u"),
                1 => ("u", "t"),
                _ => (WATCHED, "t"),
            };
            let what = format!("{cause:?} of {idle}, seed {seed}");
            let mut world = cause.come_about(world, idle);
            if idle == WATCHED {
                // No consumer keeps the log.
                let consumers: Vec<&'static str> = world.known.consumers.keys().copied().collect();
                consumers.into_iter().for_each(|name| world.leave(name).unwrap());
            }
            world.load(busy, MANY, &what);
            world.check(&what);
            world.check_progress(&what);
            let mut world = world.kill(&what);
            world.load(busy, MANY, &format!("{what}, and once more"));
            world.check(&what);
            world.check_progress(&what);
            world.end();
        }
    }
}

#[test]
fn writes_go_on_when_memory_is_full_after_a_start() {
    // The memtables take half a MiB: without a flush every write would wait until its time-out.
    for seed in 1..4 {
        let mut world = World::new(Form { memtable_bytes: 1 << 19, ..form(seed) });
        fill(&mut world, &["t"], 10);
        world = world.restart("stopped");
        world.load("u", 100, "after a stop");
        world.check("after a stop");
        world.end();
    }
}

#[test]
fn a_clock_that_is_ahead_for_a_while_takes_no_kept_changes() {
    const DAY_US: i64 = 86_400_000_000;
    for days in [8, 400] {
        let mut world = World::new(Form { kept_bytes: 1 << 30, ..form(3) });
        // Without what the tests of other things set: the limits as they are by default.
        world.database.close().unwrap();
        let mut options = world.form.options();
        options.kept_log.age_s = 7 * 86_400;
        let machine = world.machine.crash_image(Survives::EverythingWritten);
        world.machine.end_tasks();
        world.database = helenus_engine::Database::open(machine.host(), options).unwrap().0;
        world.machine = machine;
        world.load(WATCHED, 6, "changes");
        world.database.flush_all().unwrap();
        let kept = world.database.changes().kept_log_bytes();
        assert!(kept > 0, "segments are kept");
        let now = world.machine.host().clock.wall_us();
        world.machine.set_wall_us(now + days * DAY_US);
        world.load("t", 3, "while the clock is ahead");
        world.database.flush_all().unwrap();
        world.acknowledge("c1", 1).unwrap();
        world.machine.set_wall_us(now + 1_000_000);
        world.load("t", 3, "when it is right again");
        world.database.flush_all().unwrap();
        assert!(world.database.changes().kept_log_bytes() >= kept / 2, "{days} days ahead");
        world.check(&format!("{days} days ahead"));
        world.end();
    }
}

#[test]
fn kept_segments_are_never_live_under_two_names() {
    // A rename between folders may keep both names on a strict disk until both folders are synced.
    for seed in 1..9 {
        let mut world = World::new(Form {
            segment_bytes: 64 << 10,
            value_bytes: (50, 9_000),
            kept_bytes: 1 << 30,
            ..form(seed)
        });
        world.load(WATCHED, 12, "changes");
        world.database.flush_all().unwrap();
        for name in ["c1", "c2"] {
            let behind = world.known.fed.len() - world.known.consumers[name];
            world.acknowledge(name, behind).unwrap();
        }
        for round in 0..3 {
            let what = format!("seed {seed}, round {round}");
            world.load("t", 4, &what);
            let next = world.start(Survives::OnlySynced, &what);
            world.end();
            world = next;
            world.check(&what);
        }
        world = world.kill("at the end");
        world.check("at the end");
        world.end();
    }
}

#[test]
fn a_removal_of_segments_starts_wherever_it_is_cut() {
    // Records of more than 4 KiB at the ends of segments leave old bytes behind them, once the files are used again.
    for (seed, is_watched) in [(1, false), (2, true), (3, true)] {
        let mode = if seed % 2 == 0 { SyncMode::Batch } else { SyncMode::Group };
        let form = Form { segment_bytes: 64 << 10, mode, kept_bytes: 1 << 30, ..form(seed) };
        let mut world = World::new(Form { value_bytes: (20, 21), ..form });
        if !is_watched {
            world.leave("c1").unwrap();
            world.leave("c2").unwrap();
        }
        world.load("t", 14, "small rows");
        world.database.flush_all().unwrap();
        world.form.value_bytes = (10_900, 10_901);
        for _ in 0..4 {
            for name in ["t", WATCHED] {
                for _ in 0..14 {
                    world.put(name, 10_900);
                }
            }
        }
        let cuts = std::sync::Arc::new(parking_lot::Mutex::new(Vec::new()));
        let kept = cuts.clone();
        world.machine.on_every_change(move |cut| kept.lock().push(cut.clone()));
        world.database.flush_all().unwrap();
        world.machine.stop_watching();
        let mut random = Random::new(seed);
        for (index, cut) in std::mem::take(&mut *cuts.lock()).into_iter().enumerate() {
            if random.chance(25) {
                let torn = Survives::Torn { seed: random.next() };
                for survives in [Survives::EverythingWritten, Survives::OnlySynced, torn] {
                    let path = cut.path.display();
                    let what = format!("seed {seed}, cut {index} ({:?} of {path}), {survives:?}", cut.when);
                    let next = World::open(&world, cut.machine.crash_image(survives), &what);
                    next.check(&what);
                    next.end();
                }
            }
            cut.machine.end_tasks();
        }
        world.end();
    }
}

#[test]
fn a_failed_import_is_finished_or_abandoned_before_anything_else_happens_to_its_tables() {
    for nth in 1..60 {
        for call in [Call::Link, Call::SyncDir, Call::Rename, Call::Sync] {
            let mut world = World::new(form(nth));
            fill(&mut world, &TABLES, 5);
            world.snapshot("saved", &["t", "u"]).unwrap();
            world.truncate("t").unwrap();
            world.truncate("u").unwrap();
            world.machine.fail(Fault::new(call, nth, ErrorKind::Other));
            let failed = world.import("saved", &["t", "u"]).is_err();
            let struck = world.machine.faults_struck() > 0;
            world.machine.clear_faults();
            if !struck {
                world.end();
                continue;
            }
            let what = format!("{call:?} {nth} of an import fails, it failed: {failed}");
            if world.truncate("t").is_err() {
                // The log itself has failed: nothing is changed any more.
                world.end();
                continue;
            }
            if world.import("saved", &["u"]).is_ok() {
                let place = world.known.tables["u"].keys().next().unwrap().clone();
                world.delete("u", &place);
                world.database.flush_all().unwrap();
                let u = table_of(&world.database, "u");
                world.database.compact(vec![u.id]).wait().unwrap();
            }
            world.check(&what);
            let next = world.restart(&what);
            next.machine.advance(LONG_NS);
            next.check(&format!("{what}, after a start long after"));
            next.check_progress(&what);
            next.end();
        }
    }
}

#[test]
fn a_full_disk_is_got_out_of_by_drop_truncate_and_the_removal_of_a_snapshot() {
    for is_drop in [true, false] {
        for rest in [0, 1, 4096] {
            let mut world = World::new(form(5));
            world.load("t", 20, "much");
            world.database.flush_all().unwrap();
            fill(&mut world, &["t"], 1);
            world.machine.set_capacity(world.machine.used_bytes() + rest);
            let what = format!("drop: {is_drop}, {rest} bytes free");
            let (before, used) = (world.bytes_below("data"), world.machine.used_bytes());
            let done = if is_drop { world.drop_table("t") } else { world.truncate("t") };
            assert!(done.is_ok(), "{what}: {done:?}");
            world.idle();
            let freed = used - world.machine.used_bytes();
            assert!(freed > before / 4, "{what}: {freed} bytes of {before} are free again");
            world.check(&what);
            world.load("u", 3, &what);
            world.machine.set_capacity(u64::MAX);
            world.check_progress(&what);
            let next = world.kill(&what);
            next.check(&what);
            next.check_progress(&what);
            next.end();
        }
    }
}

#[test]
fn a_full_disk_is_got_out_of_though_it_lets_not_all_files_of_the_log_go() {
    for stuck in ["/used-", "reserve.log"] {
        for seed in 1..4 {
            let mut world = World::new(form(seed));
            world.load("t", 20, "much");
            world.database.flush_all().unwrap();
            world.load("t", 3, "much");
            let what = format!("{stuck} stays, seed {seed}");
            world.machine.set_capacity(world.machine.used_bytes());
            world.machine.fail(Fault::new(Call::Remove, 1, ErrorKind::Other).lasting().on(stuck));
            world.leave("c2").unwrap_or_else(|error| panic!("{what}: {error}"));
            world.machine.clear_faults();
            world.machine.set_capacity(u64::MAX);
            world.check(&what);
            world.check_progress(&what);
            world.end();
        }
    }
}

#[test]
fn a_drop_leaves_no_file_behind_wherever_it_is_cut() {
    for (seed, full) in [(1, None), (2, None), (3, Some(Call::Create)), (4, Some(Call::SyncDir))] {
        let mut world = World::new(form(seed));
        fill(&mut world, &TABLES, 5);
        world.database.flush_all().unwrap();
        fill(&mut world, &["t"], 3);
        world.rest();
        let before = world.known.clone();
        if let Some(call) = full {
            // The disk has no room for the mark of the DROP, until the log gives up its reserve.
            world.machine.fail(Fault::new(call, 1, ErrorKind::StorageFull).on("/t-"));
        }
        let cuts = std::sync::Arc::new(parking_lot::Mutex::new(Vec::new()));
        let kept = cuts.clone();
        world.machine.on_every_change(move |cut| kept.lock().push(cut.clone()));
        world.drop_table("t").unwrap();
        world.machine.stop_watching();
        assert_eq!(world.machine.faults_struck() > 0, full.is_some());
        let mut random = Random::new(seed);
        for (index, cut) in std::mem::take(&mut *cuts.lock()).into_iter().enumerate() {
            let torn = Survives::Torn { seed: random.next() };
            for survives in [Survives::EverythingWritten, torn] {
                let what = format!(
                    "seed {seed}, full: {full:?}, cut {index} of DROP ({:?}), {survives:?}",
                    cut.when
                );
                let mut next = World::open(&world, cut.machine.crash_image(survives), &what);
                next.settle(&[before.clone(), world.known.clone()], &what);
                let next = next.restart(&what);
                next.check(&what);
                next.check_progress(&what);
                next.end();
            }
            cut.machine.end_tasks();
        }
        world.end();
    }
}

#[test]
fn segments_that_could_not_be_removed_are_removed_later_and_counted_until_then() {
    for call in [Call::Rename, Call::Create, Call::Remove, Call::SyncDir, Call::Write, Call::Sync] {
        for place in ["/commitlog", "/changes"] {
            for nth in 1..6 {
                let mut world = World::new(Form { kept_bytes: 128 << 10, ..form(nth) });
                world.load(WATCHED, 12, "changes");
                world.load("t", 6, "changes");
                // Set before the flush, and met by the removal within it or by the log's own work.
                world.machine.fail(Fault::new(call, nth, ErrorKind::StorageFull).on(place));
                let flushed = world.database.flush_all().is_ok();
                let struck = world.machine.faults_struck() > 0;
                world.machine.clear_faults();
                let what = format!("{call:?} {nth} in {place} fails, flushed: {flushed}");
                if struck && world.try_put("x", 10).is_ok() {
                    world.database.flush_all().unwrap_or_else(|error| panic!("{what}: {error}"));
                    world.load("t", 4, &what);
                    world.database.flush_all().unwrap_or_else(|error| panic!("{what}: {error}"));
                    world.idle();
                    let judged = Judged::of(&world.database);
                    let (files, counted) = (judged.segments().len(), world.database.status().log_segments);
                    let ahead = files as u64 - counted.min(files as u64);
                    assert!(ahead <= 2, "{what}: {files} segments on the disk, {counted} are counted");
                    world.check(&what);
                    world.check_progress(&what);
                    let next = world.kill(&what);
                    next.check(&what);
                    next.end();
                }
            }
        }
    }
}

#[test]
fn a_table_without_rows_in_a_segment_keeps_no_log() {
    // A table is made, and nothing is ever written to it.
    let mut world = World::new(form(7));
    support::create(&world.database, vec![table("empty", 0x99, false)]);
    world.known.tables.insert("empty", Default::default());
    world.load("t", MANY, "beside an empty table");
    let mut world = world.restart("beside an empty table");
    world.load("u", MANY, "beside an empty table, after a start");
    world.check("beside an empty table");
    world.check_progress("beside an empty table");
    world.end();
}

#[test]
fn a_consumer_that_has_everything_when_its_segment_ends_is_told_of_no_gap() {
    for seed in 1..4 {
        let mut world = World::new(Form { kept_bytes: 1 << 30, ..form(seed) });
        world.leave("c2").unwrap();
        fill(&mut world, &[WATCHED], 5);
        if seed != 2 {
            // Then a stop writes no record behind the consumer's position.
            world.database.flush_all().unwrap();
        }
        // To the end of the log: behind the last change.
        world.acknowledge("c1", usize::MAX).unwrap();
        let mut world = match seed {
            1 => world.restart("a consumer is up to date"),
            _ => world.kill("a consumer is up to date"),
        };
        fill(&mut world, &[WATCHED, "t"], 5);
        world.load("t", 3, "a consumer is up to date");
        world.database.flush_all().unwrap();
        world.check("a consumer was up to date at a stop, then segments went");
        let behind = world.known.fed.len() - world.known.consumers["c1"];
        world.acknowledge("c1", behind).unwrap();
        world.check("and it reads on");
        world.end();
    }
}

#[test]
fn what_a_killed_truncate_has_removed_does_not_come_back_after_a_power_cut() {
    let mut world = World::new(form(8));
    fill(&mut world, &["t"], 10);
    world.database.flush_all().unwrap();
    let before = world.known.clone();
    let cuts = std::sync::Arc::new(parking_lot::Mutex::new(Vec::new()));
    let kept = cuts.clone();
    world.machine.on_every_change(move |cut| kept.lock().push(cut.clone()));
    world.truncate("t").unwrap();
    world.machine.stop_watching();
    for (index, cut) in std::mem::take(&mut *cuts.lock()).into_iter().enumerate() {
        // The process dies with names that it has not synced, and the next one sees them as they are.
        let what = format!("cut {index} of TRUNCATE ({:?} of {})", cut.when, cut.path.display());
        let mut next = World::open(&world, cut.machine.crash_image(Survives::EverythingWritten), &what);
        next.settle(&[before.clone(), world.known.clone()], &what);
        // The log forgets the TRUNCATE.
        next.load("u", 3, &what);
        next.database.flush_all().unwrap();
        next.load("u", 2, &what);
        let last = next.start(Survives::OnlySynced, &what);
        last.check(&what);
        last.end();
        next.end();
        cut.machine.end_tasks();
    }
    world.end();
}
