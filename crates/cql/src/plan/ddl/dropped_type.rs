//! Decides whether a new column may have the name of a dropped one: values of the old type must be readable as the new
//! one (`AbstractType.isSerializationCompatibleWith` and its overrides, as of Cassandra 5.0.9). A dropped column never
//! has a user-defined type: Cassandra keeps a tuple of its fields (`AbstractType.expandUserTypes`).

use crate::analysis::compatible;
use helenus_model::types::{Assignment, CqlType};

/// Whether cells of a column of type `old` can be read as those of a column of type `new`.
pub(crate) fn reads_cells_of(new: &CqlType, old: &CqlType) -> bool {
    match (new, old) {
        (CqlType::List { element: new_element, .. }, CqlType::List { element: old_element, .. }) => {
            reads_values_of(new, old) && reads_cells_of(new_element, old_element)
        }
        (CqlType::Map { value: new_value, .. }, CqlType::Map { value: old_value, .. }) => {
            reads_values_of(new, old) && reads_cells_of(new_value, old_value)
        }
        (CqlType::Set { .. }, CqlType::Set { .. }) => reads_values_of(new, old),
        (CqlType::Blob, old) if is_collection(old) => false,
        _ => {
            reads_values_of(new, old)
                && new.fixed_length() == old.fixed_length()
                && new.is_multi_cell() == old.is_multi_cell()
        }
    }
}

/// `isValueCompatibleWith`.
fn reads_values_of(new: &CqlType, old: &CqlType) -> bool {
    match (new, old) {
        (CqlType::List { element: new_element, .. }, CqlType::List { element: old_element, .. }) => {
            let parts: fn(&CqlType, &CqlType) -> bool =
                if new.is_multi_cell() { reads_cells_of } else { reads_values_of };
            new.is_multi_cell() == old.is_multi_cell() && parts(new_element, old_element)
        }
        (CqlType::Set { element: new_element, .. }, CqlType::Set { element: old_element, .. }) => {
            new.is_multi_cell() == old.is_multi_cell() && sorts_as(new_element, old_element)
        }
        (
            CqlType::Map { key: new_key, value: new_value, .. },
            CqlType::Map { key: old_key, value: old_value, .. },
        ) => {
            let parts: fn(&CqlType, &CqlType) -> bool =
                if new.is_multi_cell() { reads_cells_of } else { reads_values_of };
            new.is_multi_cell() == old.is_multi_cell()
                && sorts_as(new_key, old_key)
                && parts(new_value, old_value)
        }
        (CqlType::Udt(_), CqlType::Tuple(_)) => false,
        _ => match (fields(new), fields(old)) {
            (Some(new), Some(old)) => starts_with(&new, &old, reads_values_of),
            _ => compatible(new, old) != Assignment::Refused,
        },
    }
}

/// `isCompatibleWith`: the order must be the same too.
fn sorts_as(new: &CqlType, old: &CqlType) -> bool {
    match (new, old) {
        (CqlType::Text, CqlType::Ascii) | (CqlType::Blob, CqlType::Ascii | CqlType::Text) => true,
        (CqlType::List { element: new, .. }, CqlType::List { element: old, .. })
        | (CqlType::Set { element: new, .. }, CqlType::Set { element: old, .. }) => sorts_as(new, old),
        (
            CqlType::Map { key: new_key, value: new_value, .. },
            CqlType::Map { key: old_key, value: old_value, .. },
        ) => sorts_as(new_key, old_key) && sorts_as(new_value, old_value),
        _ => match (fields(new), fields(old)) {
            (Some(new), Some(old)) => starts_with(&new, &old, sorts_as),
            _ => new == old,
        },
    }
}

/// The types of a tuple's elements or of a user-defined type's fields.
fn fields(ty: &CqlType) -> Option<Vec<&CqlType>> {
    match ty {
        CqlType::Tuple(types) => Some(types.iter().collect()),
        CqlType::Udt(udt) => Some(udt.fields.iter().map(|(_, ty)| ty).collect()),
        _ => None,
    }
}

/// Fields may be added at the end.
fn starts_with(new: &[&CqlType], old: &[&CqlType], of_field: fn(&CqlType, &CqlType) -> bool) -> bool {
    old.len() <= new.len() && new.iter().zip(old).all(|(new, old)| of_field(new, old))
}

fn is_collection(ty: &CqlType) -> bool {
    matches!(ty, CqlType::List { .. } | CqlType::Set { .. } | CqlType::Map { .. })
}
