//! A table: its columns in their orders, its options, its identity.

use super::column::{Column, ColumnKind, DroppedColumn};
use super::index::Index;
use super::options::TableOptions;
use crate::cell::ColumnId;
use std::collections::BTreeMap;
use std::sync::Arc;
use uuid::Uuid;

/// Identity of a table, as in `system_schema.tables.id`; never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableId(pub Uuid);

/// A table.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Its identity.
    pub id: TableId,
    /// Keyspace it belongs to.
    pub keyspace: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
    /// Partition key columns by position; at least one.
    pub partition_key: Vec<Column>,
    /// Clustering columns by position.
    pub clustering: Vec<Column>,
    /// Static columns in Cassandra's column order: simple before multi-cell, then by name bytes.
    pub statics: Vec<Column>,
    /// Regular columns in the same order.
    pub regulars: Vec<Column>,
    /// Options.
    pub options: TableOptions,
    /// Columns that were dropped, by name.
    pub dropped: BTreeMap<Arc<str>, DroppedColumn>,
    /// `flags` of `system_schema.tables`: `compound`, `dense`, `counter`, `super`.
    pub flags: Vec<String>,
    /// Secondary indexes, by name.
    pub indexes: BTreeMap<Arc<str>, Arc<Index>>,
    /// The number the next added column gets.
    pub next_column_id: u16,
}

impl Table {
    /// Puts static and regular columns into Cassandra's order and numbers those without a number (`u16::MAX`).
    pub fn arrange(&mut self) {
        let order = |column: &Column| (column.ty.is_multi_cell(), column.name.clone());
        self.statics.sort_by_key(order);
        self.regulars.sort_by_key(order);
        for column in self.statics.iter_mut().chain(self.regulars.iter_mut()) {
            if column.id == Self::UNNUMBERED {
                column.id = ColumnId(self.next_column_id);
                self.next_column_id += 1;
            }
        }
    }

    /// Marks a column that `arrange` is to number.
    pub const UNNUMBERED: ColumnId = ColumnId(u16::MAX);

    /// Every column: partition key, clustering, static, regular.
    pub fn columns(&self) -> impl Iterator<Item = &Column> {
        self.partition_key.iter().chain(&self.clustering).chain(&self.statics).chain(&self.regulars)
    }

    /// A column by name.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns().find(|column| &*column.name == name)
    }

    /// A static or regular column by number.
    pub fn column_by_id(&self, id: ColumnId) -> Option<&Column> {
        self.regulars.iter().chain(&self.statics).find(|column| column.id == id)
    }

    /// The columns of one kind.
    pub fn columns_of(&self, kind: ColumnKind) -> &[Column] {
        match kind {
            ColumnKind::PartitionKey => &self.partition_key,
            ColumnKind::Clustering => &self.clustering,
            ColumnKind::Static => &self.statics,
            ColumnKind::Regular => &self.regulars,
        }
    }

    /// Whether the table holds counters.
    pub fn is_counter(&self) -> bool {
        self.flags.iter().any(|flag| flag == "counter")
    }
}
