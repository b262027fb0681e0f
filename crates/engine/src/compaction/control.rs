//! The administrator's functions: settings of compactions that can change at run time, and the list of past
//! compactions.

use super::history::PastCompaction;
use crate::database::Database;
use helenus_model::schema::TableId;

impl Database {
    /// The number of compactions that may run at once.
    pub fn compactors(&self) -> usize {
        self.shared.options.compaction.threads.max(1)
    }

    /// Bytes per second that all compactions read together; 0 for no limit.
    pub fn compaction_bytes_per_s(&self) -> u64 {
        self.shared.compactions.throttle.bytes_per_s()
    }

    /// Sets this rate until the next start, for running compactions too.
    pub fn set_compaction_bytes_per_s(&self, bytes_per_s: u64) {
        self.shared.compactions.throttle.set(bytes_per_s);
        self.shared.compactions.wake();
    }

    /// Turns automatic compaction of tables and their indexes on or off until the next start. Requested compactions
    /// always run.
    pub fn set_automatic_compaction(&self, tables: &[TableId], automatic: bool) {
        for store in tables.iter().filter_map(|id| self.shared.table(*id)) {
            store.compaction.rest(!automatic);
            store.indexes().iter().for_each(|index| index.store.compaction.rest(!automatic));
        }
        self.shared.compactions.wake();
    }

    /// Whether a table is compacted automatically: the server's settings, the table's options and the administrator
    /// must all allow it.
    pub fn is_compacted_automatically(&self, table: TableId) -> bool {
        let Some(store) = self.shared.table(table) else { return false };
        let enabled = super::choose::CompactionOptions::of(&store.table().options.compaction).enabled;
        self.shared.options.compaction.automatic && enabled && !store.compaction.is_automatic_off()
    }

    /// The last thousand finished compactions, the latest first.
    pub fn past_compactions(&self) -> Vec<PastCompaction> {
        self.shared.compactions.past.list()
    }
}
