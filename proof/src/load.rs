//! Load between starts, rest, and what must hold then whatever the answers are: the log is bounded and gapless, no folder
//! holds what nothing needs, memory is released (`progress`).
//!
//! The loaded table is written by no other operation and flushed by nobody's request. So the log grows until the flusher
//! acts by itself, beside tables that have nothing to flush.

use crate::progress::Judged;
use crate::world::{Failure, Store, World};

pub(crate) const CREATE_LOADED: &str = "CREATE TABLE loaded (k int PRIMARY KEY, v text)";

/// Bytes of a row: sixteen rows fill a small segment.
const ROW_BYTES: usize = 1000;
/// Rows between two turns of background work.
const ROWS_PER_TURN: u32 = 50;
/// Between two looks of the flusher.
const LOOK_NS: u64 = 100_000_000;
/// Turns after which background work has done what there was.
const TURNS: usize = 6;

impl World {
    pub(crate) fn load(&mut self, rows: u32) -> Result<(), Failure> {
        let from = self.loaded;
        self.loaded += rows;
        let store = self.store()?;
        let value = "v".repeat(ROW_BYTES);
        for k in from..self.loaded {
            store.must(&format!("INSERT INTO loaded (k, v) VALUES ({k}, '{value}')"))?;
            if k % ROWS_PER_TURN == 0 {
                turn(store, LOOK_NS);
            }
        }
        Ok(())
    }

    pub(crate) fn drop_loaded(&mut self) -> Result<(), Failure> {
        self.loaded = 0;
        let store = self.store()?;
        store.must("DROP TABLE loaded")?;
        store.must(CREATE_LOADED).map(drop)
    }

    /// Gives background work its turns, then judges what must hold.
    pub(crate) fn rest_and_judge(&self) -> Result<(), Failure> {
        let store = self.store()?;
        (0..TURNS).for_each(|_| turn(store, LOOK_NS));
        judge(store)
    }

    /// Whether the loaded table has its rows.
    pub(crate) fn count_loaded(&self) -> Result<(), Failure> {
        let store = self.store()?;
        let rows = store.pages("SELECT k FROM loaded", Some(500))?.len();
        match rows == self.loaded as usize {
            true => Ok(()),
            false => Err(format!("the loaded table has {rows} rows of {}", self.loaded)),
        }
    }
}

/// Lets time pass, and background work run.
pub(crate) fn turn(store: &Store, ns: u64) {
    store.machine.advance(ns);
    store.machine.run_until_idle();
}

/// What must hold of an open database whose background work has had its turns.
pub(crate) fn judge(store: &Store) -> Result<(), Failure> {
    let database = store.database();
    let mut troubles = Judged::of(database).troubles();
    let status = database.status();
    let memory: u64 = status.tables.iter().map(|table| table.memtable_bytes).sum();
    if memory > status.memtable_bytes_max {
        troubles.push(format!("memtables of {memory} bytes; the bound is {}", status.memtable_bytes_max));
    }
    if let Some(failure) = &status.flush_failure {
        troubles.push(format!("the last flush failed: {failure}"));
    }
    match troubles.is_empty() {
        true => Ok(()),
        false => Err(format!("what must hold at rest does not:\n  {}", troubles.join("\n  "))),
    }
}
