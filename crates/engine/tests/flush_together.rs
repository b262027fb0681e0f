//! Many tables are flushed together: they share syncs, a crash between any two of these loses nothing, and a failing
//! call costs at most the flush of its table.
//!
//! Longer, or with another seed: `FLUSH_RUNS=300 FLUSH_SEED=9 cargo test -p helenus-engine --test flush_together`.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod support;

use helenus_engine::{Database, DatabaseOptions};
use helenus_host::sim::{Call, Fault, Machine, Survives, When};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use support::random::{Random, from_environment};
use support::*;

/// Calls that change names or bytes, so that the next sync has something to do.
const CHANGES: [Call; 7] =
    [Call::Create, Call::Write, Call::SetSize, Call::Rename, Call::Remove, Call::CreateDir, Call::Link];
/// Steps with syncs in the flush of one group of tables: folders, the log, ADD, files, COMMIT, removal of transaction
/// logs, the log's record, segments.
const STEPS: u64 = 8;
const GROUP: u64 = 32;
/// Further syncs: of closing the log, of a new segment, and of a flush of what the first one left.
const BESIDES: u64 = 12;

type Rows = BTreeMap<String, Vec<(i32, String)>>;

/// A database of some tables with some rows each, some of which are on the disk already.
fn filled(random: &mut Random, tables: usize) -> (Machine, Arc<Database>, Rows) {
    let machine = Machine::new(random.next());
    let database = open(&machine.host());
    let name = |number: usize| format!("t{number}");
    create(&database, (0..tables).map(|number| table(&name(number), 100 + number as u128, false)).collect());
    let mut rows = Rows::new();
    for number in 0..tables {
        let t = table_of(&database, &name(number));
        let of_table = rows.entry(name(number)).or_default();
        for c in 0..1 + random.below(3) as i32 {
            let value = format!("v{}", random.below(1000));
            let ticket = Write::default().insert(&t, c, &value, 10).to(&database, &t.name, "a");
            ticket.wait().unwrap();
            of_table.push((c, value));
        }
        if random.chance(20) {
            database.flush(t.id).unwrap();
        }
    }
    (machine, database, rows)
}

fn assert_rows(database: &Database, rows: &Rows, what: &str) {
    for (table, expected) in rows {
        assert_eq!(&rows_of(database, table, "a"), expected, "{table}, {what}");
    }
}

/// Counts the syncs that have something to do: each is a commit of the file system's journal.
fn count_commits(machine: &Machine) -> Arc<AtomicU64> {
    let commits = Arc::new(AtomicU64::new(0));
    let (counted, seen, watched) = (commits.clone(), AtomicU64::new(0), machine.clone());
    machine.on_every_sync(move |cut| {
        let changes = CHANGES.iter().map(|call| watched.calls(*call)).sum::<u64>();
        if cut.when == When::Before && seen.swap(changes, Ordering::Relaxed) != changes {
            counted.fetch_add(1, Ordering::Relaxed);
        }
    });
    commits
}

#[test]
fn the_syncs_of_many_tables_meet_and_the_next_start_replays_nothing() {
    let seed = from_environment("FLUSH_SEED", 1);
    for run in 0..from_environment("FLUSH_RUNS", 6) {
        let mut random = Random::new(seed + run);
        let tables = 1 + random.below(if run % 2 == 0 { 20 } else { 80 });
        let (machine, database, rows) = filled(&mut random, tables);
        let what = format!("FLUSH_SEED={} {tables} tables", seed + run);
        let commits = count_commits(&machine);
        database.close().unwrap();
        machine.stop_watching();
        // The system's own tables are flushed with them.
        let groups = (tables as u64 + 12).div_ceil(GROUP);
        let (commits, most) = (commits.load(Ordering::Relaxed), STEPS * groups + BESIDES);
        assert!(commits <= most, "{what}: {commits} commits, {most} at most");
        for survives in [Survives::EverythingWritten, Survives::OnlySynced] {
            let after = machine.crash_image(survives);
            let (again, report) = Database::open(after.host(), DatabaseOptions::new("/db")).unwrap();
            assert_eq!(report.replayed, 0, "{what}, {survives:?}");
            assert_rows(&again, &rows, &what);
            after.end_tasks();
        }
        machine.end_tasks();
    }
}

#[test]
fn a_cut_at_any_sync_of_a_flush_of_many_tables_loses_nothing() {
    let seed = from_environment("FLUSH_SEED", 1);
    for run in 0..from_environment("FLUSH_RUNS", 3) {
        let mut random = Random::new(1000 + seed + run);
        let tables = 2 + random.below(6);
        let (machine, database, rows) = filled(&mut random, tables);
        let images = Arc::new(Mutex::new(Vec::new()));
        let kept = images.clone();
        machine.on_every_sync(move |cut| {
            let survives = [Survives::OnlySynced, Survives::Torn { seed: cut.number }];
            let images = survives.map(|survives| cut.machine.crash_image(survives));
            kept.lock()
                .unwrap()
                .extend(images.map(|image| (format!("{:?} {}", cut.when, cut.path.display()), image)));
        });
        database.flush_all().unwrap();
        machine.stop_watching();
        for (at, image) in images.lock().unwrap().drain(..) {
            let again = open(&image.host());
            assert_rows(&again, &rows, &format!("FLUSH_SEED={} cut {at}", seed + run));
            image.end_tasks();
        }
        machine.end_tasks();
    }
}

#[test]
fn a_call_that_fails_costs_no_row_and_the_next_flush_does_the_rest() {
    let seed = from_environment("FLUSH_SEED", 1);
    let calls =
        [Call::Create, Call::Write, Call::Sync, Call::SyncDir, Call::Remove, Call::List, Call::CreateDir];
    for run in 0..from_environment("FLUSH_RUNS", 25) {
        let mut random = Random::new(2000 + seed + run);
        let tables = 2 + random.below(8);
        let (machine, database, rows) = filled(&mut random, tables);
        let (call, nth) = (*random.pick(&calls), 1 + random.below(60) as u64);
        let what = format!("FLUSH_SEED={} {call:?} {nth} fails", seed + run);
        let kind = *random.pick(&[ErrorKind::Other, ErrorKind::StorageFull]);
        machine.fail(Fault::new(call, nth, kind));
        let flushed = database.flush_all();
        assert!(flushed.is_ok() || machine.faults_struck() > 0, "{what}: {flushed:?}");
        machine.clear_faults();
        assert_rows(&database, &rows, &what);
        // A failed sync of the log is final until the restart.
        let flushed = database.flush_all();
        let is_log = flushed.as_ref().is_err_and(|error| error.to_string().contains("until a restart"));
        assert!(flushed.is_ok() || is_log, "{what}: {flushed:?}");
        assert_rows(&database, &rows, &what);
        let after = machine.crash_image(Survives::EverythingWritten);
        machine.end_tasks();
        let again = open(&after.host());
        assert_rows(&again, &rows, &format!("{what}, after a restart"));
        again.close().unwrap();
        after.end_tasks();
    }
}
