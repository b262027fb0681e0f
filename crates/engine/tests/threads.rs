//! Real threads at the same time: writers, readers, flushes, compactions, new tables. Each reader must find what was
//! acknowledged before it began, and none of a writer's rows without the earlier ones. Sanitizers run this test.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod support;

use helenus_engine::Database;
use helenus_engine::read::{KeyRange, Partitions};
use helenus_host::memory;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use support::*;

const WRITERS: usize = 3;
const READERS: usize = 2;
const ROWS: i32 = 400;

/// The number of acknowledged rows of each writer.
type Acknowledged = [AtomicI32; WRITERS];

fn key(writer: usize) -> String {
    format!("writer {writer}")
}

/// Writes rows in order, and waits for each.
fn write(database: &Database, writer: usize, acknowledged: &Acknowledged) {
    let t = table_of(database, "t");
    for c in 0..ROWS {
        let ticket = Write::default().insert(&t, c, &format!("v{c}"), 10).to(database, "t", &key(writer));
        ticket.wait().unwrap();
        acknowledged[writer].store(c + 1, Ordering::Release);
        if c % 50 == 0 {
            assert_eq!(rows_of(database, "t", &key(writer)).len(), c as usize + 1, "its own rows at once");
        }
    }
}

/// Reads everything, and each partition, until the writers have ended.
fn read(database: &Database, acknowledged: &Acknowledged, ended: &AtomicBool) {
    let mut whole = command(database, "t", "");
    whole.partitions = Partitions::Range(KeyRange::all());
    let mut is_last = false;
    while !is_last {
        is_last = ended.load(Ordering::Acquire);
        let before: Vec<i32> = acknowledged.iter().map(|rows| rows.load(Ordering::Acquire)).collect();
        let mut found: BTreeMap<String, Vec<i32>> = BTreeMap::new();
        for (key, _, c, v) in run(database, &whole).rows {
            assert_eq!(v, Some(format!("v{c}")));
            found.entry(key).or_default().push(c);
        }
        for (writer, least) in before.into_iter().enumerate() {
            let rows = found.remove(&key(writer)).unwrap_or_default();
            assert!(rows.iter().copied().eq(0..rows.len() as i32), "a row without those before it: {rows:?}");
            assert!(rows.len() >= least as usize, "{} of {least} acknowledged rows", rows.len());
            let again = rows_of(database, "t", &key(writer));
            assert!(again.len() >= rows.len(), "what one read has shown the next shows too");
        }
    }
}

/// Flushes, compacts and creates tables until the writers have ended.
fn upkeep(database: &Database, ended: &AtomicBool) {
    let id = table_of(database, "t").id;
    let mut round = 0;
    while !ended.load(Ordering::Acquire) {
        database.flush(id).unwrap();
        if round % 3 == 2 {
            database.compact(vec![id]).wait().unwrap();
        }
        if round % 5 == 4 {
            create(database, vec![table(&format!("t{round}"), 100 + round, false)]);
        }
        round += 1;
    }
}

#[test]
fn reads_beside_writes_flushes_compactions_and_new_tables_show_all_that_is_acknowledged_in_its_order() {
    let host = memory::host();
    let database = open_with(&host, |options| options.segment_bytes = 64 << 10);
    create(&database, vec![table("t", 1, false)]);
    let (acknowledged, ended) = (Acknowledged::default(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let (database, acknowledged, ended) = (&*database, &acknowledged, &ended);
        for _ in 0..READERS {
            scope.spawn(|| read(database, acknowledged, ended));
        }
        scope.spawn(|| upkeep(database, ended));
        let writers: Vec<_> =
            (0..WRITERS).map(|writer| scope.spawn(move || write(database, writer, acknowledged))).collect();
        let written: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        // Set even if a writer has failed, so that the other threads end.
        ended.store(true, Ordering::Release);
        written.into_iter().for_each(|one| one.unwrap());
    });
    database.close().unwrap();
    drop(database);
    let database = open(&host);
    for writer in 0..WRITERS {
        assert_eq!(rows_of(&database, "t", &key(writer)).len(), ROWS as usize);
    }
    database.close().unwrap();
}
