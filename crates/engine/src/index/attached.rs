//! What a table has of indexes: their shapes, where their entries are, and whether they are whole.

use crate::database::Tables;
use crate::table::TableStore;
use helenus_host::TaskHandle;
use helenus_model::index::IndexShape;
use helenus_model::schema::{Index, Schema, Table, TableId};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// An index of a table, as the table's storage has it.
#[derive(Clone)]
pub(crate) struct AttachedIndex {
    pub(crate) shape: Arc<IndexShape>,
    /// The hidden table.
    pub(crate) store: Arc<TableStore>,
    pub(crate) state: Arc<IndexState>,
}

/// What outlasts changes of the schema.
#[derive(Default)]
pub(crate) struct IndexState {
    /// It has an entry for everything, and may be searched.
    pub(crate) is_built: AtomicBool,
    /// Partitions that a build under way has to look at, about, and has looked at.
    pub(crate) partitions: AtomicU64,
    pub(crate) partitions_done: AtomicU64,
    /// Bytes of the table when it began, before compression, about.
    pub(crate) bytes: AtomicU64,
    /// Entries that it has made.
    pub(crate) entries: AtomicU64,
}

impl AttachedIndex {
    pub(crate) fn is_built(&self) -> bool {
        self.state.is_built.load(Ordering::Acquire)
    }
}

/// Builds of the indexes of one table. Held while one of them is said to be whole, which no change may come between.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Passes {
    /// Goes up whenever rows come that a build under way may have gone past: such a build begins anew.
    pub(super) number: u64,
    /// Changes under way that bring such rows, a build of everything following each.
    pub(super) coming: u32,
}

/// The indexes of one table.
pub(crate) type Attached = Vec<AttachedIndex>;

/// Indexes that are to be filled, and the worker that does it.
#[derive(Default)]
pub(crate) struct IndexBuilds {
    /// The tables of the indexes, and the indexes.
    pub(super) queue: Mutex<Vec<(Arc<TableStore>, TableId)>>,
    pub(super) task: Mutex<Option<Arc<dyn TaskHandle>>>,
}

impl IndexBuilds {
    /// Ends the worker and waits for it. `closing` is set by then.
    pub(crate) fn join(&self) {
        let task = self.task.lock().take();
        if let Some(task) = task {
            task.wake();
            task.join();
        }
    }

    /// Makes the worker look at the queue, or at the end of the database.
    pub(crate) fn wake(&self) {
        if let Some(task) = &*self.task.lock() {
            task.wake();
        }
    }
}

/// Every table of a schema that has storage, with the table and index that a hidden one is of.
pub(crate) fn stored_tables(schema: &Schema) -> impl Iterator<Item = (Arc<Table>, Option<Arc<IndexShape>>)> {
    let tables = schema.keyspaces.values().flat_map(|keyspace| keyspace.tables.values());
    tables.flat_map(|table| {
        let hidden = shapes_of(table).map(|shape| (shape.table.clone(), Some(shape)));
        std::iter::once((table.clone(), None)).chain(hidden)
    })
}

/// The shapes of a table's indexes.
pub(crate) fn shapes_of(table: &Arc<Table>) -> impl Iterator<Item = Arc<IndexShape>> {
    let shape = |index: &Arc<Index>| IndexShape::new(table, index).map(Arc::new);
    table.indexes.values().filter_map(shape)
}

/// Gives the tables of a schema the indexes that it says they have. Returns those that are new: to be built.
///
/// To be called with the gate's exclusive side, or before there are writes.
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
        let attached: Attached = attached.collect();
        base.attach(attached);
    }
    new
}
