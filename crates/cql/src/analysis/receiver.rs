//! What a term is for, and the description of bind markers.

use super::term::Term;
use crate::backend::ResultColumn;
use crate::functions::CallPlace;
use crate::syntax::ast::{BindMarker, Marker, Pos};
use helenus_model::schema::{Column, ColumnKind, Table};
use helenus_model::types::CqlType;
use std::sync::{Arc, LazyLock};

/// What a term is for: a column, a part of one, an argument. Cassandra's `ColumnSpecification`.
#[derive(Clone, Debug, PartialEq)]
pub struct Receiver {
    /// Keyspace of the table.
    pub keyspace: Arc<str>,
    /// The table.
    pub table: Arc<str>,
    /// The column's name, or what errors and drivers call this place: `value(c)`, `[ttl]`.
    pub name: Arc<str>,
    /// Type of the value.
    pub ty: CqlType,
    /// Position in the partition key, for a marker that is a whole column of it.
    pub key_position: Option<u16>,
}

impl Receiver {
    /// A column itself.
    pub fn of_column(table: &Table, column: &Column) -> Receiver {
        let key_position = (column.kind == ColumnKind::PartitionKey)
            .then(|| u16::try_from(column.position).unwrap_or(u16::MAX));
        Receiver { key_position, ..Receiver::named(table, &column.name, column.ty.clone()) }
    }

    /// Something of a table that is no column: `[limit]`, `in(c)`.
    pub fn named(table: &Table, name: &str, ty: CqlType) -> Receiver {
        Receiver {
            keyspace: table.keyspace.clone(),
            table: table.name.clone(),
            name: name.into(),
            ty,
            key_position: None,
        }
    }

    /// An argument of a call, or a part of one, that is only tested: nobody sees its name.
    pub(crate) fn of_argument(place: &CallPlace, ty: CqlType) -> Receiver {
        static NAMELESS: LazyLock<Arc<str>> = LazyLock::new(|| "".into());
        Receiver {
            keyspace: place.keyspace.clone(),
            table: place.table.clone(),
            name: NAMELESS.clone(),
            ty,
            key_position: None,
        }
    }

    /// The same for another type: a part that is only tested.
    pub(crate) fn tested_part(&self, ty: &CqlType) -> Receiver {
        Receiver { ty: ty.clone(), key_position: None, ..self.clone() }
    }

    /// A part of what this is for, under a name of its own.
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

/// Collects what each bind marker of a statement is for.
#[derive(Debug)]
pub struct Markers {
    names: Vec<Option<Arc<str>>>,
    specs: Vec<Option<Receiver>>,
    own: Vec<Term>,
}

impl Markers {
    /// For the markers of a statement.
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

    /// A marker behind those of the statement, for a term that no client knows of.
    pub(crate) fn add_own(&mut self, term: Term, pos: Pos) -> Marker {
        let index = self.specs.len() + self.own.len();
        self.own.push(term);
        Marker { index: u32::try_from(index).unwrap_or(u32::MAX), pos }
    }

    /// The term that a marker stands for, if no client knows of it.
    pub(super) fn own(&self, marker: Marker) -> Option<&Term> {
        let index = (marker.index as usize).checked_sub(self.specs.len())?;
        self.own.get(index)
    }

    /// Notes what a marker is for. A marker looked at twice keeps the last, as in `VariableSpecifications`.
    pub fn add(&mut self, marker: Marker, receiver: &Receiver) {
        if let Some(spec) = self.specs.get_mut(marker.index as usize) {
            *spec = Some(receiver.clone());
        }
    }

    /// The markers in order, as drivers see them, and which of them are the columns of the partition key, in its
    /// order: none unless all are bound. `key_columns` is how many columns the partition key has.
    pub fn finish(self, key_columns: usize) -> (Vec<ResultColumn>, Vec<u16>) {
        let mut keys = vec![None; key_columns];
        let mut columns = Vec::with_capacity(self.specs.len());
        for (index, (name, spec)) in self.names.into_iter().zip(self.specs).enumerate() {
            // Every marker stands in some term, so each has been noted; one that has not shows as bytes.
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
