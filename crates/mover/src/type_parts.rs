//! The types within a type.

use helenus_model::types::CqlType;

/// Whether a type, or any type within it, fulfils a condition. Types are at most `TYPE_DEPTH_MAX` deep, so recursion ends.
pub(crate) fn any_part(ty: &CqlType, found: &dyn Fn(&CqlType) -> bool) -> bool {
    found(ty)
        || match ty {
            CqlType::List { element, .. }
            | CqlType::Set { element, .. }
            | CqlType::Vector { element, .. } => any_part(element, found),
            CqlType::Map { key, value, .. } => any_part(key, found) || any_part(value, found),
            CqlType::Tuple(parts) => parts.iter().any(|part| any_part(part, found)),
            CqlType::Udt(udt) => udt.fields.iter().any(|(_, part)| any_part(part, found)),
            _ => false,
        }
}
