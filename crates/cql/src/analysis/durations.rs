//! Durations have no order: a day may be longer than 24 hours. What holds one is no key and has no ranges.
//!
//! SELECT, the WHERE of writes and CREATE TABLE ask here (Cassandra's `AbstractType.referencesDuration`).

use crate::error::{CqlError, Result};
use helenus_model::types::CqlType;

/// Refuses ranges of values that have no order.
pub(crate) fn check_slice_type(ty: &CqlType) -> Result<()> {
    if !references_duration(ty) {
        return Ok(());
    }
    let what = match ty {
        CqlType::List { .. } | CqlType::Set { .. } | CqlType::Map { .. } => {
            "collections containing durations"
        }
        CqlType::Tuple(_) => "tuples containing durations",
        CqlType::Udt(_) => "UDTs containing durations",
        _ => "duration columns",
    };
    Err(CqlError::Invalid(format!("Slice restrictions are not supported on {what}")))
}

/// Whether a type is or holds a duration, which has no order.
pub(crate) fn references_duration(ty: &CqlType) -> bool {
    match ty {
        CqlType::Duration => true,
        CqlType::List { element, .. } | CqlType::Set { element, .. } | CqlType::Vector { element, .. } => {
            references_duration(element)
        }
        CqlType::Map { key, value, .. } => references_duration(key) || references_duration(value),
        CqlType::Tuple(types) => types.iter().any(references_duration),
        CqlType::Udt(udt) => udt.fields.iter().any(|(_, ty)| references_duration(ty)),
        _ => false,
    }
}
