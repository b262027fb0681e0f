//! What administrators ask of compactions: requests, settings that can change at run time, and the list of past
//! compactions. `database::compacting` passes these calls on.

use super::background::Compactions;
use super::choose::CompactionOptions;
use super::history::PastCompaction;
use super::purge::{PurgeOptions, PurgeRule};
use super::request::{CompactionRequest, Scope};
use crate::error::Error;
use helenus_model::schema::{Table, TableId};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Compactions {
    /// The number of compactions that may run at once.
    pub fn threads(&self) -> usize {
        self.settings.threads.max(1)
    }

    /// Bytes per second that all compactions read together; 0 for no limit.
    pub fn bytes_per_s(&self) -> u64 {
        self.throttle.bytes_per_s()
    }

    /// Sets this rate until the next start, for running compactions too.
    pub fn set_bytes_per_s(&self, bytes_per_s: u64) {
        self.throttle.set(bytes_per_s);
        self.storage.compactors.wake();
    }

    /// Turns automatic compaction of tables and their indexes on or off until the next start.
    pub fn set_automatic(&self, tables: &[TableId], automatic: bool) {
        for store in tables.iter().filter_map(|id| self.storage.table(*id)) {
            store.compaction.rest(!automatic);
            store.indexes().iter().for_each(|index| index.store.compaction.rest(!automatic));
        }
        self.storage.compactors.wake();
    }

    /// Whether a table is compacted automatically.
    pub fn is_automatic(&self, table: TableId) -> bool {
        let Some(store) = self.storage.table(table) else { return false };
        let enabled = CompactionOptions::of(&store.table().options.compaction).enabled;
        self.settings.automatic && enabled && !store.compaction.is_automatic_off()
    }

    /// The last thousand finished compactions, the latest first.
    pub fn past(&self) -> Vec<PastCompaction> {
        self.past.list()
    }

    /// Obeys `gc_grace_seconds` from now on, or goes back to the settings; for compactions that begin after this.
    pub fn keep_tombstones(&self, keeps: bool) {
        self.keeps_tombstones.store(keeps, Ordering::Release);
    }

    /// How long tombstones are kept now.
    pub(super) fn purge_options(&self) -> PurgeOptions {
        let purge = self.settings.purge;
        let keeps = self.keeps_tombstones.load(Ordering::Acquire);
        PurgeOptions { obey_gc_grace: purge.obey_gc_grace || keeps, ..purge }
    }

    /// Tombstones of a table with a local deletion time before this may be purged, seconds.
    pub(crate) fn gc_before_s(&self, table: &Table) -> i64 {
        PurgeRule::new(self.purge_options(), table, self.storage.timestamps.purge_now_s(), false).gc_before_s
    }

    /// Requests a compaction of all SSTables of these tables.
    pub(crate) fn request_all(&self, tables: Vec<TableId>) -> Arc<CompactionRequest> {
        self.request(tables, Scope::Everything)
    }

    /// Requests a rewrite of each SSTable of these tables that has an older format version; with `current` of all.
    pub(crate) fn request_rewrite(&self, tables: Vec<TableId>, current: bool) -> Arc<CompactionRequest> {
        self.request(tables, Scope::Each { current })
    }

    /// Requests a compaction of the SSTables that may contain these partition keys.
    pub(crate) fn request_keys(
        &self,
        tables: Vec<TableId>,
        keys: BTreeSet<Vec<u8>>,
    ) -> Arc<CompactionRequest> {
        self.request(tables, Scope::OfKeys(Arc::new(keys)))
    }

    fn request(&self, tables: Vec<TableId>, scope: Scope) -> Arc<CompactionRequest> {
        let request = Arc::new(CompactionRequest::new(tables, scope, self.storage.host.tasks.clone()));
        self.requests.lock().push_back(request.clone());
        self.storage.compactors.wake();
        // A closing worker ends the requests in the queue, but it may have done so before this one was added.
        if self.storage.closing.load(Ordering::Acquire) {
            request.end(Err(Error::Closed.to_string()));
        }
        request
    }
}
