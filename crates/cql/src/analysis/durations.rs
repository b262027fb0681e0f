//! Durations have no order, because a day may be longer than 24 hours. Types that contain one cannot be keys or have
//! ranges.
//!
//! Used by SELECT, the WHERE clauses of writes and CREATE TABLE (Cassandra's `AbstractType.referencesDuration`).

use crate::error::{CqlError, Result};
use helenus_model::types::CqlType;

/// Refuses a range on a type without an order.
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

/// Whether a type is or contains a duration.
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
