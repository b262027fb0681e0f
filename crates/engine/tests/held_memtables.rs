//! Flushed memtables that a read still holds: the flusher stops although their memory is in use, and writes go on when
//! the read releases them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod support;

use helenus_engine::Database;
use helenus_host::sim::Machine;
use std::sync::Arc;
use support::*;

const MEMTABLE_BYTES: usize = 12 << 20;
/// More steps than any background work in this test needs.
const STEPS_MAX: usize = 2000;

fn write(database: &Database, (from, to): (i32, i32)) {
    let t = table_of(database, "t");
    for c in from..to {
        Write::default().insert(&t, c, &"v".repeat(2000), 10).to(database, "t", "a").wait().unwrap();
    }
}

fn rest(machine: &Machine) {
    // The flusher checks ten times a second.
    machine.advance(200_000_000);
    assert!((0..STEPS_MAX).any(|_| !machine.step()), "background work goes on for ever");
}

#[test]
fn the_flusher_rests_while_reads_hold_flushed_memtables() {
    for (seed, first) in [(1, 500), (2, 1500), (3, 2500), (4, 3500)] {
        let machine = Machine::new(seed);
        let database: Arc<Database> =
            open_with(&machine.host(), |options| options.memory.memtables = MEMTABLE_BYTES);
        create(&database, vec![table("t", 7, false)]);
        let mut held = Vec::new();
        for row in (0..first).step_by(100) {
            write(&database, (row, row + 100));
            held.push(database.view(&table_of(&database, "t")).unwrap());
        }
        database.flush_all().unwrap();
        rest(&machine);
        // The next writes go to memory beside the memtable that the read holds.
        for row in 0..10 {
            write(&database, (first + row, first + row + 1));
            rest(&machine);
        }
        drop(held);
        rest(&machine);
        write(&database, (first + 10, first + 4000));
        rest(&machine);
        assert_eq!(rows_of(&database, "t", "a").len() as i32, first + 4000, "{first} rows were held");
        database.close().unwrap();
        machine.end_tasks();
    }
}
