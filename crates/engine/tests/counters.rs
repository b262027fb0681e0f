//! Counters in the engine: every update counts exactly once, with concurrent updates, flushes, compactions and crashes.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod support;

use helenus_engine::read::{RowOutcome, RowSink};
use helenus_engine::{Database, ReadRequest, SyncMode, Ticket};
use helenus_host::sim::{Machine, Survives};
use helenus_model::counter_context;
use helenus_model::deletion::{DeletionTime, Liveness};
use helenus_model::mutation::{Changes, Mutation, PartitionUpdate};
use helenus_model::row::RowView;
use helenus_model::schema::Table;
use helenus_model::types::CqlType;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use support::*;

/// `CREATE TABLE ks.n (k text, c int, s counter static, v counter, w counter, PRIMARY KEY (k, c))`
fn counters(name: &str, id: u128) -> Table {
    let mut table = table(name, id, false);
    table.statics.iter_mut().chain(&mut table.regulars).for_each(|column| column.ty = CqlType::Counter);
    table.flags.push("counter".into());
    table
}

fn row(table: &Table, c: i32, cells: &[(&str, &[u8])], timestamp_us: i64) -> Changes {
    let mut changes = Changes::default();
    let clustering = c.to_be_bytes();
    changes.row([Some(&clustering[..])].into_iter(), (Liveness::NONE, DeletionTime::LIVE), &[], |row| {
        cells.iter().for_each(|(column, value)| row.cell(&cell(table, column, timestamp_us), None, value));
    });
    changes
}

fn update(database: &Database, key: &str, changes: Changes) -> Mutation {
    let table = table_of(database, "n");
    Mutation { updates: vec![PartitionUpdate { table, key: key.as_bytes().to_vec(), changes }] }
}

const MAY_BLOCK: ReadRequest<'static> =
    ReadRequest { may_block: true, deadline_ns: None, cancelled: None, bypasses_cache: false };

/// Adds to `v` and `w` of a row.
fn count(database: &Database, key: &str, c: i32, (v, w): (i64, i64)) -> Ticket {
    let table = table_of(database, "n");
    let timestamp_us = database.next_timestamp().unwrap();
    let changes = row(&table, c, &[("v", &v.to_be_bytes()), ("w", &w.to_be_bytes())], timestamp_us);
    database.count(&update(database, key, changes), MAY_BLOCK, None).unwrap()
}

#[derive(Default)]
struct Totals {
    table: Option<Arc<Table>>,
    rows: BTreeMap<i32, (i64, i64)>,
}

impl RowSink for Totals {
    fn partition(&mut self, _: &[u8], _: Option<RowView<'_>>) -> helenus_engine::Result<()> {
        Ok(())
    }

    fn row(&mut self, row: RowView<'_>) -> helenus_engine::Result<RowOutcome> {
        let table = self.table.as_ref().unwrap();
        let total = |name: &str| {
            let cells = row.cells_of(table.column(name).unwrap().id);
            let live = cells.first().filter(|cell| !cell.is_tombstone());
            live.map_or(0, |cell| counter_context::total(row.value(cell)))
        };
        let c = i32::from_be_bytes(row.clustering(0).unwrap().try_into().unwrap());
        self.rows.insert(c, (total("v"), total("w")));
        Ok(RowOutcome::Counted)
    }

    fn partition_end(&mut self, _: u64) -> helenus_engine::Result<RowOutcome> {
        Ok(RowOutcome::Skipped)
    }
}

fn totals(database: &Database, key: &str) -> BTreeMap<i32, (i64, i64)> {
    let command = command(database, "n", key);
    let mut totals = Totals { table: Some(command.table.clone()), ..Totals::default() };
    let view = database.view(&command.table).unwrap();
    database.read(&command, &view, MAY_BLOCK, &mut totals, None).unwrap();
    totals.rows
}

#[test]
fn updates_of_many_threads_count_once_each_across_flushes_compactions_and_a_restart() {
    const THREADS: i64 = 8;
    const ROUNDS: i64 = 100;
    let machine = Machine::new(1);
    let database = open(&machine.host());
    create(&database, vec![counters("n", 7)]);
    let id = table_of(&database, "n").id;
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let database = &database;
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    count(database, "shared", (round % 3) as i32, (1, -thread)).wait().unwrap();
                    if thread == 0 && round % 30 == 0 {
                        database.flush(id).unwrap();
                    }
                }
            });
        }
    });
    let thirds = [34, 33, 33];
    let expected: BTreeMap<i32, (i64, i64)> = (0..3)
        .map(|c| (c, (thirds[c as usize] * THREADS, -thirds[c as usize] * (0..THREADS).sum::<i64>())))
        .collect();
    assert_eq!(totals(&database, "shared"), expected);
    database.flush(id).unwrap();
    assert_eq!(totals(&database, "shared"), expected);
    database.close().unwrap();
    drop(database);
    let database = open(&machine.host());
    assert_eq!(totals(&database, "shared"), expected);
    count(&database, "shared", 0, (-1, 1)).wait().unwrap();
    let (v, w) = expected[&0];
    assert_eq!(totals(&database, "shared")[&0], (v - 1, w + 1));
    database.close().unwrap();
    machine.end_tasks();
}

#[test]
fn an_acknowledged_update_counts_once_after_a_cut_at_every_sync() {
    let machine = Machine::new(2);
    let database = open_with(&machine.host(), |options| options.sync = Some(SyncMode::Batch));
    create(&database, vec![counters("n", 7)]);
    let id = table_of(&database, "n").id;
    let (begun, acknowledged) = (Arc::new(AtomicI64::new(0)), Arc::new(AtomicI64::new(0)));
    let (seen_begun, seen) = (begun.clone(), acknowledged.clone());
    let cuts = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let kept = cuts.clone();
    machine.on_every_sync(move |cut| {
        let allowed = (seen.load(Ordering::SeqCst), seen_begun.load(Ordering::SeqCst));
        kept.lock().push((cut.machine.crash_image(Survives::OnlySynced), allowed));
    });
    for round in 0..20 {
        begun.fetch_add(1, Ordering::SeqCst);
        count(&database, "k", 0, (1, 2)).wait().unwrap();
        acknowledged.fetch_add(1, Ordering::SeqCst);
        if round % 6 == 5 {
            database.flush(id).unwrap();
        }
    }
    machine.stop_watching();
    let mut count_of_cuts = 0;
    for (image, (least, most)) in cuts.lock().drain(..) {
        let after = open(&image.host());
        let found = totals(&after, "k").get(&0).copied().unwrap_or_default();
        assert!((least..=most).contains(&found.0) && found.1 == found.0 * 2, "{found:?} of {least}..={most}");
        // Counting continues from the recovered value.
        count(&after, "k", 0, (1, 2)).wait().unwrap();
        assert_eq!(totals(&after, "k")[&0], (found.0 + 1, found.1 + 2));
        after.close().unwrap();
        image.end_tasks();
        count_of_cuts += 1;
    }
    assert!(count_of_cuts > 20, "{count_of_cuts} cuts");
    let image = machine.crash_image(Survives::OnlySynced);
    let after = open(&image.host());
    assert_eq!(totals(&after, "k")[&0], (20, 40));
    after.close().unwrap();
    image.end_tasks();
    database.close().unwrap();
    machine.end_tasks();
}

#[test]
fn shards_of_other_servers_stay_and_are_summed() {
    let machine = Machine::new(3);
    let database = open(&machine.host());
    create(&database, vec![counters("n", 7)]);
    let table = table_of(&database, "n");
    count(&database, "k", 0, (5, 0)).wait().unwrap();
    // A counter context as in a file from another server.
    let foreign = |clock, number| counter_context::global([3; 16], clock, number);
    for (clock, number, expected) in [(10, 100, 105), (9, 50, 105), (11, 7, 12)] {
        let changes = row(&table, 0, &[("v", &foreign(clock, number))], 1);
        database.write(&update(&database, "k", changes)).unwrap().wait().unwrap();
        assert_eq!(totals(&database, "k")[&0].0, expected);
        database.flush(table.id).unwrap();
        assert_eq!(totals(&database, "k")[&0].0, expected);
    }
    count(&database, "k", 0, (1, 0)).wait().unwrap();
    assert_eq!(totals(&database, "k")[&0].0, 13);
    database.flush(table.id).unwrap();
    database.compact(vec![table.id]).wait().unwrap();
    assert_eq!(totals(&database, "k")[&0].0, 13);
    count(&database, "k", 0, (1, 0)).wait().unwrap();
    assert_eq!(totals(&database, "k")[&0].0, 14);
    database.close().unwrap();
    machine.end_tasks();
}

#[test]
fn several_additions_to_one_counter_in_one_mutation_are_one_update() {
    let machine = Machine::new(4);
    let database = open(&machine.host());
    create(&database, vec![counters("n", 7)]);
    let table = table_of(&database, "n");
    let mut changes = Changes::default();
    for (c, by) in [(1, 5), (2, 7), (1, -2), (1, 10)] {
        let value = i64::to_be_bytes(by);
        changes.append(&row(&table, c, &[("v", &value)], 5));
    }
    changes.static_row(&[], |row| row.cell(&cell(&table, "s", 5), None, &9_i64.to_be_bytes()));
    database.count(&update(&database, "k", changes.clone()), MAY_BLOCK, None).unwrap().wait().unwrap();
    assert_eq!(totals(&database, "k"), BTreeMap::from([(1, (13, 0)), (2, (7, 0))]));
    database.count(&update(&database, "k", changes), MAY_BLOCK, None).unwrap().wait().unwrap();
    assert_eq!(totals(&database, "k"), BTreeMap::from([(1, (26, 0)), (2, (14, 0))]));
    database.close().unwrap();
    machine.end_tasks();
}
