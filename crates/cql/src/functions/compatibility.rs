//! Whether a value of one type may be used where another type is declared.

use helenus_model::types::{Assignment, CqlType};

/// Whether a function accepts a value of type `given` for a parameter of type `receiver`
/// (`AbstractType.testAssignment`).
pub(crate) fn assignable(receiver: &CqlType, given: &CqlType) -> Assignment {
    if receiver == given {
        return Assignment::Exact;
    }
    if !given.has_parts() {
        return compatible(receiver, given);
    }
    // Functions see collections as a whole, frozen or not.
    let given = given.freeze();
    if receiver.freeze() == given { Assignment::Exact } else { compatible(receiver, &given) }
}

/// Whether a value of type `given` is valid where `receiver` is declared (`AbstractType.isValueCompatibleWith`).
pub(crate) fn compatible(receiver: &CqlType, given: &CqlType) -> Assignment {
    use CqlType as T;
    if receiver == given {
        return Assignment::Exact;
    }
    let takes = match (receiver, given) {
        (T::Blob, _) => !given.is_multi_cell(),
        (T::Timestamp | T::BigInt | T::Varint, old) if old.is_date_type() => true,
        (old, T::Timestamp | T::BigInt) if old.is_date_type() => true,
        (T::Text, T::Ascii) | (T::Uuid, T::TimeUuid) | (T::Timestamp, T::BigInt) => true,
        (T::BigInt, T::Timestamp) | (T::Date, T::Int) | (T::Time, T::BigInt) => true,
        (T::Varint, T::Int | T::BigInt | T::Timestamp) => true,
        // The receiver may have more fields, because tuples grow.
        (T::Tuple(a), T::Tuple(b)) => {
            b.len() <= a.len() && a.iter().zip(b.iter()).all(|(a, b)| compatible(a, b) != Assignment::Refused)
        }
        (T::Set { element: a, .. }, T::Set { element: b, .. })
        | (T::List { element: a, .. }, T::List { element: b, .. }) => compatible(a, b) != Assignment::Refused,
        (T::Map { key: ka, value: va, .. }, T::Map { key: kb, value: vb, .. }) => {
            compatible(ka, kb) != Assignment::Refused && compatible(va, vb) != Assignment::Refused
        }
        (T::Udt(a), T::Udt(b)) => a.keyspace == b.keyspace && a.name == b.name && a.fields == b.fields,
        _ => false,
    };
    if takes { Assignment::Weak } else { Assignment::Refused }
}
