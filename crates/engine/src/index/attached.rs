//! Attaches indexes to their tables.

use crate::table::{AttachedIndex, TableIndexes, TableStore, Tables};
use helenus_model::index::IndexLayout;
use helenus_model::schema::{Index, Schema, Table, TableId};
use std::sync::Arc;

/// A table that has storage. A hidden table comes with the shape of its index.
type Stored = (Arc<Table>, Option<Arc<IndexLayout>>);

/// Every table of a schema that has storage.
pub(crate) fn stored_tables(schema: &Schema) -> impl Iterator<Item = Stored> {
    tables_of(schema).flat_map(stored_of)
}

/// A table and the hidden tables of its indexes.
pub(crate) fn stored_of(table: &Arc<Table>) -> impl Iterator<Item = Stored> {
    let hidden = shapes_of(table).map(|shape| (shape.table.clone(), Some(shape)));
    std::iter::once((table.clone(), None)).chain(hidden)
}

/// The tables of a schema, without hidden ones.
pub(crate) fn tables_of(schema: &Schema) -> impl Iterator<Item = &Arc<Table>> {
    schema.keyspaces.values().flat_map(|keyspace| keyspace.tables.values())
}

/// The shapes of a table's indexes.
pub(crate) fn shapes_of(table: &Arc<Table>) -> impl Iterator<Item = Arc<IndexLayout>> {
    let shape = |index: &Arc<Index>| IndexLayout::new(table, index).map(Arc::new);
    table.indexes.values().filter_map(shape)
}

/// Attaches to new or changed tables the indexes that they define. Returns the new indexes, which must be built.
///
/// Must be called while the gate is closed, or before there are writes.
pub(crate) fn attach<'t>(
    tables: impl IntoIterator<Item = &'t Arc<Table>>,
    stores: &Tables,
) -> Vec<(Arc<TableStore>, TableId)> {
    let mut new = Vec::new();
    for table in tables {
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
