//! The basic path: a table is created; rows are written, read, flushed, read again, and read after a restart and after
//! a crash.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod support;

use helenus_host::sim::{Machine, Survives};
use helenus_model::filter::{ClusteringFilter, Slice};
use std::sync::Arc;
use support::*;

#[test]
fn rows_are_there_from_memory_from_disk_and_after_restarts() {
    let machine = Machine::new(1);
    let host = machine.host();
    let database = open(&host);
    create(&database, vec![table("t", 7, false)]);
    let t = table_of(&database, "t");
    for c in (0..100).rev() {
        Write::default().insert(&t, c, &format!("v{c}"), 10).to(&database, "t", "a").wait().unwrap();
    }
    Write::default().set_static(&t, "s", 10).to(&database, "t", "only-static").wait().unwrap();
    let expected: Vec<_> = (0..100).map(|c| (c, format!("v{c}"))).collect();
    assert_eq!(rows_of(&database, "t", "a"), expected);
    assert_eq!(database.flush(t.id).unwrap(), 1);
    assert_eq!(rows_of(&database, "t", "a"), expected);
    Write::default().insert(&t, 50, "newer", 11).delete_row(51, 11).to(&database, "t", "a").wait().unwrap();
    let mut expected: Vec<_> = expected.into_iter().filter(|(c, _)| *c != 51).collect();
    expected[50].1 = "newer".into();
    assert_eq!(rows_of(&database, "t", "a"), expected);
    let empty = run(&database, &command(&database, "t", "only-static")).empty;
    assert_eq!(empty, [("only-static".to_string(), Some("s".to_string()))]);

    // The process dies: what the system has synced survives, and the log is replayed.
    let after = machine.crash_image(Survives::OnlySynced);
    machine.end_tasks();
    drop(database);
    let database = open(&after.host());
    assert_eq!(rows_of(&database, "t", "a"), expected);
    database.close().unwrap();
    drop(database);

    // A clean stop leaves nothing to replay.
    let options = helenus_engine::DatabaseOptions::new("/db");
    let (database, report) = helenus_engine::Database::open(after.host(), options).unwrap();
    assert_eq!(report.replayed, 0);
    assert_eq!(rows_of(&database, "t", "a"), expected);
    database.close().unwrap();
    after.end_tasks();
}

#[test]
fn deletions_of_every_kind_hide_what_is_older_in_memory_and_on_disk() {
    let machine = Machine::new(2);
    let database = open(&machine.host());
    for (name, id, desc) in [("t", 1, false), ("d", 2, true)] {
        create(&database, vec![table(name, id, desc)]);
        let t = table_of(&database, name);
        let mut write = Write::default();
        for c in 0..20 {
            write = write.insert(&t, c, "old", 10);
        }
        write.to(&database, name, "p").wait().unwrap();
        database.flush(t.id).unwrap();
        let (from, to) = if desc { (8, 5) } else { (5, 8) };
        Write::default().delete_range(from, to, 20).to(&database, name, "p").wait().unwrap();
        Write::default().insert(&t, 6, "new", 30).delete_row(15, 30).to(&database, name, "p").wait().unwrap();
        let mut expected: Vec<(i32, String)> =
            (0..20).filter(|c| !(5..=8).contains(c) && *c != 15).map(|c| (c, "old".to_string())).collect();
        expected.insert(5, (6, "new".into()));
        if desc {
            expected.reverse();
        }
        for _ in 0..2 {
            assert_eq!(rows_of(&database, name, "p"), expected);
            let mut reversed = command(&database, name, "p");
            reversed.reversed = true;
            let rows = run(&database, &reversed).rows;
            assert!(rows.iter().rev().map(|row| row.2).eq(expected.iter().map(|row| row.0)));
            let mut slice = command(&database, name, "p");
            let (low, high) = if desc { (16, 6) } else { (6, 16) };
            let bounds = Slice { start: row_key(&t, low), end: row_key(&t, high) };
            slice.filter = Arc::new(ClusteringFilter::Slices(vec![bounds]));
            let sliced: Vec<i32> = run(&database, &slice).rows.iter().map(|row| row.2).collect();
            let within = |c: &i32| if desc { (7..=16).contains(c) } else { (6..16).contains(c) };
            let wanted: Vec<i32> = expected.iter().map(|row| row.0).filter(within).collect();
            assert_eq!(sliced, wanted, "{name}");
            let mut names = command(&database, name, "p");
            let mut keys: Vec<_> = [6, 7, 14, 15].map(|c| row_key(&t, c)).to_vec();
            keys.sort();
            names.filter = Arc::new(ClusteringFilter::Names(keys));
            let mut named: Vec<i32> = run(&database, &names).rows.iter().map(|row| row.2).collect();
            named.sort_unstable();
            assert_eq!(named, [6, 14]);
            database.flush(t.id).unwrap();
        }
        Write::default().delete_partition(25).to(&database, name, "p").wait().unwrap();
        assert_eq!(rows_of(&database, name, "p"), [(6, "new".to_string())]);
    }
    database.close().unwrap();
    machine.end_tasks();
}

#[test]
fn pages_of_any_size_together_give_the_whole() {
    let machine = Machine::new(3);
    let database = open(&machine.host());
    create(&database, vec![table("t", 1, false)]);
    let t = table_of(&database, "t");
    let keys = ["a", "b", "c", "d", "e"];
    for (index, key) in keys.iter().enumerate() {
        let mut write = Write::default().set_static(&t, "s", 1);
        for c in 0..(index as i32 * 7) {
            write = write.insert(&t, c, "v", 1);
        }
        write.to(&database, "t", key).wait().unwrap();
        if index % 2 == 0 {
            database.flush(t.id).unwrap();
        }
    }
    let mut whole = command(&database, "t", "a");
    whole.partitions = helenus_engine::read::Partitions::Range(helenus_engine::read::KeyRange::all());
    for reversed in [false, true] {
        whole.reversed = reversed;
        whole.page_rows = None;
        let all = run(&database, &whole);
        assert_eq!(all.rows.len(), 7 + 14 + 21 + 28);
        assert_eq!(all.empty.len(), 1);
        for page in [1, 2, 3, 7, 100] {
            whole.page_rows = Some(page);
            let paged = run(&database, &whole);
            assert_eq!(paged.rows, all.rows, "pages of {page}, reversed {reversed}");
            assert_eq!(paged.empty, all.empty);
        }
    }
    database.close().unwrap();
    machine.end_tasks();
}

#[test]
fn a_truncate_survives_a_crash_and_later_writes_do_too() {
    let machine = Machine::new(4);
    let database = open(&machine.host());
    create(&database, vec![table("t", 1, false)]);
    let t = table_of(&database, "t");
    Write::default().insert(&t, 1, "flushed", 1).to(&database, "t", "a").wait().unwrap();
    database.flush(t.id).unwrap();
    Write::default().insert(&t, 2, "in memory", 1).to(&database, "t", "a").wait().unwrap();
    database.truncate(&t).unwrap();
    Write::default().insert(&t, 3, "after", 1).to(&database, "t", "a").wait().unwrap();
    assert_eq!(rows_of(&database, "t", "a"), [(3, "after".to_string())]);
    let after = machine.crash();
    machine.end_tasks();
    drop(database);
    let database = open(&after.host());
    assert_eq!(rows_of(&database, "t", "a"), [(3, "after".to_string())]);
    database.close().unwrap();
    after.end_tasks();
}
