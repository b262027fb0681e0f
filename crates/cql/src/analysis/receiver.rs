//! `Receiver`: what a term is assigned to, which gives the term its type; and `Markers`: the receiver of each bind
//! marker.
//!
//! The receivers of markers are the metadata that PREPARE sends to a driver (Cassandra's `ColumnSpecification` and
//! `VariableSpecifications`).

use super::term::Term;
use crate::backend::ResultColumn;
use crate::functions::CallSite;
use crate::syntax::ast::{BindMarker, Marker, Pos};
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

/// Collects the receiver of each bind marker of a statement.
#[derive(Clone, Debug)]
pub struct Markers {
    names: Vec<Option<Arc<str>>>,
    specs: Vec<Option<Receiver>>,
    own: Vec<Term>,
}

impl Markers {
    /// For these markers of a statement.
    pub fn new(markers: &[BindMarker<'_>]) -> Markers {
        Markers {
            names: markers
                .iter()
                .map(|marker| marker.name.as_ref().map(|name| name.as_str().into()))
                .collect(),
            specs: vec![None; markers.len()],
            own: Vec::new(),
        }
    }

    /// Adds a marker after those of the statement, for a term that clients do not see.
    pub(crate) fn add_own(&mut self, term: Term, pos: Pos) -> Marker {
        let index = self.specs.len() + self.own.len();
        self.own.push(term);
        Marker { index: u32::try_from(index).unwrap_or(u32::MAX), pos }
    }

    /// The term of a marker that was added by `add_own`.
    pub(super) fn own(&self, marker: Marker) -> Option<&Term> {
        let index = (marker.index as usize).checked_sub(self.specs.len())?;
        self.own.get(index)
    }

    /// Records a marker's receiver. If a marker is recorded twice the last one counts, as in `VariableSpecifications`.
    pub fn add(&mut self, marker: Marker, receiver: &Receiver) {
        if let Some(spec) = self.specs.get_mut(marker.index as usize) {
            *spec = Some(receiver.clone());
        }
    }

    /// The markers' metadata in order, and the indexes of the markers that are the partition key columns, in key order;
    /// empty unless all of them are bound. `key_columns` is the number of partition key columns.
    pub fn finish(self, key_columns: usize) -> (Vec<ResultColumn>, Vec<u16>) {
        let mut keys = vec![None; key_columns];
        let mut columns = Vec::with_capacity(self.specs.len());
        for (index, (name, spec)) in self.names.into_iter().zip(self.specs).enumerate() {
            // Every marker is in some term and so has been recorded; any other is described as a blob.
            let spec = spec.unwrap_or_else(|| Receiver {
                keyspace: "".into(),
                table: "".into(),
                name: "".into(),
                ty: CqlType::Blob,
                key_position: None,
            });
            if let Some(key) = spec.key_position.and_then(|position| keys.get_mut(usize::from(position))) {
                *key = u16::try_from(index).ok();
            }
            let name = name.unwrap_or(spec.name);
            columns.push(ResultColumn { keyspace: spec.keyspace, table: spec.table, name, ty: spec.ty });
        }
        (columns, keys.into_iter().collect::<Option<Vec<u16>>>().unwrap_or_default())
    }
}
