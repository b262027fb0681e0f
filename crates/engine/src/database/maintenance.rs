//! Work in the background, as requested by an administrator or by time: flushes, compactions, builds of indexes; and closing.

use super::index_builds::{rebuild, record_not_built};
use super::shared::{Database, Shared};
use crate::compaction::CompactionRequest;
use crate::error::{Error, Result};
use crate::journal::Event;
use crate::table::{TableStore, flush_together};
use helenus_host::{Next, Worker};
use helenus_model::schema::{Table, TableId};
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

/// How often the flusher checks the memory in use.
const LOOK_NS: u64 = 100_000_000;
/// Number of log segments beyond which the tables that keep the oldest segment are flushed, so that a replay stays
/// short.
const SEGMENTS_MAX: usize = 32;
/// Number of log segments beyond which tables with little in memory are flushed if they alone keep the oldest segment.
/// Otherwise a few rows would let the log grow to `SEGMENTS_MAX` segments, each of them a new file.
const SEGMENTS_BEHIND_LITTLE_MAX: usize = 8;
/// Size of memtables in bytes that together cost next to nothing to flush.
const LITTLE_BYTES: usize = 1 << 20;

impl Database {
    /// Flushes every table. Returns the SSTables written.
    ///
    /// # Errors
    /// The first failure, after every table was tried.
    pub fn flush_all(&self) -> Result<u64> {
        self.shared.flush_all()
    }

    /// Flushes one table and its indexes. Returns the number of SSTables written.
    ///
    /// # Errors
    /// Failures of writing; the unwritten data stays in memory.
    pub fn flush(&self, table: TableId) -> Result<u64> {
        let Some(store) = self.shared.table(table) else { return Ok(0) };
        let mut written = store.flush(&self.shared)?;
        for index in store.indexes().iter() {
            written += index.store.flush(&self.shared)?;
        }
        Ok(written)
    }

    /// Closes the database: refuses further writes, flushes everything and closes the log, so that the next start
    /// replays nothing.
    ///
    /// # Errors
    /// The first failure; the log then still has what was not flushed.
    pub fn close(&self) -> Result<()> {
        let drained = self.drain();
        // Handles of tables may outlive the database, but the directory is free for the next one.
        *self.shared.lock.lock() = None;
        drained
    }

    /// As `close`, but this process keeps the directory, and reads go on.
    ///
    /// # Errors
    /// As `close`.
    pub fn drain(&self) -> Result<()> {
        {
            let _gate = self.shared.gate.close();
            if self.shared.closing.swap(true, Ordering::AcqRel) {
                return Ok(());
            }
        }
        if let Some(flusher) = self.flusher.get() {
            flusher.wake();
            flusher.join();
        }
        self.shared.compactors.join();
        self.shared.index_builds.join();
        let flushed = match &self.shared.log {
            // Without a log nothing is meant to survive, so nothing is flushed.
            None => Ok(0),
            Some(_) => self.shared.flush_all(),
        };
        let closed = self.shared.log.as_ref().map_or(Ok(()), |log| log.close());
        flushed.and(closed)
    }

    /// Requests a compaction of all SSTables of these tables, in the background and within the throttle. Memtables are
    /// not flushed before.
    pub fn compact(&self, tables: Vec<TableId>) -> Arc<CompactionRequest> {
        self.shared.compactions.request_all(tables)
    }

    /// Requests a rewrite of each SSTable of these tables: of those with an older format version, or with `current` of
    /// all.
    pub fn rewrite(&self, tables: Vec<TableId>, current: bool) -> Arc<CompactionRequest> {
        self.shared.compactions.request_rewrite(tables, current)
    }

    /// Requests a compaction of the SSTables that contain these partitions, which purges the partitions' tombstones
    /// before the end of their grace period. Memtables are flushed before.
    pub fn compact_keys(&self, tables: Vec<TableId>, keys: BTreeSet<Vec<u8>>) -> Arc<CompactionRequest> {
        for table in &tables {
            // If the flush fails, the data stays in memory, and the compaction keeps the tombstones that cover it.
            let _ = self.flush(*table);
        }
        self.shared.compactions.request_keys(tables, keys)
    }

    /// Blocks until every index is built.
    pub fn wait_for_indexes(&self) {
        let shared = &self.shared;
        let mut ready = || shared.index_builds.unfinished().is_empty();
        shared.host.tasks.wait_until(&shared.announcer.changed, &mut ready);
    }

    /// Rebuilds the indexes of a table in the background. Until that is done, reads through them are refused.
    ///
    /// # Errors
    /// `UnknownTable`; the errors of a write, after which they are rebuilt all the same.
    pub fn rebuild_indexes(&self, table: &Table) -> Result<()> {
        let store = self.shared.table(table.id).ok_or_else(|| Error::unknown(table))?;
        let forgotten = record_not_built(&self.shared, &store);
        rebuild(&self.shared, &store);
        forgotten
    }
}

impl Drop for Database {
    /// Ends the background work without waiting for it. What was acknowledged is in the log.
    fn drop(&mut self) {
        self.shared.closing.store(true, Ordering::Release);
        if let Some(flusher) = self.flusher.get() {
            flusher.wake();
        }
        self.shared.compactors.wake();
        self.shared.index_builds.wake();
        if let Some(log) = &self.shared.log {
            log.stop();
        }
    }
}

impl Shared {
    fn flush_all(&self) -> Result<u64> {
        let stores: Vec<Arc<TableStore>> = self.tables.load().values().cloned().collect();
        flush_together(self, &stores)
    }

    /// Why a table's last flush failed, if one did.
    pub(super) fn first_flush_failure(&self) -> Option<String> {
        self.tables.load().values().filter(|store| !store.is_dropped()).find_map(|store| {
            let table = store.table();
            let failure = store.troubles.now().flush?;
            Some(format!("{}.{}: {failure}", table.keyspace, table.name))
        })
    }

    /// The table whose flush helps most, if a flush is due. A table whose flush has just failed is skipped.
    fn due(&self, now_ns: u64) -> Option<Arc<TableStore>> {
        let tables = self.tables.load();
        let may = |store: &&Arc<TableStore>| !store.troubles.is_flush_paused(now_ns);
        let bytes = |store: &Arc<TableStore>| store.view().memtables.iter().map(|m| m.bytes()).sum::<usize>();
        let segments = self.log.as_ref().map_or(0, |log| log.segments_count());
        if segments > SEGMENTS_BEHIND_LITTLE_MAX {
            let log = self.log.as_ref()?;
            let oldest = log.tables_of_oldest_segment();
            let mut keepers = oldest.iter().filter_map(|table| tables.get(table)).filter(may);
            let are_little = keepers.clone().map(bytes).sum::<usize>() <= LITTLE_BYTES;
            let keeper = keepers.next().filter(|_| segments > SEGMENTS_MAX || are_little);
            if keeper.is_some() {
                return keeper.cloned();
            }
        }
        let limit = self.options.memory.memtables;
        let in_use = self.memory.bytes();
        if in_use < limit / 2 {
            return None;
        }
        // Reads still hold memtables that are flushed already, and no flush frees their memory. A flush is due when
        // the others take half of the rest.
        let live = tables.values().map(bytes).sum::<usize>();
        let held_by_reads = in_use.saturating_sub(live);
        let is_much = live >= limit.saturating_sub(held_by_reads) / 2;
        let is_filled = |store: &&Arc<TableStore>| {
            let view = store.view();
            view.memtables.len() > 1 || !view.current().is_empty()
        };
        let filled = tables.values().filter(|_| is_much).filter(is_filled).filter(may);
        filled.max_by_key(|store| bytes(store)).cloned()
    }
}

/// Flushes when memtables or the log grow too large.
pub(super) struct Flusher {
    shared: Weak<Shared>,
    /// Whether writes waited for memory at the last step.
    was_full: bool,
}

impl Flusher {
    pub(super) fn new(shared: &Arc<Shared>) -> Flusher {
        Flusher { shared: Arc::downgrade(shared), was_full: false }
    }
}

impl Worker for Flusher {
    fn step(&mut self) -> Next {
        let Some(shared) = self.shared.upgrade() else { return Next::Done };
        if shared.closing.load(Ordering::Acquire) {
            return Next::Done;
        }
        let journal = &shared.options.journal;
        shared.timestamps.look(&mut |jump| journal.note(&Event::ClockJumped(jump)));
        let is_full = shared.memory.bytes() >= shared.options.memory.memtables;
        if std::mem::replace(&mut self.was_full, is_full) && !is_full {
            // A read has released a flushed memtable: writes continue without a flush.
            shared.announcer.notify();
        }
        let Some(store) = shared.due(shared.host.clock.monotonic_ns()) else {
            if shared.memory.gather() || shared.memory.prepare() {
                return Next::Again;
            }
            shared.memory.trim();
            return Next::WaitAtMost(LOOK_NS);
        };
        let flushed = store.make_room(&shared);
        *shared.flush_failure.lock() = shared.first_flush_failure();
        match flushed {
            // Nothing was written: without a pause the flusher would run in a busy loop.
            Ok(0) => Next::WaitAtMost(LOOK_NS),
            Ok(_) => {
                shared.announcer.notify();
                Next::Again
            }
            Err(_) => Next::Again,
        }
    }
}
