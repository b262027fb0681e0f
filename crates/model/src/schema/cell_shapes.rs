//! The shapes of a table's cells and clustering values, by column number, for checking packed rows.

use super::table::Table;
use crate::cell::ColumnId;
use crate::types::CqlType;
use std::sync::OnceLock;

/// The shape of the cells of one column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellShape {
    /// Whether the cells belong to the static row.
    pub is_static: bool,
    /// Whether each cell has a path; a row may then have any number of them.
    pub is_multi_cell: bool,
    /// Length in bytes of a value that is not empty, if all values have the same length.
    pub fixed_bytes: Option<u32>,
}

/// The shape of the values of one clustering column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusteringShape {
    /// Length in bytes of a value that is not empty, if all values have the same length.
    pub fixed_bytes: Option<u32>,
    /// Whether every value of the right length has an ordered encoding. Some types have values without one.
    pub is_always_ordered: bool,
}

/// The shapes of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellShapes {
    columns: Vec<Option<CellShape>>,
    /// The shapes of the clustering columns, by position.
    pub clustering: Vec<ClusteringShape>,
}

impl CellShapes {
    /// The shapes of a table's current columns.
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

    /// The shape of a column; `None` if the table has no static or regular column of this number.
    #[inline(always)]
    pub fn column(&self, column: ColumnId) -> Option<CellShape> {
        self.columns.get(usize::from(column.0)).copied().flatten()
    }
}

fn fixed_bytes(ty: &CqlType) -> Option<u32> {
    ty.fixed_length().and_then(|length| u32::try_from(length).ok())
}

/// As above for a clustering value. Some types have one length although files store them as variable.
fn ordered_bytes(ty: &CqlType) -> Option<u32> {
    match ty {
        CqlType::TinyInt => Some(1),
        CqlType::SmallInt => Some(2),
        CqlType::Date => Some(4),
        CqlType::Time => Some(8),
        other => fixed_bytes(other),
    }
}

/// Whether the encoding in `byte_comparable` cannot fail once the length is right.
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

/// Lazily computed shapes of the table that owns this. A clone is empty, because the cloned table's columns may be
/// changed.
#[derive(Debug, Default)]
pub struct LazyCellShapes(OnceLock<CellShapes>);

impl LazyCellShapes {
    /// The shapes of `table`, which owns this.
    #[inline(always)]
    pub(super) fn of(&self, table: &Table) -> &CellShapes {
        self.0.get_or_init(|| CellShapes::of(table))
    }
}

impl Clone for LazyCellShapes {
    fn clone(&self) -> LazyCellShapes {
        LazyCellShapes::default()
    }
}

impl PartialEq for LazyCellShapes {
    /// The shapes follow from the table's columns.
    fn eq(&self, _other: &LazyCellShapes) -> bool {
        true
    }
}
