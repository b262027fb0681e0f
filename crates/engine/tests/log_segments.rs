//! Reused segments of the commit log: their old content is not part of the log.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod support;

use helenus_engine::{Database, DatabaseOptions, SyncMode};
use helenus_host::sim::{Call, Fault, Machine, Survives};
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use support::random::Random;
use support::*;

const SEGMENT_BYTES: u32 = 16 << 10;

fn open_small(machine: &Machine) -> Arc<Database> {
    open_with(&machine.host(), |options| options.segment_bytes = SEGMENT_BYTES)
}

/// Writes rows `from..to` of key `a`, each of about a hundred bytes of log.
fn write(database: &Database, (from, to): (i32, i32)) {
    let t = table_of(database, "t");
    for c in from..to {
        let ticket = Write::default().insert(&t, c, &format!("v{c}"), 10).to(database, "t", "a");
        ticket.wait().unwrap();
    }
}

fn set_aside(machine: &Machine) -> usize {
    let files = machine.host().disk.list(Path::new("/db/commitlog")).unwrap();
    files.iter().filter(|path| path.to_string_lossy().contains("/used-")).count()
}

#[test]
fn segments_used_again_replay_what_they_hold_now_and_nothing_else() {
    let machine = Machine::new(11);
    let database = open_small(&machine);
    create(&database, vec![table("t", 7, false)]);
    let mut expected = Vec::new();
    let (mut kept, mut reused) = (0usize, 0);
    for round in 0..6 {
        let rows = (round * 1000, round * 1000 + 700);
        write(&database, rows);
        expected.extend((rows.0..rows.1).map(|c| (c, format!("v{c}"))));
        // The process dies, or the machine loses power, in the middle of segments that contained other rows before.
        for survives in [Survives::EverythingWritten, Survives::OnlySynced, Survives::Torn { seed: 5 }] {
            let after = machine.crash_image(survives);
            let again = open_small(&after);
            assert_eq!(rows_of(&again, "t", "a"), expected, "round {round}, {survives:?}");
            again.close().unwrap();
            assert_eq!(set_aside(&after), 0, "a clean stop leaves no spare files");
            after.end_tasks();
        }
        reused += kept.saturating_sub(set_aside(&machine));
        database.flush_all().unwrap();
        kept = set_aside(&machine);
    }
    assert!(reused >= 10, "{reused} segments were used again");
    database.close().unwrap();
    machine.end_tasks();
}

#[test]
fn a_flipped_byte_in_a_segment_used_again_is_still_refused() {
    let machine = Machine::new(12);
    let database = open_small(&machine);
    create(&database, vec![table("t", 7, false)]);
    write(&database, (0, 1500));
    database.flush_all().unwrap();
    assert!(set_aside(&machine) > 0);
    write(&database, (2000, 3500));
    let after = machine.crash_image(Survives::EverythingWritten);
    machine.end_tasks();
    drop(database);
    let host = after.host();
    let mut segments: Vec<_> = host.disk.list(Path::new("/db/commitlog")).unwrap();
    segments.retain(|path| path.to_string_lossy().contains("/helenus-"));
    segments.sort();
    let file = host.disk.open_write(&segments[segments.len() / 2]).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, 3000).unwrap();
    file.write_all_at(&[byte[0] ^ 4], 3000).unwrap();
    let mut options = helenus_engine::DatabaseOptions::new("/db");
    options.segment_bytes = SEGMENT_BYTES;
    let refused = Database::open(host, options).err().unwrap().to_string();
    assert!(refused.contains(".log") && refused.contains("at byte"), "{refused}");
    after.end_tasks();
}

#[test]
fn records_of_all_sizes_come_back_in_order_and_those_waited_for_always() {
    for mode in [SyncMode::Group, SyncMode::Periodic { period_ms: 1000 }] {
        let machine = Machine::new(13);
        let database = open_with(&machine.host(), |options| {
            options.segment_bytes = 1 << 20;
            options.sync = Some(mode);
        });
        create(&database, vec![table("t", 7, false)]);
        database.flush_all().unwrap();
        let t = table_of(&database, "t");
        let mut random = Random::new(13);
        let (mut written, mut waited) = (Vec::new(), 0);
        for c in 0..200 {
            // From about sixty-four kilobytes on, a record is not copied into the buffer.
            let bytes = match random.below(4) {
                0 => 65_000 + random.below(1000),
                1 => 100_000 + random.below(200_000),
                _ => random.below(300),
            };
            let value = format!("{c}:{}", "v".repeat(bytes));
            let ticket = Write::default().insert(&t, c, &value, 10).to(&database, "t", "a");
            written.push((c, value));
            if random.chance(30) {
                ticket.wait().unwrap();
                waited = written.len();
            }
            if c % 20 != 19 {
                continue;
            }
            let seed = c as u64;
            for survives in [Survives::EverythingWritten, Survives::OnlySynced, Survives::Torn { seed }] {
                let after = machine.crash_image(survives);
                let again = open(&after.host());
                let found = rows_of(&again, "t", "a");
                assert!(written.starts_with(&found), "row {c}, {survives:?}: not the first ones, in order");
                if mode == SyncMode::Group || matches!(survives, Survives::EverythingWritten) {
                    assert!(found.len() >= waited, "row {c}, {survives:?}: {} of {waited}", found.len());
                }
                again.close().unwrap();
                after.end_tasks();
            }
        }
        database.close().unwrap();
        machine.end_tasks();
    }
}

#[test]
fn a_few_rows_do_not_keep_the_log_once_the_table_that_fills_it_is_flushed() {
    const LARGER_BYTES: u32 = 64 << 10;
    let machine = Machine::new(14);
    let database = open_with(&machine.host(), |options| options.segment_bytes = LARGER_BYTES);
    create(&database, vec![table("t", 7, false), table("u", 8, false)]);
    let look = || {
        machine.advance(200_000_000);
        machine.run_until_idle();
    };
    let segments = || {
        let files = machine.host().disk.list(Path::new("/db/commitlog")).unwrap();
        files.iter().filter(|path| path.to_string_lossy().contains("/helenus-")).count()
    };
    let (t, u) = (table_of(&database, "t"), table_of(&database, "u"));
    Write::default().insert(&u, 1, "few", 10).to(&database, "u", "a").wait().unwrap();
    for c in 0..12_000 {
        let ticket = Write::default().insert(&t, c, "many", 10).to(&database, "t", "a");
        ticket.wait().unwrap();
    }
    look();
    let before = segments();
    assert!(before > 9, "{before} segments: a table with much in memory waits until it is due");
    database.flush(t.id).unwrap();
    let kept = segments();
    assert!(kept > 9, "{kept} segments are kept by the definitions and the row of u");
    look();
    let after = segments();
    assert!(after < 5, "{after} segments are left");
    let crashed = machine.crash_image(Survives::OnlySynced);
    let again = open_small(&crashed);
    assert_eq!(rows_of(&again, "u", "a"), [(1, "few".to_owned())]);
    assert_eq!(rows_of(&again, "t", "a").len(), 12_000);
    drop(again);
    crashed.end_tasks();
    database.close().unwrap();
    machine.end_tasks();
}

/// What became of the table whose writes are in a log that lost a segment in its middle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Kept,
    Flushed,
    Dropped,
}

#[test]
fn a_log_without_a_segment_in_its_middle_is_refused_by_its_name_if_the_older_ones_are_needed() {
    for fate in [Fate::Kept, Fate::Flushed, Fate::Dropped] {
        let machine = Machine::new(13);
        let database = open_small(&machine);
        create(&database, vec![table("t", 7, false), table("u", 8, false)]);
        // Nothing but the rows of `t` keeps segments.
        database.flush_all().unwrap();
        write(&database, (0, 800));
        // The segments stay, although they are not needed any more.
        for call in [Call::Remove, Call::Rename] {
            machine.fail(Fault::new(call, 1, ErrorKind::Other).on("/commitlog/helenus-").lasting());
        }
        let t = table_of(&database, "t");
        match fate {
            Fate::Kept => {}
            Fate::Flushed => drop(database.flush(t.id).unwrap()),
            Fate::Dropped => {
                let dropped = database.change_schema::<()>(|schema, _| {
                    let mut next = schema.clone();
                    let mut keyspace = (*next.keyspaces["ks"]).clone();
                    keyspace.tables.remove("t");
                    next.keyspaces.insert("ks".into(), Arc::new(keyspace));
                    Ok(next)
                });
                dropped.map_err(|_| "the table is dropped").unwrap().1.wait().unwrap();
            }
        }
        let after = machine.crash_image(Survives::EverythingWritten);
        machine.end_tasks();
        drop(database);
        let host = after.host();
        let mut segments: Vec<_> = host.disk.list(Path::new("/db/commitlog")).unwrap();
        segments.retain(|path| path.to_string_lossy().contains("/helenus-"));
        segments.sort();
        assert!(segments.len() >= 5, "{fate:?}: {segments:?}");
        let middle = &segments[segments.len() / 2 - 1];
        host.disk.remove(middle).unwrap();
        host.disk.sync_dir(Path::new("/db/commitlog")).unwrap();
        let open = |skips| {
            let mut options = DatabaseOptions::new("/db");
            (options.segment_bytes, options.skip_damaged_log) = (SEGMENT_BYTES, skips);
            Database::open(after.host(), options)
        };
        let (database, report) = match open(false) {
            Ok(opened) => {
                assert_ne!(fate, Fate::Kept, "the start goes on without a segment that it needs");
                opened
            }
            Err(error) => {
                let told = error.to_string();
                assert_eq!(fate, Fate::Kept, "{told}");
                assert!(told.contains(&*middle.to_string_lossy()) && told.contains("missing"), "{told}");
                let opened = open(true).unwrap();
                assert_eq!(opened.1.skipped, [(middle.clone(), 0)]);
                opened
            }
        };
        assert_eq!(report.skipped.is_empty(), fate != Fate::Kept, "{fate:?}");
        match fate {
            Fate::Kept => {
                let rows = rows_of(&database, "t", "a").len();
                assert!((100..800).contains(&rows), "{rows} rows: all but those of one segment");
            }
            Fate::Flushed => assert_eq!(rows_of(&database, "t", "a").len(), 800),
            Fate::Dropped => assert!(database.schema().table("ks", "t").is_none()),
        }
        after.end_tasks();
    }
}
