//! The indexes of a table: their shapes, their hidden tables, and whether they are completely built.

use super::TableStore;
use helenus_model::index::IndexLayout;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

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
