//! Functions over a collection's elements (`CollectionFcts`).

use super::aggregate::{Aggregate, Fold};
use crate::budget::RequestBudget;
use crate::error::Result;
use helenus_model::types::{CqlType, Elements, collection_size, pack};

/// The keys of a map, as a set.
pub(super) fn map_keys(map: &[u8]) -> Vec<u8> {
    every_other(map, 0)
}

/// The values of a map, as a list.
pub(super) fn map_values(map: &[u8]) -> Vec<u8> {
    every_other(map, 1)
}

fn every_other(map: &[u8], first: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(map.len());
    pack(collection_size(map), Elements::of_map(map).skip(first).step_by(2), &mut out);
    out
}

/// Number of elements or entries.
pub(super) fn count(collection: &[u8]) -> Vec<u8> {
    (collection_size(collection) as i32).to_be_bytes().to_vec()
}

/// Applies an aggregate to the elements of a list or set.
///
/// # Errors
/// As `Fold::add` and `Fold::result`.
pub(super) fn fold(
    function: &Aggregate,
    collection: &[u8],
    work: &RequestBudget<'_>,
) -> Result<Option<Vec<u8>>> {
    let mut fold = Fold::new(function.clone());
    for element in Elements::of_list(collection) {
        fold.add(element, work)?;
    }
    fold.result()
}

/// The type of the elements of a list or set.
pub(super) fn element_of(ty: &CqlType) -> Option<&CqlType> {
    match ty {
        CqlType::List { element, .. } | CqlType::Set { element, .. } => Some(element),
        _ => None,
    }
}
