//! A table: its columns and their orders, its options, its identity.

use super::cell_shapes::{CellShapes, LazyCellShapes};
use super::column::{Column, ColumnKind, DroppedColumn};
use super::column_index::ColumnIndex;
use super::column_order;
use super::index::Index;
use super::mask::ColumnMask;
use super::options::TableOptions;
use crate::cell::ColumnId;
use crate::types::CqlType;
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
    /// Static columns in storage order (`column_order`): single-cell ones first, then by name.
    pub statics: Vec<Column>,
    /// Regular columns in storage order.
    pub regulars: Vec<Column>,
    /// Options.
    pub options: TableOptions,
    /// Dropped columns by name.
    pub dropped: BTreeMap<Arc<str>, DroppedColumn>,
    /// `flags` of `system_schema.tables`: `compound`, `dense`, `counter`, `super`.
    pub flags: Vec<String>,
    /// Secondary indexes, by name.
    pub indexes: BTreeMap<Arc<str>, Arc<Index>>,
    /// Masks by column name.
    pub masks: BTreeMap<Arc<str>, ColumnMask>,
    /// The number of the next added column.
    pub next_column_id: u16,
    /// Cached result of `cell_shapes`.
    pub shapes: LazyCellShapes,
    /// Positions of the columns, for wide tables.
    pub column_index: ColumnIndex,
}

/// Up to this many columns are searched linearly.
const LINEAR_SEARCH_COLUMNS_MAX: usize = 32;

impl Table {
    /// A table with these columns, which get their key positions in the given order. It has default options and
    /// compound names, and no indexes, masks or dropped columns.
    pub fn new(
        (keyspace, name): (&str, &str),
        id: TableId,
        columns: impl IntoIterator<Item = Column>,
    ) -> Table {
        let mut table = Table {
            id,
            keyspace: keyspace.into(),
            name: name.into(),
            partition_key: Vec::new(),
            clustering: Vec::new(),
            statics: Vec::new(),
            regulars: Vec::new(),
            options: TableOptions::default(),
            dropped: BTreeMap::new(),
            flags: vec!["compound".into()],
            indexes: BTreeMap::new(),
            masks: BTreeMap::new(),
            next_column_id: 0,
            shapes: LazyCellShapes::default(),
            column_index: ColumnIndex::default(),
        };
        for column in columns {
            let (of_kind, is_key) = match column.kind {
                ColumnKind::PartitionKey => (&mut table.partition_key, true),
                ColumnKind::Clustering => (&mut table.clustering, true),
                ColumnKind::Static => (&mut table.statics, false),
                ColumnKind::Regular => (&mut table.regulars, false),
            };
            let position = if is_key { of_kind.len() } else { 0 };
            of_kind.push(Column { position, ..column });
        }
        table.arrange();
        table
    }

    /// The shapes of the table's cells and clustering values. Must not be called before its columns are final.
    #[inline(always)]
    pub fn cell_shapes(&self) -> &CellShapes {
        self.shapes.of(self)
    }

    /// Sorts static and regular columns into Cassandra's order and numbers those with `UNNUMBERED`.
    pub fn arrange(&mut self) {
        self.shapes = LazyCellShapes::default();
        self.statics.sort_by(column_order::storage_order);
        self.regulars.sort_by(column_order::storage_order);
        for column in self.statics.iter_mut().chain(self.regulars.iter_mut()) {
            if column.id == Self::UNNUMBERED {
                column.id = ColumnId(self.next_column_id);
                self.next_column_id += 1;
            }
        }
    }

    /// Maximum number of columns over a table's lifetime: each has its own number, and that of a dropped column is not
    /// reused.
    pub const COLUMNS_MAX: usize = u16::MAX as usize;

    /// Number of a column that `arrange` has yet to number.
    pub const UNNUMBERED: ColumnId = ColumnId(u16::MAX);

    /// Every column: partition key, clustering, static, regular.
    pub fn columns(&self) -> impl Iterator<Item = &Column> {
        self.partition_key.iter().chain(&self.clustering).chain(&self.statics).chain(&self.regulars)
    }

    /// The columns of `SELECT *`: partition key, clustering, static and regular ones, the last two by name, whether
    /// single-cell or multi-cell; without hidden columns (`allColumnsInSelectOrder`).
    pub fn columns_in_select_order(&self) -> impl Iterator<Item = &Column> {
        let of_rows =
            column_order::select_order(&self.statics).chain(column_order::select_order(&self.regulars));
        let all = self.partition_key.iter().chain(&self.clustering).chain(of_rows);
        all.filter(|column| !self.is_hidden(column))
    }

    /// A column by name.
    pub fn column(&self, name: &str) -> Option<&Column> {
        let count =
            self.partition_key.len() + self.clustering.len() + self.statics.len() + self.regulars.len();
        if count > LINEAR_SEARCH_COLUMNS_MAX {
            let kinds =
                [ColumnKind::PartitionKey, ColumnKind::Clustering, ColumnKind::Static, ColumnKind::Regular];
            let columns = kinds.into_iter().map(|kind| (kind, self.columns_of(kind)));
            let found = self.column_index.position_by_name(name, columns);
            let column = found.and_then(|(kind, at)| self.columns_of(kind).get(at));
            if let Some(column) = column.filter(|column| &*column.name == name) {
                return Some(column);
            }
        }
        self.columns().find(|column| &*column.name == name)
    }

    /// A column of one kind by name. In tables made from the header of an SSTable, columns of several kinds may have one
    /// name.
    pub fn column_of(&self, kind: ColumnKind, name: &str) -> Option<&Column> {
        let named = self.column(name).filter(|column| column.kind == kind);
        named.or_else(|| self.columns_of(kind).iter().find(|column| &*column.name == name))
    }

    /// A static or regular column by number.
    pub fn column_by_id(&self, id: ColumnId) -> Option<&Column> {
        if self.statics.len() + self.regulars.len() > LINEAR_SEARCH_COLUMNS_MAX {
            let found = self.column_index.position_by_id(id, (&self.statics, &self.regulars));
            let column = found.and_then(|(kind, at)| self.columns_of(kind).get(at));
            if let Some(column) = column.filter(|column| column.id == id) {
                return Some(column);
            }
        }
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

    /// Whether the table has COMPACT STORAGE: a row has one value and no marker (`TableMetadata.isCompactTable`).
    pub fn is_compact(&self) -> bool {
        self.is_super() || self.has_flag("dense") || !self.has_flag("compound")
    }

    /// Whether the table is compact without clustering: its columns are static, and the columns that Cassandra adds for
    /// undeclared names are hidden.
    pub fn is_static_compact(&self) -> bool {
        self.is_compact() && !self.is_super() && !self.has_flag("dense")
    }

    /// Whether it is a super column family, in its stored form or as statements see it.
    pub fn is_super(&self) -> bool {
        self.has_flag("super")
    }

    /// The regular column of a compact table that holds undeclared values: the only regular column, or in a super
    /// column family with declared columns the one with the empty name.
    pub fn compact_value(&self) -> Option<&Column> {
        let mut regulars = self.regulars.iter().filter(|_| self.is_compact());
        match self.is_super() && self.regulars.len() > 1 {
            true => regulars.find(|column| column.name.is_empty()),
            false => regulars.next(),
        }
    }

    /// Whether a column is hidden from statements: a compact table's columns that were not declared
    /// (`CompactTableMetadata.hiddenColumns`).
    pub fn is_hidden(&self, column: &Column) -> bool {
        match column.kind {
            ColumnKind::PartitionKey | ColumnKind::Static => false,
            ColumnKind::Clustering => self.is_static_compact(),
            ColumnKind::Regular => {
                self.is_static_compact() || column.ty == CqlType::Empty && self.is_compact()
            }
        }
    }

    fn has_flag(&self, flag: &str) -> bool {
        self.flags.iter().any(|found| found == flag)
    }

    /// Whether the table holds counters.
    pub fn is_counter(&self) -> bool {
        self.has_flag("counter")
    }
}
