//! `Receiver`: what a term is assigned to, which gives the term its type (Cassandra's `ColumnSpecification`).

use super::call::CallSite;
use helenus_model::schema::{Column, ColumnKind, Table};
use helenus_model::types::CqlType;
use std::sync::{Arc, LazyLock};

/// The receiver of a term: a column, a part of one, or an argument. Cassandra's `ColumnSpecification`.
#[derive(Clone, Debug, PartialEq)]
pub struct Receiver {
    /// Keyspace of the table.
    pub keyspace: Arc<str>,
    /// The table.
    pub table: Arc<str>,
    /// The column's name, or the name in errors and drivers: `value(c)`, `[ttl]`.
    pub name: Arc<str>,
    /// Type of the value.
    pub ty: CqlType,
    /// Position in the partition key, for a marker that is a whole key column.
    pub key_position: Option<u16>,
}

impl Receiver {
    /// The receiver for a column.
    pub fn of_column(table: &Table, column: &Column) -> Receiver {
        let key_position = (column.kind == ColumnKind::PartitionKey)
            .then(|| u16::try_from(column.position).unwrap_or(u16::MAX));
        Receiver { key_position, ..Receiver::named(table, &column.name, column.ty.clone()) }
    }

    /// A receiver that is not a column: `[limit]`, `in(c)`.
    pub fn named(table: &Table, name: &str, ty: CqlType) -> Receiver {
        Receiver {
            keyspace: table.keyspace.clone(),
            table: table.name.clone(),
            name: name.into(),
            ty,
            key_position: None,
        }
    }

    /// An argument of a call, or a part of one, that is only tested; its name is never shown.
    pub(crate) fn of_argument(place: &CallSite, ty: CqlType) -> Receiver {
        static NAMELESS: LazyLock<Arc<str>> = LazyLock::new(|| "".into());
        Receiver {
            keyspace: place.keyspace.clone(),
            table: place.table.clone(),
            name: NAMELESS.clone(),
            ty,
            key_position: None,
        }
    }

    /// A part of another type that is only tested.
    pub(crate) fn tested_part(&self, ty: &CqlType) -> Receiver {
        Receiver { ty: ty.clone(), key_position: None, ..self.clone() }
    }

    /// A part of this receiver with its own name.
    pub fn part(&self, name: String, ty: CqlType) -> Receiver {
        Receiver {
            keyspace: self.keyspace.clone(),
            table: self.table.clone(),
            name: name.into(),
            ty,
            key_position: None,
        }
    }
}
