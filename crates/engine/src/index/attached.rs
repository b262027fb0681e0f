//! The indexes of a table: their shapes, their hidden tables, and whether they are completely built.

use crate::database::Tables;
use crate::table::TableStore;
use helenus_host::TaskHandle;
use helenus_model::index::IndexLayout;
use helenus_model::schema::{Index, Schema, Table, TableId};
use parking_lot::Mutex;
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
    pub(super) number: u64,
    /// Running changes that add such rows. Each is followed by a rebuild of all indexes.
    pub(super) coming: u32,
}

/// The indexes of one table.
pub(crate) type TableIndexes = Vec<AttachedIndex>;

/// The queue of index builds, and the worker that runs them.
#[derive(Default)]
pub(crate) struct IndexBuilds {
    /// Pairs of a table and an index of it.
    pub(super) queue: Mutex<Vec<(Arc<TableStore>, TableId)>>,
    pub(super) task: Mutex<Option<Arc<dyn TaskHandle>>>,
}

impl IndexBuilds {
    /// Ends the worker and waits for it. `closing` must be set before.
    pub(crate) fn join(&self) {
        let task = self.task.lock().take();
        if let Some(task) = task {
            task.wake();
            task.join();
        }
    }

    /// Wakes the worker to check the queue, or the end of the database.
    pub(crate) fn wake(&self) {
        if let Some(task) = &*self.task.lock() {
            task.wake();
        }
    }
}

/// Every table of a schema that has storage. A hidden table comes with the shape of its index.
pub(crate) fn stored_tables(schema: &Schema) -> impl Iterator<Item = (Arc<Table>, Option<Arc<IndexLayout>>)> {
    let tables = schema.keyspaces.values().flat_map(|keyspace| keyspace.tables.values());
    tables.flat_map(|table| {
        let hidden = shapes_of(table).map(|shape| (shape.table.clone(), Some(shape)));
        std::iter::once((table.clone(), None)).chain(hidden)
    })
}

/// The shapes of a table's indexes.
pub(crate) fn shapes_of(table: &Arc<Table>) -> impl Iterator<Item = Arc<IndexLayout>> {
    let shape = |index: &Arc<Index>| IndexLayout::new(table, index).map(Arc::new);
    table.indexes.values().filter_map(shape)
}

/// Attaches to the tables of a schema the indexes that it defines. Returns the new indexes, which must be built.
///
/// Must be called while the gate is closed, or before there are writes.
pub(crate) fn attach(schema: &Schema, stores: &Tables) -> Vec<(Arc<TableStore>, TableId)> {
    let mut new = Vec::new();
    for table in schema.keyspaces.values().flat_map(|keyspace| keyspace.tables.values()) {
        let Some(base) = stores.get(&table.id) else { continue };
        let present = base.indexes();
        if table.indexes.is_empty() && present.is_empty() {
            continue;
        }
        let attached = shapes_of(table).filter_map(|shape| {
            let store = stores.get(&shape.index.id)?.clone();
            let known = present.iter().find(|index| index.shape.index.id == shape.index.id);
            let state = known.map(|index| index.state.clone()).unwrap_or_else(|| {
                new.push((base.clone(), shape.index.id));
                Arc::default()
            });
            Some(AttachedIndex { shape, store, state })
        });
        let attached: TableIndexes = attached.collect();
        base.attach(attached);
    }
    new
}
