//! The values of a request, in the order of the statement's markers.

use super::json_row::ReadDocument;
use crate::answer::ResultColumn;
use crate::error::{CqlError, Result};
use crate::request::{BoundValue, Values};
use crate::scope::CallContext;
use parking_lot::Mutex;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

/// The values of one execution, by marker.
#[derive(Debug)]
pub struct BoundValues<'a> {
    values: Ordered<'a>,
    markers: &'a [ResultColumn],
    document: Mutex<Option<ReadDocument>>,
}

impl Clone for BoundValues<'_> {
    fn clone(&self) -> Self {
        let document = Mutex::new(self.document.lock().clone());
        BoundValues { values: self.values.clone(), markers: self.markers, document }
    }
}

#[derive(Clone, Debug)]
enum Ordered<'a> {
    AsGiven(&'a [BoundValue<'a>]),
    /// Shared by the statements of a batch, which each have all values of it.
    ByName(Arc<[BoundValue<'a>]>),
}

impl<'a> BoundValues<'a> {
    /// No values, for statements without markers.
    pub const fn none() -> BoundValues<'static> {
        BoundValues { values: Ordered::AsGiven(&[]), markers: &[], document: Mutex::new(None) }
    }

    /// As `ordered`, for a statement that was sent as text.
    ///
    /// # Errors
    /// The number of values differs from the number of markers.
    pub fn new(values: &Values<'a>, markers: &'a [ResultColumn]) -> Result<BoundValues<'a>> {
        Self::ordered(values, markers)
            .map_err(|_| CqlError::Invalid("Invalid amount of bind variables".into()))
    }

    /// Puts the values of a request in the order of the markers (`QueryOptions.OptionsWithNames`).
    ///
    /// # Errors
    /// The number of values for the markers, if it differs from the number of markers.
    pub fn ordered(
        values: &Values<'a>,
        markers: &'a [ResultColumn],
    ) -> std::result::Result<BoundValues<'a>, usize> {
        let values = match *values {
            Values::Positional(values) => Ordered::AsGiven(values),
            Values::Named(named) => {
                // If a name occurs twice the first value counts, so the map is filled in reverse order.
                let by_name: HashMap<&str, BoundValue<'a>> = named.iter().rev().copied().collect();
                let find = |marker: &ResultColumn| by_name.get(&*marker.name).copied();
                Ordered::ByName(markers.iter().filter_map(find).collect())
            }
        };
        let found = BoundValues { values, markers, document: Mutex::new(None) };
        match found.all().len() {
            count if count == markers.len() => Ok(found),
            count => Err(count),
        }
    }

    /// The value of a marker.
    pub fn get(&self, index: u16) -> BoundValue<'a> {
        self.all().get(usize::from(index)).copied().unwrap_or(BoundValue::Null)
    }

    /// The JSON document that was read last.
    pub(super) fn document(&self) -> &Mutex<Option<ReadDocument>> {
        &self.document
    }

    /// The marker's receiver: a column, or `value(c)`, `[ttl]`.
    pub fn name(&self, index: u16) -> &str {
        self.markers.get(usize::from(index)).map_or("?", |marker| &marker.name)
    }

    fn all(&self) -> &[BoundValue<'a>] {
        match &self.values {
            Ordered::AsGiven(values) => values,
            Ordered::ByName(values) => values,
        }
    }
}

/// Everything that is needed to bind terms.
#[derive(Clone, Debug)]
pub struct Bindings<'a> {
    /// The request's values.
    pub values: BoundValues<'a>,
    /// The context for functions.
    pub calls: &'a CallContext<'a>,
}

/// A term's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bound<'a> {
    /// A serialised value, valid for the term's type; sets and maps are sorted. Non-frozen collections and user-defined
    /// types are in their frozen form, too.
    Bytes(Cow<'a, [u8]>),
    /// Null.
    Null,
    /// The column is not changed.
    Unset,
}

impl<'a> Bound<'a> {
    /// The bytes; `None` for null and unset.
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            Bound::Bytes(bytes) => Some(bytes),
            Bound::Null | Bound::Unset => None,
        }
    }

    /// From bytes or null.
    pub fn of(bytes: Option<Cow<'a, [u8]>>) -> Bound<'a> {
        bytes.map_or(Bound::Null, Bound::Bytes)
    }
}
