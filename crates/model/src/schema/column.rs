//! A column of a table.

use super::Table;
use crate::cell::ColumnId;
use crate::types::CqlType;
use std::sync::Arc;

/// The kind of a column: the part of a row that it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ColumnKind {
    /// Part of the partition key.
    PartitionKey,
    /// Part of the clustering.
    Clustering,
    /// One value for each partition.
    Static,
    /// One value for each row.
    Regular,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Name, unquoted, as stored.
    pub name: Arc<str>,
    /// Its kind.
    pub kind: ColumnKind,
    /// Position within the partition key or the clustering; 0 for others.
    pub position: usize,
    /// Type of its values.
    pub ty: CqlType,
    /// Whether a clustering column is in descending order.
    pub reversed: bool,
    /// Number of a static or regular column; unused for key columns.
    pub id: ColumnId,
}

impl Column {
    /// A column in ascending order, without a number, at the first position of its kind.
    pub fn new(name: &str, kind: ColumnKind, ty: CqlType) -> Column {
        Column { name: name.into(), kind, position: 0, ty, reversed: false, id: Table::UNNUMBERED }
    }
}

/// A dropped column: cells written before the drop are not seen, even if a column of that name is added again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DroppedColumn {
    /// Its name.
    pub name: Arc<str>,
    /// Its type at the drop, for reading files that hold it.
    pub ty: CqlType,
    /// Static or regular.
    pub kind: ColumnKind,
    /// Time of the drop, microseconds: cells at or before it are ignored.
    pub dropped_us: i64,
}
