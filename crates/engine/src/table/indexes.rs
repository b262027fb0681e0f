//! The indexes of a table: their shapes, their hidden tables, and whether they are completely built.

use super::TableStore;
use helenus_model::index::IndexLayout;
use helenus_model::schema::TableId;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

/// An index in the storage of its table.
#[derive(Clone)]
pub(crate) struct AttachedIndex {
    pub(crate) shape: Arc<IndexLayout>,
    /// The hidden table.
    pub(crate) store: Arc<TableStore>,
    pub(crate) state: Arc<IndexState>,
}

/// The state of an index that schema changes do not reset.
#[derive(Default)]
pub(crate) struct IndexState {
    /// Whether the index has an entry for every row, and may be searched.
    pub(crate) is_built: AtomicBool,
    /// Estimated partitions that the running build must read, and those that it has read.
    pub(crate) partitions: AtomicU64,
    pub(crate) partitions_done: AtomicU64,
    /// Estimated uncompressed bytes of the table at the start of the build.
    pub(crate) bytes: AtomicU64,
    /// Entries that the build has made.
    pub(crate) entries: AtomicU64,
    /// The removals of entries that searches are about to make.
    pub(crate) removals: PendingRemovals,
}

/// The greatest timestamp of the removals that searches have announced and not finished.
///
/// A search looks for rows of its entries in the table, and then removes the entries without one. A write in between
/// must give its entry a later timestamp than the removal, although the removal is in no memtable yet.
pub(crate) struct PendingRemovals {
    timestamp_us: AtomicI64,
    searches: Mutex<u32>,
}

impl Default for PendingRemovals {
    fn default() -> PendingRemovals {
        PendingRemovals { timestamp_us: AtomicI64::new(i64::MIN), searches: Mutex::default() }
    }
}

impl PendingRemovals {
    /// Announces removals up to a timestamp, until the guard is dropped. Writes that enter the gate from now on see it.
    pub(crate) fn announce(&self, timestamp_us: i64) -> Announced<'_> {
        let mut searches = self.searches.lock();
        *searches += 1;
        self.timestamp_us.fetch_max(timestamp_us, Ordering::AcqRel);
        Announced(self)
    }

    /// The greatest announced timestamp; `i64::MIN` if there is none. Must be loaded before the hidden table's view:
    /// what is no longer announced is in a memtable by then.
    pub(crate) fn timestamp_us(&self) -> i64 {
        self.timestamp_us.load(Ordering::Acquire)
    }
}

/// An announcement of removals.
#[must_use = "an announcement that is dropped at once announces nothing"]
pub(crate) struct Announced<'a>(&'a PendingRemovals);

impl Drop for Announced<'_> {
    fn drop(&mut self) {
        let mut searches = self.0.searches.lock();
        *searches -= 1;
        if *searches == 0 {
            self.0.timestamp_us.store(i64::MIN, Ordering::Release);
        }
    }
}

impl TableStore {
    /// The name of one of its indexes, for messages.
    pub(crate) fn index_name(&self, id: TableId) -> String {
        let indexes = self.indexes();
        let named = indexes.iter().find(|index| index.shape.index.id == id);
        named.map_or_else(|| id.0.to_string(), |index| index.shape.index.name.to_string())
    }
}

impl AttachedIndex {
    pub(crate) fn is_built(&self) -> bool {
        self.state.is_built.load(Ordering::Acquire)
    }
}

/// Coordinates the builds of a table's indexes with imports and requested rebuilds. Its lock is held while an index is
/// marked as built, so that no such change begins in between.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BuildGuard {
    /// Increases when rows are added that a running build may have passed: such a build begins anew.
    pub(crate) number: u64,
    /// Running changes that add such rows. Each is followed by a rebuild of all indexes.
    pub(crate) coming: u32,
}

/// The indexes of one table.
pub(crate) type TableIndexes = Vec<AttachedIndex>;
