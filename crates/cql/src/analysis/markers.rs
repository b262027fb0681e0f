//! `Markers`: the receiver of each bind marker of a statement. They are the metadata that PREPARE sends to a driver
//! (Cassandra's `VariableSpecifications`).

use super::term::Term;
use crate::answer::ResultColumn;
use crate::budget::room_for;
use crate::error::Result;
use crate::scope::Receiver;
use crate::syntax::ast::{BindMarker, Marker, Pos};
use helenus_model::types::CqlType;
use std::sync::Arc;

/// Collects the receiver of each bind marker of a statement.
#[derive(Clone, Debug)]
pub struct Markers {
    names: Vec<Option<Arc<str>>>,
    specs: Vec<Option<Receiver>>,
    own: Vec<Term>,
}

impl Markers {
    /// Reserves memory for what `new` makes of so many markers.
    ///
    /// # Errors
    /// As `room_for`.
    pub(crate) fn room_for(count: usize) -> Result<()> {
        room_for(count * (size_of::<Option<Receiver>>() + size_of::<Option<Arc<str>>>()))
    }

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
