//! Attaches indexes to their tables.

use crate::table::{AttachedIndex, TableIndexes, TableStore, Tables};
use helenus_model::index::IndexLayout;
use helenus_model::schema::{Index, Schema, Table, TableId};
use std::sync::Arc;

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
