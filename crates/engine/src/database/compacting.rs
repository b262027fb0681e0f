//! Compactions for administrators: requests, and settings that can change at run time.

use super::shared::Database;
use crate::compaction::{CompactionRequest, PastCompaction};
use helenus_model::schema::TableId;
use std::collections::BTreeSet;
use std::sync::Arc;

impl Database {
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

    /// The number of compactions that may run at once.
    pub fn compactors(&self) -> usize {
        self.shared.compactions.threads()
    }

    /// Bytes per second that all compactions read together; 0 for no limit.
    pub fn compaction_bytes_per_s(&self) -> u64 {
        self.shared.compactions.bytes_per_s()
    }

    /// Sets this rate until the next start, for running compactions too.
    pub fn set_compaction_bytes_per_s(&self, bytes_per_s: u64) {
        self.shared.compactions.set_bytes_per_s(bytes_per_s);
    }

    /// Turns automatic compaction of tables and their indexes on or off until the next start. Requested compactions
    /// always run.
    pub fn set_automatic_compaction(&self, tables: &[TableId], automatic: bool) {
        self.shared.compactions.set_automatic(tables, automatic);
    }

    /// Whether a table is compacted automatically: the server's settings, the table's options and the administrator
    /// must all allow it.
    pub fn is_compacted_automatically(&self, table: TableId) -> bool {
        self.shared.compactions.is_automatic(table)
    }

    /// Keeps tombstones for the `gc_grace_seconds` of their tables from now on, as a node of a cluster does, or goes back to
    /// the settings. Compactions that have begun are not affected.
    pub fn keep_tombstones(&self, keeps: bool) {
        self.shared.compactions.keep_tombstones(keeps);
    }

    /// The last thousand finished compactions, the latest first.
    pub fn past_compactions(&self) -> Vec<PastCompaction> {
        self.shared.compactions.past()
    }
}
