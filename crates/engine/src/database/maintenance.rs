//! Work in the background, as requested by an administrator or by time: flushes, compactions, builds of indexes; and closing.

use super::flush_choice::{Candidate, FlushReason, Pressure, choose};
use super::index_builds::{rebuild, record_not_built};
use super::shared::{Database, Shared};
use super::stalled_log::{SeenLog, StalledLog};
use crate::compaction::CompactionRequest;
use crate::error::{Error, Result};
use crate::journal::Event;
use crate::table::{EMPTY_BYTES_MAX, TableStore, flush_together};
use helenus_host::{Next, Worker};
use helenus_model::schema::{Table, TableId};
use std::collections::{BTreeSet, HashSet};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

/// How often the flusher checks the memory in use.
const LOOK_NS: u64 = 100_000_000;
/// Nanoseconds for which a table is skipped whose flush has changed nothing although the log said that it would.
const FRUITLESS_NS: u64 = 1_000_000_000;

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

    /// The tables whose flush helps most, if one is due.
    fn due(&self, last: Option<FlushReason>, now_ns: u64) -> Option<(FlushReason, Vec<Arc<TableStore>>)> {
        let (memory_in_use, memory_limit) = self.memory.beside_stuck();
        let pressure = Pressure {
            segments: self.log.as_ref().map_or(0, |log| log.segments_count()),
            memory_in_use,
            memory_limit,
            has_stuck: self.memory.has_stuck(),
        };
        if !pressure.is_any() {
            return None;
        }
        let tables = self.tables.load();
        let oldest = self.log.as_ref().map(|log| log.tables_of_oldest_segment()).unwrap_or_default();
        let oldest: HashSet<TableId> = oldest.into_iter().collect();
        if let Some(log) = &self.log {
            // A table without a store was dropped, and has nothing in memory that the log must keep.
            oldest.iter().filter(|table| !tables.contains_key(table)).for_each(|table| log.forget(*table));
        }
        let candidate = |(id, store): (&TableId, &Arc<TableStore>)| {
            let view = store.view_briefly();
            Candidate {
                id: *id,
                bytes: view.memtables.iter().map(|memtable| memtable.bytes()).sum(),
                is_filled: !view.is_flushed() || view.current().bytes() > EMPTY_BYTES_MAX,
                keeps_oldest: oldest.contains(id),
                is_stuck: pressure.has_stuck && store.troubles.is_stuck(),
                is_paused: store.troubles.is_flush_paused(now_ns),
            }
        };
        let candidates: Vec<Candidate> = tables.iter().map(candidate).collect();
        let (reason, chosen) = choose(pressure, &candidates, last)?;
        Some((reason, chosen.iter().filter_map(|table| tables.get(table).cloned()).collect()))
    }

    /// Names of tables, with their keyspaces; the id of one that does not exist.
    fn names_of(&self, ids: &[TableId]) -> Vec<String> {
        let name = |id: &TableId| match self.table(*id) {
            Some(store) => format!("{}.{}", store.table().keyspace, store.table().name),
            None => id.0.to_string(),
        };
        ids.iter().map(name).collect()
    }

    /// Flushes these tables in the background.
    fn make_room(&self, stores: &[Arc<TableStore>]) -> Result<u64> {
        match stores {
            [store] => store.make_room(self),
            stores => flush_together(self, stores),
        }
    }

    /// Skips, for a moment, the tables that still keep the oldest segment after their flush: whatever the cause, others
    /// are flushed meanwhile.
    fn pass_over_fruitless(&self, stores: &[Arc<TableStore>], now_ns: u64) {
        let Some(log) = &self.log else { return };
        let oldest = log.tables_of_oldest_segment();
        for store in stores.iter().filter(|store| store.view().is_flushed()) {
            if oldest.contains(&store.table().id) {
                store.troubles.pause_flush(now_ns.saturating_add(FRUITLESS_NS));
            }
        }
    }
}

/// Flushes when memtables or the log grow too large.
pub(super) struct Flusher {
    shared: Weak<Shared>,
    /// Whether writes waited for memory at the last step.
    was_full: bool,
    /// The reason of the last flush.
    last: Option<FlushReason>,
    stalled: StalledLog,
}

impl Flusher {
    pub(super) fn new(shared: &Arc<Shared>) -> Flusher {
        Flusher {
            shared: Arc::downgrade(shared),
            was_full: false,
            last: None,
            stalled: StalledLog::default(),
        }
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
        let is_full = shared.memory.is_full();
        if std::mem::replace(&mut self.was_full, is_full) && !is_full {
            // A read has released a flushed memtable: writes continue without a flush.
            shared.announcer.notify();
        }
        if let Some(log) = &shared.log {
            log.look_at_place();
            log.upkeep();
        }
        shared.leftovers.retry(&shared);
        let now_ns = shared.host.clock.monotonic_ns();
        if let Some(log) = &shared.log {
            let is_explained = shared.memory.has_stuck() || log.has_known_trouble();
            let (oldest, keepers) = log.oldest_segment();
            let seen = SeenLog { oldest, keepers, segments: log.segments_count() };
            if self.stalled.look(now_ns, seen, is_explained) {
                journal.note(&Event::LogStalled {
                    segments: log.segments_count(),
                    tables: &shared.names_of(&log.tables_of_oldest_segment()),
                });
            }
        }
        let Some((reason, stores)) = shared.due(self.last, now_ns) else {
            self.last = None;
            if shared.memory.gather() || shared.memory.prepare() {
                return Next::Again;
            }
            shared.memory.trim();
            return Next::WaitAtMost(LOOK_NS);
        };
        self.last = Some(reason);
        let flushed = shared.make_room(&stores);
        if reason == FlushReason::Log {
            shared.pass_over_fruitless(&stores, now_ns);
        }
        *shared.flush_failure.lock() = shared.first_flush_failure();
        match flushed {
            // Nothing was written: without a pause the flusher could run in a busy loop.
            Ok(0) if reason == FlushReason::Memory => Next::WaitAtMost(LOOK_NS),
            Ok(_) => {
                shared.announcer.notify();
                Next::Again
            }
            Err(_) => Next::Again,
        }
    }
}
