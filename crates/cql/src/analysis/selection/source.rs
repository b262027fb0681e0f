//! The location of a column's value in a row.

use helenus_model::cell::ColumnId;
use helenus_model::schema::{Column, ColumnKind};
use helenus_model::types::CqlType;

/// The location of a column's value.
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
        /// How its cells are combined to a value.
        shape: Shape,
    },
}

/// How the cells of a column are combined to the value for clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// One cell; its value is used directly.
    Simple,
    /// One cell with a counter context.
    Counter,
    /// The values of the cells.
    List,
    /// The paths of the cells.
    Set,
    /// Paths and values.
    Map,
    /// The fields by index; the number of fields of the type.
    Udt(usize),
}

impl Source {
    /// The location of a column.
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
