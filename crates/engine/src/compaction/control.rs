//! What an administrator may change of compactions while they run, and ask of those that are over.

use super::history::PastCompaction;
use crate::database::Database;
use helenus_model::schema::TableId;

impl Database {
    /// Compactions that may run at a time.
    pub fn compactors(&self) -> usize {
        self.shared.options.compaction.threads.max(1)
    }

    /// Bytes a second that all compactions read together; 0 for no bound.
    pub fn compaction_bytes_per_s(&self) -> u64 {
        self.shared.compactions.throttle.bytes_per_s()
    }

    /// Sets it, for those under way too; until the next start.
    pub fn set_compaction_bytes_per_s(&self, bytes_per_s: u64) {
        self.shared.compactions.throttle.set(bytes_per_s);
        self.shared.compactions.wake();
    }

    /// Has tables and their indexes compacted by themselves, or only when asked for; until the next start.
    pub fn set_automatic_compaction(&self, tables: &[TableId], automatic: bool) {
        for store in tables.iter().filter_map(|id| self.shared.table(*id)) {
            store.compaction.rest(!automatic);
            store.indexes().iter().for_each(|index| index.store.compaction.rest(!automatic));
        }
        self.shared.compactions.wake();
    }

    /// Whether a table is compacted by itself: the server, its options and the administrator all say so.
    pub fn is_compacted_automatically(&self, table: TableId) -> bool {
        let Some(store) = self.shared.table(table) else { return false };
        let enabled = super::choose::CompactionOptions::of(&store.table().options.compaction).enabled;
        self.shared.options.compaction.automatic && enabled && !store.compaction.is_resting()
    }

    /// Compactions that are over, the last first; a thousand of them.
    pub fn past_compactions(&self) -> Vec<PastCompaction> {
        self.shared.compactions.past.list()
    }
}
