//! What the cells and clustering values of a table look like, by column number: what a packed row is checked against.

use super::table::Table;
use crate::cell::ColumnId;
use crate::types::CqlType;
use std::sync::OnceLock;

/// What cells of one column look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellShape {
    /// Whether the cells belong to the static row.
    pub is_static: bool,
    /// Whether each cell has a path, and a row has any number of them.
    pub is_multi_cell: bool,
    /// Bytes of a value that is not empty, if all have the same number.
    pub fixed_bytes: Option<u32>,
}

/// What the values of one clustering column look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusteringShape {
    /// Bytes of a value that is not empty, if all have the same number.
    pub fixed_bytes: Option<u32>,
    /// Whether any value of the right length has its place in the order of rows. Of other types some have none.
    pub is_always_ordered: bool,
}

/// The shapes of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellShapes {
    columns: Vec<Option<CellShape>>,
    /// Of the clustering columns, by position.
    pub clustering: Vec<ClusteringShape>,
}

impl CellShapes {
    /// Those of a table's columns as they are now.
    pub fn of(table: &Table) -> CellShapes {
        let all = table.statics.iter().map(|column| (column, true));
        let all = all.chain(table.regulars.iter().map(|column| (column, false)));
        let mut columns: Vec<Option<CellShape>> = Vec::new();
        for (column, is_static) in all {
            let at = usize::from(column.id.0);
            if columns.len() <= at {
                columns.resize(at + 1, None);
            }
            let is_multi_cell = column.ty.is_multi_cell();
            let fixed_bytes = if is_multi_cell { None } else { fixed_bytes(&column.ty) };
            columns[at] = Some(CellShape { is_static, is_multi_cell, fixed_bytes });
        }
        let clustering = table.clustering.iter().map(|column| ClusteringShape {
            fixed_bytes: ordered_bytes(&column.ty),
            is_always_ordered: is_always_ordered(&column.ty),
        });
        CellShapes { columns, clustering: clustering.collect() }
    }

    /// That of a column; `None` if the table has no static or regular column of this number.
    #[inline(always)]
    pub fn column(&self, column: ColumnId) -> Option<CellShape> {
        self.columns.get(usize::from(column.0)).copied().flatten()
    }
}

fn fixed_bytes(ty: &CqlType) -> Option<u32> {
    ty.fixed_length().and_then(|length| u32::try_from(length).ok())
}

/// The same for a clustering value. Values of some types have one length, though a file stores them as if they had any.
fn ordered_bytes(ty: &CqlType) -> Option<u32> {
    match ty {
        CqlType::TinyInt => Some(1),
        CqlType::SmallInt => Some(2),
        CqlType::Date => Some(4),
        CqlType::Time => Some(8),
        other => fixed_bytes(other),
    }
}

/// Types whose encoding in `byte_comparable` cannot fail once the length is right.
fn is_always_ordered(ty: &CqlType) -> bool {
    match ty {
        CqlType::Ascii | CqlType::Text | CqlType::Blob | CqlType::Inet | CqlType::Duration => true,
        CqlType::Boolean | CqlType::TinyInt | CqlType::SmallInt | CqlType::Int | CqlType::BigInt => true,
        CqlType::Float | CqlType::Double | CqlType::Varint | CqlType::Empty => true,
        CqlType::Date | CqlType::Time | CqlType::Timestamp | CqlType::Uuid | CqlType::TimeUuid => true,
        CqlType::Counter | CqlType::Decimal | CqlType::Custom(_) => false,
        CqlType::List { .. } | CqlType::Set { .. } | CqlType::Map { .. } => false,
        CqlType::Tuple(_) | CqlType::Udt(_) | CqlType::Vector { .. } => false,
    }
}

/// The shapes of the table that holds it, made when they are first asked for. A copy has none yet: its columns may be changed.
#[derive(Debug, Default)]
pub struct CachedShapes(OnceLock<CellShapes>);

impl CachedShapes {
    /// The shapes of `table`, which holds this.
    #[inline(always)]
    pub(super) fn of(&self, table: &Table) -> &CellShapes {
        self.0.get_or_init(|| CellShapes::of(table))
    }
}

impl Clone for CachedShapes {
    fn clone(&self) -> CachedShapes {
        CachedShapes::default()
    }
}

impl PartialEq for CachedShapes {
    /// They follow from the table's columns.
    fn eq(&self, _other: &CachedShapes) -> bool {
        true
    }
}
