//! Cuts and failures at every call of the disk in every upkeep (flush, removal of segments, compaction, import, truncate,
//! drop, snapshot, export, ALTER, the build of an index, acknowledgement, a reader of changes that comes and goes, start,
//! stop), each followed by more changes, by load, and by a start long after.
//!
//! Judged are answers (what was deleted stays deleted; what failed did not half happen; consumers miss nothing and get
//! nothing twice) and progress (`support::progress`). A database that does not start by itself fails at once.
//!
//! `UPKEEP_RUNS` sets the number of drawn worlds for each upkeep, `UPKEEP_SEED` their first seed, `UPKEEP_SHARE` how many
//! in a hundred of all calls are tried (all of them take minutes), `UPKEEP_ONLY` a part of one upkeep's name.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod support;

use helenus_host::sim::{Cut, Fault, Machine, Survives, When};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use support::random::{Random, from_environment};
use support::world::{Form, Known, LONG_NS, TABLES, WATCHED, World};

/// Tables whose content is in the snapshot that imports take.
const IMPORTED: [&str; 2] = ["t", "u"];
const SNAPSHOT: &str = "saved";

/// An upkeep of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Upkeep {
    FlushAll,
    Flush,
    Roll,
    Compact,
    Import,
    Truncate,
    TruncateWatched,
    Drop,
    Snapshot,
    Acknowledge,
    Leave,
    /// A reader of changes comes, as that of a move, and goes.
    Feed,
    Export,
    Alter,
    /// A CREATE INDEX on a table with rows.
    IndexBuild,
    Create,
    Stop,
    Start,
}

use Upkeep::*;
const ALL: [Upkeep; 18] = [
    FlushAll,
    Flush,
    Roll,
    Compact,
    Import,
    Truncate,
    TruncateWatched,
    Drop,
    Snapshot,
    Acknowledge,
    Leave,
    Feed,
    Export,
    Alter,
    IndexBuild,
    Create,
    Stop,
    Start,
];

impl Upkeep {
    /// A world in which this upkeep has something to do: several starts, load, flushes, a snapshot whose rows are gone.
    fn world(self, seed: u64) -> World {
        let mut world = World::new(Form::drawn(seed));
        for name in TABLES {
            for _ in 0..4 {
                let size = world.size();
                world.put(name, size);
            }
        }
        if self == Import {
            world.snapshot(SNAPSHOT, &IMPORTED).unwrap();
            for name in IMPORTED {
                world.truncate(name).unwrap();
            }
        }
        if self == Create {
            world.drop_table("x").unwrap();
        }
        let rounds = 1 + world.random.below(3);
        for _ in 0..rounds {
            world = disturb(world);
        }
        // At least two memtables are filled, one of them with the only rows of a segment.
        for name in ["t", WATCHED] {
            for _ in 0..3 {
                let size = world.size();
                world.put(name, size);
            }
        }
        if self == Compact {
            world.database.flush_all().unwrap();
            let gone: Vec<_> = world.known.tables["t"].keys().take(2).cloned().collect();
            for place in gone {
                world.delete("t", &place);
            }
            world.put("t", 10);
            world.database.flush_all().unwrap();
        }
        world
    }

    /// Does it. What is known after an error is what was known before.
    fn perform(self, world: &mut World) -> Result<(), String> {
        let text = |error: helenus_engine::Error| error.to_string();
        match self {
            FlushAll => world.database.flush_all().map(drop).map_err(text),
            Flush => {
                let table = support::table_of(&world.database, WATCHED);
                world.database.flush(table.id).map(drop).map_err(text)
            }
            Roll => {
                let size = world.form.segment_bytes as usize;
                let mut written = 0;
                while written < 2 * size {
                    let bytes = world.size();
                    world.try_put("x", bytes).map_err(text)?;
                    written += bytes + 100;
                }
                world.machine.run_until_idle();
                Ok(())
            }
            Compact => {
                let table = support::table_of(&world.database, "t");
                world.database.compact(vec![table.id]).wait().map(drop)
            }
            Import => world.import(SNAPSHOT, &IMPORTED),
            Truncate => world.truncate("t").map_err(text),
            TruncateWatched => world.truncate(WATCHED).map_err(text),
            Drop => world.drop_table("t").map_err(text),
            Snapshot => world.snapshot("taken", &["t", WATCHED]).map_err(text),
            Acknowledge => {
                let behind = world.known.fed.len() - world.known.consumers["c1"];
                world.acknowledge("c1", behind / 2).map_err(text)?;
                let behind = world.known.fed.len() - world.known.consumers["c2"];
                world.acknowledge("c2", behind).map_err(text)
            }
            Leave => world.leave("c1").map_err(text),
            Feed => {
                world.follow_changes("m").map_err(text)?;
                world.leave("m").map_err(text)
            }
            Export => world.export(&["t", WATCHED]).map_err(text),
            Alter => world.alter("t").map_err(text),
            IndexBuild => {
                world.index("t").map_err(text)?;
                world.idle();
                Ok(())
            }
            Create => {
                world.create("x");
                Ok(())
            }
            Stop => world.database.close().map_err(text),
            Start => Ok(()),
        }
    }

    /// What the upkeep makes of the content.
    fn after(self, before: &World) -> Known {
        let mut known = before.known.clone();
        match self {
            Import => known.take_in(SNAPSHOT, &IMPORTED),
            Truncate => drop(known.tables.insert("t", Default::default())),
            TruncateWatched => drop(known.tables.insert(WATCHED, Default::default())),
            Drop => drop(known.tables.remove("t")),
            Create => drop(known.tables.insert("x", Default::default())),
            Leave => drop(known.consumers.remove("c1")),
            Feed => drop(known.consumers.remove("m")),
            _ => {}
        }
        known
    }
}

/// A round of life: writes, flushes, a start by any of the ways in which a process ends.
fn disturb(mut world: World) -> World {
    let names: Vec<&'static str> = world.known.tables.keys().copied().collect();
    let name = *world.random.pick(&names);
    let segments = 1 + world.random.below(4);
    world.load(name, segments, "in the preparation");
    match world.random.below(4) {
        0 => drop(world.database.flush_all().unwrap()),
        1 => {
            let table = support::table_of(&world.database, name);
            world.database.flush(table.id).unwrap();
        }
        _ => {}
    }
    if world.random.chance(30) {
        let behind = world.known.fed.len() - world.known.consumers["c2"];
        // What is gone cannot be acknowledged one by one.
        if world.acknowledge("c2", behind).is_err() {
            world.register("c2");
        }
    }
    match world.random.below(4) {
        0 => world.restart("in the preparation"),
        1 => world.kill("in the preparation"),
        2 => {
            let next = world.start(Survives::OnlySynced, "in the preparation");
            world.end();
            next
        }
        _ => world,
    }
}

/// The attempts that ended in a panic. All are tried, because different ones show different faults.
#[derive(Default)]
struct Failures {
    count: usize,
    /// One of each kind.
    told: BTreeMap<String, String>,
}

/// Failures that are shown.
const SHOWN_MAX: usize = 12;

impl Failures {
    fn attempt<T>(&mut self, work: impl FnOnce() -> T) -> Option<T> {
        match catch_unwind(AssertUnwindSafe(work)) {
            Ok(done) => Some(done),
            Err(panic) => {
                let text = panic.downcast_ref::<String>().cloned().unwrap_or_default();
                let last = text.lines().last().unwrap_or_default().trim();
                let words = last.split(' ').filter(|word| word.chars().all(char::is_alphabetic));
                let upkeep = text.split(' ').next().unwrap_or_default();
                let kind = [upkeep].into_iter().chain(words.take(8)).collect::<Vec<_>>().join(" ");
                self.count += 1;
                self.told.insert(kind, text);
                None
            }
        }
    }

    fn assert_none(&self) {
        // The beginning says what was done, the end what came of it.
        let short = |text: &String| match text.char_indices().nth_back(300) {
            Some((at, _)) if at > 300 => {
                let begin: String = text.chars().take(300).collect();
                format!("{begin} ... {}", &text[at..])
            }
            _ => text.clone(),
        };
        let shown: Vec<String> = self.told.values().take(SHOWN_MAX).map(short).collect();
        let (count, shown) = (self.count, shown.join("\n\n"));
        assert!(count == 0, "{count} attempts failed, for example\n\n{shown}\n");
    }
}

/// What is done after a cut or a failure.
#[derive(Clone, Copy, Debug)]
enum Then {
    Nothing,
    Retry,
    Truncate,
    Drop,
    /// Deletes a row, and compacts so that its tombstone is purged.
    Delete,
}

const THENS: [Then; 5] = [Then::Nothing, Then::Retry, Then::Truncate, Then::Drop, Then::Delete];

/// Applies the same change to the database and to all that it may be.
fn follow(world: &mut World, upkeep: Upkeep, then: Then, candidates: &mut Vec<Known>, what: &str) {
    let has = |known: &Known, name: &str| known.tables.contains_key(name);
    let everywhere = candidates.iter().all(|known| has(known, "t"));
    match then {
        Then::Nothing => {}
        Then::Retry => {
            let is_useless = match upkeep {
                Stop | Start | Snapshot | Roll | Acknowledge | Feed => true,
                Drop => !everywhere,
                Create => candidates.iter().any(|known| has(known, "x")),
                Leave => !candidates.iter().all(|known| known.consumers.contains_key("c1")),
                _ => false,
            };
            if !is_useless {
                let mut after: Vec<Known> = Vec::new();
                for known in &*candidates {
                    world.known = known.clone();
                    after.push(upkeep.after(world));
                }
                upkeep.perform(world).unwrap_or_else(|error| panic!("{what}: again: {error}"));
                *candidates = after;
                candidates.dedup();
            }
        }
        Then::Truncate if everywhere => {
            world.truncate("t").unwrap_or_else(|error| panic!("{what}: {error}"));
            for known in &mut *candidates {
                known.tables.insert("t", Default::default());
            }
        }
        Then::Drop if everywhere => {
            world.drop_table("t").unwrap_or_else(|error| panic!("{what}: {error}"));
            candidates.iter_mut().for_each(|known| drop(known.tables.remove("t")));
        }
        Then::Delete if everywhere => {
            let mut places = candidates.iter().flat_map(|known| known.tables["t"].keys());
            if let Some(place) = places.next().cloned() {
                world.delete("t", &place);
                world.database.flush_all().unwrap_or_else(|error| panic!("{what}: {error}"));
                let table = support::table_of(&world.database, "t");
                world.database.compact(vec![table.id]).wait().unwrap();
                candidates
                    .iter_mut()
                    .for_each(|known| drop(known.tables.get_mut("t").unwrap().remove(&place)));
            }
        }
        Then::Truncate | Then::Drop | Then::Delete => {}
    }
}

/// Lives on with a database that may be in one of several states: a change, load, and a start long after.
fn live_on(mut world: World, upkeep: Upkeep, mut candidates: Vec<Known>, random: &mut Random, what: &str) {
    let then = *random.pick(&THENS);
    let what = format!("{what}, then {then:?}");
    follow(&mut world, upkeep, then, &mut candidates, &what);
    if candidates.len() > 1 {
        // What failed half-way is finished or undone before the next change of its tables, or after a while.
        world.database.flush_all().unwrap_or_else(|error| panic!("{what}: {error}"));
        world.rest();
    }
    world.settle(&candidates, &what);
    let names: Vec<&'static str> = world.known.tables.keys().copied().collect();
    let name = *random.pick(&names);
    let what = format!("{what}, then load on {name}");
    // Most load ends before the log is at its bound: the bound has tests of its own.
    let segments = if random.chance(15) { 45 } else { 3 };
    world.load(name, segments, &what);
    world.check(&what);
    // What a failed change has left goes before the next change of its table.
    world.database.flush_all().unwrap_or_else(|error| panic!("{what}: {error}"));
    world.check_progress(&what);
    let what = format!("{what}, then a start long after");
    // After a failed sync that could not be cut off, a start takes for durable what is in the page cache alone: a power
    // cut may take it back (docs/reliability.md).
    world = match random.below(if world.had_failed_log { 2 } else { 3 }) {
        0 => world.restart(&what),
        1 => world.kill(&what),
        _ => {
            let next = world.start(Survives::OnlySynced, &what);
            world.end();
            next
        }
    };
    world.machine.advance(LONG_NS);
    world.check(&what);
    world.database.flush_all().unwrap_or_else(|error| panic!("{what}: {error}"));
    world.check(&what);
    world.check_progress_after_start(&what);
    world.end();
}

/// What a crash leaves.
fn survives(random: &mut Random) -> Survives {
    match random.below(4) {
        0 => Survives::OnlySynced,
        1 => Survives::Torn { seed: random.next() },
        _ => Survives::EverythingWritten,
    }
}

/// Runs an upkeep once, keeps the machine at each of its calls, and lives on with what a crash leaves there.
fn cut_everywhere(upkeep: Upkeep, seed: u64, share: usize, failures: &mut Failures) -> usize {
    let mut world = upkeep.world(seed);
    let before = world.known.clone();
    let cuts: Arc<Mutex<Vec<Cut>>> = Arc::default();
    let kept = cuts.clone();
    let keep = move |cut: &Cut| kept.lock().push(cut.clone());
    let mut after = Vec::new();
    if upkeep == Start {
        let machine = world.machine.crash_image(survives(&mut Random::new(seed)));
        machine.on_every_change(keep);
        let next = World::open(&world, machine, "the start to cut");
        world.end();
        world = next;
    } else {
        world.machine.on_every_change(keep);
        // Each step that may be seen alone.
        if matches!(upkeep, Roll | Acknowledge | Feed) {
            after = steps(upkeep, &mut world);
        } else {
            upkeep.perform(&mut world).unwrap_or_else(|error| panic!("{upkeep:?} seed {seed}: {error}"));
        }
    }
    world.machine.stop_watching();
    let mut candidates = vec![before];
    candidates.append(&mut after);
    candidates.push(world.known.clone());
    candidates.dedup();
    let mut random = Random::new(seed ^ 0xC0);
    let cuts = std::mem::take(&mut *cuts.lock());
    let mut tried = 0;
    for (index, cut) in cuts.into_iter().enumerate() {
        if random.chance(share) {
            tried += 1;
            let survives = survives(&mut random);
            let path = cut.path.display();
            let what =
                format!("{upkeep:?} seed {seed}, cut {index} ({:?} of {path}), {survives:?}", cut.when);
            let machine = cut.machine.crash_image(survives);
            let mut own = Random::new(random.next());
            failures.attempt(|| {
                let next = World::open(&world, machine, &what);
                live_on_from(next, upkeep, &candidates, &mut own, &what);
            });
        }
        cut.machine.end_tasks();
    }
    world.end();
    tried
}

fn live_on_from(mut next: World, upkeep: Upkeep, candidates: &[Known], random: &mut Random, what: &str) {
    next.settle(candidates, what);
    let known = next.known.clone();
    let left = match upkeep {
        // Whether it counts is decided by now.
        _ if candidates.len() > 1 => vec![known],
        _ => candidates.to_vec(),
    };
    live_on(next, upkeep, left, random, what);
}

/// The states between the steps of an upkeep that is many.
fn steps(upkeep: Upkeep, world: &mut World) -> Vec<Known> {
    let mut states = Vec::new();
    match upkeep {
        Roll => {
            let size = world.form.segment_bytes as usize;
            let mut written = 0;
            while written < 2 * size {
                let bytes = world.size();
                world.put("x", bytes);
                states.push(world.known.clone());
                written += bytes + 100;
            }
            world.machine.run_until_idle();
        }
        Feed => {
            world.follow_changes("m").unwrap();
            states.push(world.known.clone());
            world.leave("m").unwrap();
        }
        _ => {
            for (name, part) in [("c1", 2), ("c2", 1)] {
                let behind = world.known.fed.len() - world.known.consumers[name];
                if world.acknowledge(name, behind / part).is_err() {
                    world.register(name);
                }
                states.push(world.known.clone());
            }
        }
    }
    states
}

/// Fails the `nth` change or sync of an upkeep, and lives on, in the same process if its log works. Returns whether there was
/// such a call.
fn fail_at(upkeep: Upkeep, seed: u64, nth: u64) -> bool {
    let mut random = Random::new(seed * 1000 + nth);
    let mut world = upkeep.world(seed);
    let before = world.known.clone();
    let error = *random.pick(&[ErrorKind::StorageFull, ErrorKind::Other]);
    let is_lasting = random.chance(30);
    let fault = Fault::of_any_change(nth, error);
    let fault = if is_lasting { fault.lasting() } else { fault };
    let what = format!("{upkeep:?} seed {seed}, call {nth} fails ({error:?}, lasting: {is_lasting})");
    if upkeep == Start {
        return fail_start(world, fault, &mut random, &what);
    }
    world.machine.fail(fault);
    let done = upkeep.perform(&mut world);
    let struck = world.machine.faults_struck() > 0;
    world.machine.clear_faults();
    if !struck {
        world.end();
        return struck;
    }
    let after = {
        let known = std::mem::replace(&mut world.known, before.clone());
        let after = upkeep.after(&world);
        world.known = known;
        after
    };
    world.known.doubtful = matches!(upkeep, Acknowledge | Leave | Feed) && done.is_err();
    let mut candidates = match &done {
        // What was written before the failure is known to the world.
        Ok(()) => vec![world.known.clone()],
        Err(_) => vec![world.known.clone(), after],
    };
    candidates.dedup();
    let what = format!("{what}: {done:?}");
    let works = upkeep != Stop && world.try_put("x", 10).is_ok();
    if works {
        let known = world.known.clone();
        for candidate in &mut candidates {
            candidate.fed.clone_from(&known.fed);
            candidate.tables.insert("x", known.tables["x"].clone());
        }
    } else {
        // A log that failed refuses writes until a restart; the last write may have reached the disk.
        let next = world.start(Survives::EverythingWritten, &what);
        world.end();
        world = next;
        world.had_failed_log = true;
        return settle_anyhow(world, upkeep, candidates, &mut random, &what);
    }
    live_on(world, upkeep, candidates, &mut random, &what);
    true
}

/// After a failed log: a refused write may be there, complete.
fn settle_anyhow(
    world: World,
    upkeep: Upkeep,
    mut candidates: Vec<Known>,
    random: &mut Random,
    what: &str,
) -> bool {
    let found = world.rows("x").unwrap_or_default();
    for candidate in &mut candidates {
        if let Some(rows) = candidate.tables.get_mut("x") {
            let unknown = |value: &String| value[..6].parse::<u64>().is_ok_and(|n| n > world.written - 2);
            for (place, value) in &found {
                if unknown(value) {
                    rows.insert(place.clone(), value.clone());
                }
            }
        }
    }
    live_on_from(world, upkeep, &candidates, random, what);
    true
}

/// A start that fails leaves a database that starts.
fn fail_start(world: World, fault: Fault, random: &mut Random, what: &str) -> bool {
    let machine: Machine = world.machine.crash_image(survives(random));
    machine.fail(fault);
    let failed = helenus_engine::Database::open(machine.host(), world.form.options());
    let struck = machine.faults_struck() > 0;
    let is_open = failed.is_ok();
    drop(failed);
    machine.clear_faults();
    machine.end_tasks();
    if struck {
        let what = format!("{what}, opened: {is_open}");
        let next = World::open(&world, machine.crash_image(survives(random)), &what);
        let candidates = vec![world.known.clone()];
        live_on_from(next, Start, &candidates, random, &what);
    }
    world.end();
    struck
}

/// The upkeeps, their seeds, and the share of calls to try.
fn runs(default: usize) -> (Vec<(Upkeep, u64)>, usize) {
    let runs = from_environment("UPKEEP_RUNS", 0);
    let first = from_environment("UPKEEP_SEED", 1);
    let share = from_environment("UPKEEP_SHARE", if runs == 0 { default as u64 } else { 100 });
    let only = std::env::var("UPKEEP_ONLY").unwrap_or_default().to_lowercase();
    let wanted = |upkeep: &Upkeep| format!("{upkeep:?}").to_lowercase().contains(&only);
    let seeds = first..first + runs.max(1);
    let all = ALL.into_iter().filter(wanted).flat_map(|upkeep| seeds.clone().map(move |seed| (upkeep, seed)));
    (all.collect(), share as usize)
}

#[test]
fn a_cut_at_any_call_of_any_upkeep_leaves_a_database_that_starts_and_lives_on() {
    let (runs, share) = runs(6);
    let mut failures = Failures::default();
    for (upkeep, seed) in runs {
        let tried = cut_everywhere(upkeep, seed, share, &mut failures);
        eprintln!("{upkeep:?} seed {seed}: {tried} cuts");
    }
    failures.assert_none();
}

#[test]
fn a_failure_of_any_call_of_any_upkeep_is_not_half_done_and_leaves_nothing_behind() {
    let (runs, share) = runs(6);
    let mut failures = Failures::default();
    for (upkeep, seed) in runs {
        if upkeep == Create {
            // `World::create` expects to succeed; a CREATE is a write and nothing else.
            continue;
        }
        let mut random = Random::new(seed);
        let mut tried = 0;
        for nth in 1.. {
            let is_tried = random.chance(share);
            if !is_tried {
                continue;
            }
            tried += 1;
            if !failures.attempt(|| fail_at(upkeep, seed, nth)).unwrap_or(true) {
                break;
            }
        }
        eprintln!("{upkeep:?} seed {seed}: {tried} failures");
    }
    failures.assert_none();
}

#[test]
fn every_moment_before_a_change_is_shown() {
    let mut world = World::new(Form::drawn(1));
    let seen: Arc<Mutex<Vec<When>>> = Arc::default();
    let kept = seen.clone();
    world.machine.on_every_change(move |cut| kept.lock().push(cut.when));
    world.put("t", 10);
    world.database.flush_all().unwrap();
    world.machine.stop_watching();
    let changes = seen.lock().iter().filter(|when| matches!(when, When::Change(_))).count();
    assert!(changes > 10, "{changes} of {}", seen.lock().len());
    world.end();
}
