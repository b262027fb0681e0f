//! Compaction: what is purged and what stays, what interrupts it, and what readers and restarts see of it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod support;

use helenus_engine::{Database, TableStatus};
use helenus_host::sim::{Machine, Survives};
use helenus_model::schema::Table;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use support::*;

/// A time long after every deletion of the tests, whose local deletion times are their timestamps.
const NOW_US: i64 = 1_700_000_000_000_000;

fn started(seed: u64, change: impl FnOnce(&mut helenus_engine::DatabaseOptions)) -> (Machine, Arc<Database>) {
    let machine = Machine::new(seed);
    machine.set_wall_us(NOW_US);
    let database = open_with(&machine.host(), |options| {
        options.compaction.automatic = false;
        change(options);
    });
    create(&database, vec![table("t", 1, false)]);
    (machine, database)
}

fn by_hand(seed: u64) -> (Machine, Arc<Database>) {
    started(seed, |_| {})
}

fn status(database: &Database) -> TableStatus {
    database.status().tables.into_iter().find(|line| line.table == "t").unwrap()
}

fn write(database: &Database, key: &str, changes: impl FnOnce(Write, &Table) -> Write) {
    let table = table_of(database, "t");
    changes(Write::default(), &table).to(database, "t", key).wait().unwrap();
}

fn flush(database: &Database) {
    assert_eq!(database.flush(table_of(database, "t").id).unwrap(), 1);
}

fn compact(database: &Database) {
    database.compact(vec![table_of(database, "t").id]).wait().unwrap();
}

/// The files of the only table.
fn files_of(machine: &Machine) -> Vec<PathBuf> {
    let disk = machine.host().disk;
    let folder = disk.list(Path::new("/db/data/ks")).unwrap().remove(0);
    disk.list(&folder).unwrap()
}

/// Whether any file of the table still contains a value.
fn on_disk(machine: &Machine, value: &str) -> bool {
    let disk = machine.host().disk;
    files_of(machine).iter().any(|path| {
        let file = disk.open(path).unwrap();
        let mut bytes = vec![0; file.size().unwrap() as usize];
        file.read_exact_at(&mut bytes, 0).unwrap();
        bytes.windows(value.len()).any(|window| window == value.as_bytes())
    })
}

/// The rows of partition `a`.
fn rows(database: &Database) -> Vec<(i32, String)> {
    rows_of(database, "t", "a")
}

#[test]
fn what_is_shadowed_goes_at_the_next_compaction_and_everything_stays_readable() {
    let (machine, database) = by_hand(1);
    write(&database, "a", |w, t| {
        w.insert(t, 1, "overwritten", 10).insert(t, 2, "kept", 10).set_static(t, "s", 10)
    });
    flush(&database);
    write(&database, "a", |w, t| w.insert(t, 1, "newer", 11).insert(t, 3, "third", 11));
    write(&database, "b", |w, t| w.insert(t, 1, "other", 11));
    flush(&database);
    let before = run(&database, &command(&database, "t", "a")).rows;
    assert!(on_disk(&machine, "overwritten"));
    compact(&database);
    assert_eq!(status(&database).sstables, 1);
    assert_eq!(run(&database, &command(&database, "t", "a")).rows, before);
    assert!(!on_disk(&machine, "overwritten") && on_disk(&machine, "newer"));
    let after = machine.crash_image(Survives::OnlySynced);
    machine.end_tasks();
    let again = open(&after.host());
    assert_eq!(run(&again, &command(&again, "t", "a")).rows, before);
    assert_eq!(rows_of(&again, "t", "b"), [(1, "other".into())]);
    after.end_tasks();
}

#[test]
fn a_tombstone_goes_once_it_is_older_than_the_grace() {
    for (deleted_s_ago, stays) in [(599, true), (601, false)] {
        let (machine, database) = by_hand(2);
        let at = NOW_US - deleted_s_ago * 1_000_000;
        write(&database, "a", |w, t| w.insert(t, 1, "gone", 10));
        flush(&database);
        write(&database, "a", |w, _| w.delete_partition(at).delete_row(1, at).delete_range(5, 9, at));
        flush(&database);
        compact(&database);
        assert_eq!((status(&database).sstables == 1, rows(&database).len()), (stays, 0));
        assert!(!on_disk(&machine, "gone"), "what is shadowed goes in either case");
        machine.end_tasks();
    }
}

#[test]
fn a_tombstone_stays_while_anything_as_old_may_be_elsewhere() {
    // An equally old row is in the memtable.
    let (machine, database) = by_hand(3);
    write(&database, "a", |w, _| w.delete_row(1, 20));
    flush(&database);
    write(&database, "a", |w, t| w.insert(t, 1, "late", 20));
    compact(&database);
    assert_eq!((rows(&database), status(&database).sstables), (vec![], 1));
    // An equally old row is in another partition of the memtable, which does not matter.
    machine.end_tasks();
    let (machine, database) = by_hand(4);
    write(&database, "a", |w, _| w.delete_row(1, 20));
    flush(&database);
    write(&database, "b", |w, t| w.insert(t, 1, "late", 20));
    compact(&database);
    assert_eq!(status(&database).sstables, 0, "nothing is left to keep");
    // The row in the same partition is newer.
    write(&database, "a", |w, _| w.delete_row(1, 30));
    flush(&database);
    write(&database, "a", |w, t| w.insert(t, 1, "newer", 40));
    compact(&database);
    assert_eq!((rows(&database), status(&database).sstables), (vec![(1, "newer".into())], 1));
    machine.end_tasks();
}

#[test]
fn a_tombstone_stays_while_an_sstable_cannot_be_read() {
    let (machine, database) = by_hand(15);
    write(&database, "a", |w, t| w.insert(t, 1, "deleted", 10));
    flush(&database);
    let files = files_of(&machine);
    let index = files.iter().find(|path| path.to_string_lossy().ends_with("-Partitions.db")).unwrap();
    write(&database, "a", |w, _| w.delete_row(1, 20));
    flush(&database);
    let damaged = machine.crash_image(Survives::EverythingWritten);
    machine.end_tasks();
    let size = damaged.host().disk.open(index).unwrap().size().unwrap();
    damaged.flip_bit(index, size - 1, 1).unwrap();
    let database = open_with(&damaged.host(), |options| options.compaction.automatic = false);
    assert_eq!(status(&database).sstables, 1, "the other cannot be read");
    compact(&database);
    assert_eq!(status(&database).sstables, 1, "what deletes rows of it is kept");
    // After the repair, the row is still deleted.
    let mended = damaged.crash_image(Survives::EverythingWritten);
    damaged.end_tasks();
    mended.flip_bit(index, size - 1, 1).unwrap();
    let database = open(&mended.host());
    assert_eq!((status(&database).sstables, rows(&database)), (2, vec![]));
    mended.end_tasks();
}

#[test]
fn a_purged_delete_stays_deleted_after_replay() {
    let (machine, database) = by_hand(5);
    // The delete comes before the hidden row in the log: a replay from between the two would bring the row back.
    write(&database, "a", |w, _| w.delete_row(1, 20));
    flush(&database);
    write(&database, "a", |w, t| w.insert(t, 1, "hidden", 10).insert(t, 2, "there", 30));
    flush(&database);
    compact(&database);
    assert_eq!(rows(&database), [(2, "there".into())]);
    assert!(!on_disk(&machine, "hidden"));
    write(&database, "a", |w, t| w.insert(t, 3, "unflushed", 30));
    for survives in [Survives::OnlySynced, Survives::EverythingWritten] {
        let after = machine.crash_image(survives);
        let again = open(&after.host());
        assert_eq!(rows(&again), [(2, "there".into()), (3, "unflushed".into())]);
        after.end_tasks();
    }
    machine.end_tasks();
}

#[test]
fn gc_grace_seconds_is_obeyed_when_told_to() {
    for (obey, stays) in [(false, false), (true, true)] {
        let (machine, database) = started(6, |options| options.compaction.purge.obey_gc_grace = obey);
        let day_ago = NOW_US - 86_400_000_000;
        write(&database, "a", |w, _| w.delete_row(1, day_ago));
        flush(&database);
        compact(&database);
        assert_eq!(status(&database).sstables == 1, stays, "gc_grace_seconds is ten days");
        machine.end_tasks();
    }
}

#[test]
fn a_reader_goes_on_with_the_files_it_began_with() {
    let (machine, database) = by_hand(7);
    for at in 1..=4 {
        write(&database, "a", |w, t| w.insert(t, at, "v", i64::from(at)));
        flush(&database);
    }
    let command = command(&database, "t", "a");
    let view = database.view(&command.table).unwrap();
    rows(&database);
    let cached = database.status().cache_bytes;
    compact(&database);
    let mut found = Rows::default();
    let request = helenus_engine::ReadRequest { may_block: true, ..Default::default() };
    database.read(&command, &view, request, &mut found, None).unwrap();
    assert_eq!(found.rows.len(), 4);
    drop(view);
    assert!(database.status().cache_bytes < cached, "blocks of files that are gone leave the cache");
    assert_eq!(rows(&database).len(), 4);
    machine.end_tasks();
}

/// Begins a compaction of two SSTables with many rows and stops in the middle.
fn midway(machine: &Machine, database: &Database) -> Arc<helenus_engine::CompactionRequest> {
    for from in [0, 5000] {
        for c in (from..from + 5000).step_by(100) {
            write(database, "a", |w, t| (c..c + 100).fold(w, |w, c| w.insert(t, c, "v", 10)));
        }
        flush(database);
    }
    let request = database.compact(vec![table_of(database, "t").id]);
    while database.status().compactions.iter().all(|running| running.bytes_done == 0) {
        assert!(machine.step());
    }
    let running = &database.status().compactions[0];
    assert_eq!((running.kind, running.sstables), ("major", 2));
    assert!(running.bytes_done < running.bytes_total);
    request
}

#[test]
fn a_truncate_during_a_compaction_leaves_nothing_of_it() {
    let (machine, database) = by_hand(8);
    let request = midway(&machine, &database);
    database.truncate(&table_of(&database, "t")).unwrap();
    write(&database, "a", |w, t| w.insert(t, 1, "after", 20));
    let cut = machine.crash_image(Survives::OnlySynced);
    request.wait().unwrap();
    assert_eq!((rows(&database), status(&database).sstables), (vec![(1, "after".into())], 0));
    let after = machine.crash_image(Survives::OnlySynced);
    for image in [cut, after] {
        let again = open(&image.host());
        assert_eq!((rows(&again), status(&again).sstables), (vec![(1, "after".into())], 0));
        image.end_tasks();
    }
    machine.end_tasks();
}

#[test]
fn a_drop_during_a_compaction_removes_its_files_too() {
    let (machine, database) = by_hand(9);
    let request = midway(&machine, &database);
    let dropped = database.change_schema::<()>(|schema, _| {
        let mut next = schema.clone();
        next.keyspaces.remove("ks");
        Ok(next)
    });
    dropped.map_err(|_| "the table is dropped").unwrap().1.wait().unwrap();
    request.wait().unwrap();
    // The compaction had files of its own, so the database looks again.
    machine.advance(2_000_000_000);
    machine.run_until_idle();
    assert!(machine.host().disk.list(Path::new("/db/data/ks")).unwrap().is_empty());
    machine.end_tasks();
}

#[test]
fn closing_ends_a_compaction_soon_and_leaves_the_old_sstables() {
    let (machine, database) = by_hand(10);
    let request = midway(&machine, &database);
    database.close().unwrap();
    assert_eq!(request.wait(), Err("the database is closed".into()));
    assert_eq!(database.compact(Vec::new()).wait(), Err("the database is closed".into()));
    drop(database);
    let again = open(&machine.host());
    assert_eq!((status(&again).sstables, rows(&again).len()), (2, 10_000));
    machine.end_tasks();
}

#[test]
fn a_flush_during_a_compaction_stays() {
    let (machine, database) = by_hand(11);
    let request = midway(&machine, &database);
    write(&database, "a", |w, t| w.insert(t, 20_000, "during", 20));
    flush(&database);
    request.wait().unwrap();
    assert_eq!((status(&database).sstables, rows(&database).len()), (2, 10_001));
    machine.end_tasks();
}

#[test]
fn four_flushes_are_compacted_by_themselves_unless_the_table_says_no() {
    for (enabled, left) in [("true", 1), ("false", 4)] {
        let (machine, database) = started(12, |options| options.compaction.automatic = true);
        let changed = database.change_schema::<()>(|schema, _| {
            let mut next = schema.clone();
            let mut keyspace = (*next.keyspaces["ks"]).clone();
            let mut table = (*keyspace.tables["t"]).clone();
            table.options.compaction.insert("enabled".into(), enabled.into());
            keyspace.tables.insert("t".into(), Arc::new(table));
            next.keyspaces.insert("ks".into(), Arc::new(keyspace));
            Ok(next)
        });
        changed.map_err(|_| "the table changes").unwrap().1.wait().unwrap();
        for at in 1..=4 {
            write(&database, "a", |w, t| w.insert(t, at, "v", 10));
            flush(&database);
        }
        machine.run_until_idle();
        assert_eq!((status(&database).sstables, rows(&database).len()), (left, 4));
        compact(&database);
        assert_eq!(status(&database).sstables, 1, "asked for, it happens anyway");
        machine.end_tasks();
    }
}

#[test]
fn output_is_cut_at_the_boundaries_of_shards() {
    let (machine, database) = by_hand(13);
    let changed = database.change_schema::<()>(|schema, _| {
        let mut next = schema.clone();
        let mut keyspace = (*next.keyspaces["ks"]).clone();
        let mut table = (*keyspace.tables["t"]).clone();
        table.options.compaction.insert("min_sstable_size".into(), "0B".into());
        keyspace.tables.insert("t".into(), Arc::new(table));
        next.keyspaces.insert("ks".into(), Arc::new(keyspace));
        Ok(next)
    });
    changed.map_err(|_| "the table changes").unwrap().1.wait().unwrap();
    for key in 0..100 {
        write(&database, &format!("key {key}"), |w, t| w.insert(t, 1, "v", 10));
    }
    flush(&database);
    compact(&database);
    let view = database.view(&table_of(&database, "t")).unwrap();
    let mut tokens: Vec<_> = view.sstables.iter().map(|sstable| sstable.tokens()).collect();
    tokens.sort();
    assert_eq!(tokens.len(), 4, "base_shard_count");
    let shard = |token: helenus_model::token::Token| token.0 > 0;
    assert!(tokens.iter().all(|(first, last)| shard(*first) == shard(*last) || last.0 <= 0), "{tokens:?}");
    assert!(tokens.windows(2).all(|pair| pair[0].1 < pair[1].0));
    for key in 0..100 {
        assert_eq!(rows_of(&database, "t", &format!("key {key}")).len(), 1);
    }
    machine.end_tasks();
}

#[test]
fn a_damaged_sstable_is_told_and_left_alone() {
    let (machine, database) = started(14, |options| options.compaction.automatic = true);
    for at in 1..=4 {
        write(&database, "a", |w, t| w.insert(t, at, "v", 10));
        if at < 4 {
            flush(&database);
        }
    }
    let files = files_of(&machine);
    let data = files.iter().find(|path| path.to_string_lossy().ends_with("-Data.db")).unwrap();
    machine.flip_bit(data, 5, 1).unwrap();
    flush(&database);
    machine.run_until_idle();
    let failure = database.status().compaction_failure.unwrap();
    assert!(failure.contains("corrupt table") && failure.contains("Data.db"), "{failure}");
    assert_eq!(status(&database).sstables, 4);
    // After the pause it is not tried again, because three SSTables are too few.
    machine.advance(20_000_000_000);
    machine.run_until_idle();
    assert_eq!((status(&database).sstables, status(&database).pending_compactions), (4, 0));
    // The other SSTables can be compacted on request.
    compact(&database);
    assert_eq!(status(&database).sstables, 2);
    machine.end_tasks();
}
