//! Where a column's value stands in a row.

use helenus_model::cell::ColumnId;
use helenus_model::schema::{Column, ColumnKind};
use helenus_model::types::CqlType;

/// Where a column's value is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Source {
    /// In the partition key, at this position.
    Key(usize),
    /// In the clustering, at this position.
    Clustering(usize),
    /// In cells.
    Cell {
        /// The column's number.
        id: ColumnId,
        /// In the static row.
        is_static: bool,
        /// How its cells make a value.
        shape: Shape,
    },
}

/// How the cells of a column make the value that clients get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// One cell, its value as it is.
    Simple,
    /// One cell with a counter context.
    Counter,
    /// The values of the cells.
    List,
    /// The paths of the cells.
    Set,
    /// Paths and values.
    Map,
    /// Fields by number; how many the type has.
    Udt(usize),
}

impl Source {
    /// Where a column is.
    pub(crate) fn of(column: &Column) -> Source {
        match column.kind {
            ColumnKind::PartitionKey => Source::Key(column.position),
            ColumnKind::Clustering => Source::Clustering(column.position),
            kind => Source::Cell {
                id: column.id,
                is_static: kind == ColumnKind::Static,
                shape: match &column.ty {
                    CqlType::Counter => Shape::Counter,
                    CqlType::List { frozen: false, .. } => Shape::List,
                    CqlType::Set { frozen: false, .. } => Shape::Set,
                    CqlType::Map { frozen: false, .. } => Shape::Map,
                    CqlType::Udt(udt) if !udt.frozen => Shape::Udt(udt.fields.len()),
                    _ => Shape::Simple,
                },
            },
        }
    }

    /// Whether it is part of the primary key.
    pub(crate) fn is_of_key(&self) -> bool {
        matches!(self, Source::Key(_) | Source::Clustering(_))
    }

    /// Whether it is in the static row.
    pub(crate) fn is_static(&self) -> bool {
        matches!(self, Source::Cell { is_static: true, .. })
    }
}
