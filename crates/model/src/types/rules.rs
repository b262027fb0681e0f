//! Rules for values of each type: which bytes are valid, how long they are, and how two values compare.
//!
//! Each rule is one `match` over all types that calls the files of the type families. The rules are those of
//! Cassandra's `TypeSerializer.validate` and `AbstractType`.

use std::cmp::Ordering;

use super::class_name::{DATE_CLASS, LEXICAL_UUID_CLASS};
use super::{
    CqlType, TypeError, collection, composite, decimal, duration, float, inet, integer, text, tuple, uuid,
    vector,
};

impl CqlType {
    /// Checks that `bytes` are a value of this type, or the empty value if it has one. Collections and user-defined
    /// types are checked in their frozen form, a counter as the number that clients see.
    pub fn validate(&self, bytes: &[u8]) -> Result<(), TypeError> {
        match self {
            CqlType::Ascii => text::validate_ascii(bytes),
            CqlType::Text => text::validate_text(bytes),
            CqlType::Blob | CqlType::Varint => Ok(()),
            CqlType::BigInt | CqlType::Counter => length(bytes, &[0, 8], "Expected 8 or 0 byte long"),
            CqlType::Boolean => length(bytes, &[0, 1], "Expected 1 or 0 byte value"),
            CqlType::Date => length(bytes, &[4], "Expected 4 byte long for date"),
            CqlType::Decimal if matches!(bytes.len(), 1..4) => Err(TypeError::Length {
                expected: "Expected 0 or at least 4 bytes",
                length_bytes: bytes.len(),
            }),
            CqlType::Decimal => Ok(()),
            CqlType::Double => length(bytes, &[0, 8], "Expected 8 or 0 byte value for a double"),
            CqlType::Duration => duration::validate(bytes),
            CqlType::Empty if bytes.is_empty() => Ok(()),
            CqlType::Empty => Err(TypeError::NotEmpty),
            CqlType::Float => length(bytes, &[0, 4], "Expected 4 or 0 byte value for a float"),
            CqlType::Inet => inet::validate(bytes),
            CqlType::Int => length(bytes, &[0, 4], "Expected 4 or 0 byte int"),
            CqlType::SmallInt => length(bytes, &[2], "Expected 2 bytes for a smallint"),
            CqlType::Time => length(bytes, &[8], "Expected 8 byte long for time"),
            CqlType::Timestamp => length(bytes, &[0, 8], "Expected 8 or 0 byte long for date"),
            CqlType::TimeUuid => uuid::validate_time(bytes),
            CqlType::TinyInt => length(bytes, &[1], "Expected 1 byte for a tinyint"),
            CqlType::Uuid => uuid::validate(bytes),
            CqlType::List { element, .. } => {
                collection::validate(bytes, "list", &[element], CqlType::validate)
            }
            CqlType::Set { element, .. } => collection::validate(bytes, "set", &[element], CqlType::validate),
            CqlType::Map { key, value, .. } => {
                collection::validate(bytes, "map", &[key, value], CqlType::validate)
            }
            CqlType::Tuple(types) => tuple::validate(bytes, types),
            CqlType::Udt(udt) => tuple::validate_udt(bytes, udt, CqlType::validate),
            CqlType::Vector { element, dimension } => vector::validate(self, element, *dimension, bytes),
            CqlType::Custom(class) => match &**class {
                LEXICAL_UUID_CLASS => uuid::validate(bytes),
                DATE_CLASS => length(bytes, &[0, 8], "Expected 8 or 0 byte long for date"),
                class if composite::is_composite(class) => composite::validate(class, bytes),
                _ => Ok(()),
            },
        }
    }

    /// The same for a value that is stored or returned: a list may have nulls, because Cassandra takes one by a marker
    /// (`ElementsWithout`), and `ttl` and `writetime` of a collection return null for an element without one. So may a list in a cell of
    /// a map or of a user type, which is bound by itself; the map or user type is then put together from its cells.
    pub fn validate_stored(&self, bytes: &[u8]) -> Result<(), TypeError> {
        match self {
            CqlType::List { element, .. } => collection::check_bound_list(element, bytes).map(|_| ()),
            CqlType::Map { key, value, frozen: false } => {
                collection::validate(bytes, "map", &[key, value], CqlType::validate_stored)
            }
            CqlType::Udt(udt) if !udt.frozen => tuple::validate_udt(bytes, udt, CqlType::validate_stored),
            _ => self.validate(bytes),
        }
    }

    /// The order of two valid values in a clustering column or a set. Empty values come first. Invalid values have some
    /// order and never panic.
    pub fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        match self {
            CqlType::Ascii | CqlType::Text | CqlType::Blob | CqlType::Duration | CqlType::Inet => a.cmp(b),
            CqlType::Date | CqlType::Time => a.cmp(b),
            CqlType::BigInt
            | CqlType::Counter
            | CqlType::Int
            | CqlType::SmallInt
            | CqlType::TinyInt
            | CqlType::Timestamp => integer::compare_fixed(a, b),
            CqlType::Boolean => text::compare_boolean(a, b),
            CqlType::Decimal => decimal::compare(a, b),
            CqlType::Double => float::compare_double(a, b),
            CqlType::Float => float::compare_float(a, b),
            CqlType::Empty => Ordering::Equal,
            CqlType::TimeUuid => uuid::compare_time(a, b),
            CqlType::Uuid => uuid::compare(a, b),
            CqlType::Varint => integer::compare_varint(a, b),
            CqlType::List { element, .. } | CqlType::Set { element, .. } => {
                collection::compare(a, b, &[element])
            }
            CqlType::Map { key, value, .. } => collection::compare(a, b, &[key, value]),
            CqlType::Tuple(types) => tuple::compare(a, b, types.iter()),
            CqlType::Udt(udt) => tuple::compare(a, b, udt.fields.iter().map(|(_, ty)| ty)),
            CqlType::Vector { element, .. } => vector::compare(element, a, b),
            CqlType::Custom(class) if &**class == LEXICAL_UUID_CLASS => uuid::compare_lexical(a, b),
            CqlType::Custom(class) if composite::is_composite(class) => composite::compare(class, a, b),
            CqlType::Custom(_) => a.cmp(b),
        }
    }

    /// Length in bytes of every value that is not empty, if it is fixed. It decides whether SSTables write a length:
    /// `tinyint`, `smallint`, `date` and `time` count as variable there (`AbstractType.valueLengthIfFixed`).
    pub fn fixed_length(&self) -> Option<usize> {
        match self {
            CqlType::Empty => Some(0),
            CqlType::Boolean => Some(1),
            CqlType::Float | CqlType::Int => Some(4),
            CqlType::BigInt | CqlType::Double | CqlType::Timestamp => Some(8),
            CqlType::TimeUuid | CqlType::Uuid => Some(16),
            CqlType::Vector { element, dimension } => {
                element.fixed_length().and_then(|length| length.checked_mul(*dimension as usize))
            }
            CqlType::Custom(class) => match &**class {
                LEXICAL_UUID_CLASS => Some(16),
                DATE_CLASS => Some(8),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether the empty value (no bytes) is valid for this type.
    pub fn allows_empty(&self) -> bool {
        match self {
            CqlType::Ascii | CqlType::Text | CqlType::Blob | CqlType::Tuple(_) | CqlType::Udt(_) => true,
            CqlType::Custom(class) if composite::is_composite(class) => true,
            _ => {
                self.is_empty_meaningless()
                    && !matches!(self, CqlType::Custom(class) if &**class == DATE_CLASS)
            }
        }
    }

    /// Whether the empty value counts as no value: aggregates skip it, filters refuse it.
    pub fn is_empty_meaningless(&self) -> bool {
        match self {
            CqlType::BigInt
            | CqlType::Boolean
            | CqlType::Counter
            | CqlType::Decimal
            | CqlType::Double
            | CqlType::Float
            | CqlType::Inet
            | CqlType::Int
            | CqlType::Timestamp
            | CqlType::TimeUuid
            | CqlType::Uuid
            | CqlType::Varint => true,
            CqlType::Custom(class) => matches!(&**class, LEXICAL_UUID_CLASS | DATE_CLASS),
            _ => false,
        }
    }

    /// Whether the empty value is read as null (each `TypeSerializer.deserialize`).
    pub fn reads_empty_as_null(&self) -> bool {
        match self {
            CqlType::Ascii | CqlType::Text | CqlType::Blob | CqlType::Tuple(_) | CqlType::Udt(_) => false,
            CqlType::Custom(class) => matches!(&**class, LEXICAL_UUID_CLASS | DATE_CLASS),
            _ => true,
        }
    }

    /// Whether the order of values is that of their bytes.
    pub fn is_byte_ordered(&self) -> bool {
        match self {
            CqlType::Ascii | CqlType::Text | CqlType::Blob | CqlType::Duration => true,
            CqlType::Inet | CqlType::Date | CqlType::Time => true,
            CqlType::Custom(class) => &**class != LEXICAL_UUID_CLASS && !composite::is_composite(class),
            _ => false,
        }
    }

    /// Whether values of both types are stored and sorted the same way. Nested frozen types make no difference.
    pub fn is_stored_as(&self, other: &CqlType) -> bool {
        self.is_multi_cell() == other.is_multi_cell() && self.frozen_throughout() == other.frozen_throughout()
    }

    /// Frozen at every depth, elements of vectors included.
    fn frozen_throughout(&self) -> CqlType {
        let shared = |ty: &CqlType| ty.frozen_throughout().into();
        match self.freeze() {
            CqlType::List { element, frozen } => CqlType::List { element: shared(&element), frozen },
            CqlType::Set { element, frozen } => CqlType::Set { element: shared(&element), frozen },
            CqlType::Map { key, value, frozen } => {
                CqlType::Map { key: shared(&key), value: shared(&value), frozen }
            }
            CqlType::Tuple(types) => CqlType::Tuple(types.iter().map(CqlType::frozen_throughout).collect()),
            CqlType::Vector { element, dimension } => {
                CqlType::Vector { element: shared(&element), dimension }
            }
            CqlType::Udt(udt) => {
                let fields =
                    udt.fields.iter().map(|(name, ty)| (name.clone(), ty.frozen_throughout())).collect();
                CqlType::Udt(super::UserType { fields, ..(*udt).clone() }.into())
            }
            other => other,
        }
    }

    /// The type, frozen together with all nested collections and user-defined types except those in vectors.
    pub fn freeze(&self) -> CqlType {
        let frozen = true;
        match self {
            CqlType::List { element, .. } => CqlType::List { element: element.freeze().into(), frozen },
            CqlType::Set { element, .. } => CqlType::Set { element: element.freeze().into(), frozen },
            CqlType::Map { key, value, .. } => {
                CqlType::Map { key: key.freeze().into(), value: value.freeze().into(), frozen }
            }
            CqlType::Tuple(types) => CqlType::Tuple(types.iter().map(CqlType::freeze).collect()),
            // Everything within a frozen type is already frozen, because only this function sets `frozen`.
            CqlType::Udt(udt) if udt.frozen => self.clone(),
            CqlType::Udt(udt) => {
                let fields = udt.fields.iter().map(|(name, ty)| (name.clone(), ty.freeze())).collect();
                let (keyspace, name) = (udt.keyspace.clone(), udt.name.clone());
                CqlType::Udt(super::UserType { keyspace, name, fields, frozen }.into())
            }
            // A vector is always frozen; its elements stay as declared (`CQL3Type.RawVector.freeze`).
            other => other.clone(),
        }
    }

    /// The type with a tuple in place of each user-defined type, which may later be altered or dropped
    /// (`AbstractType.expandUserTypes`).
    #[must_use]
    pub fn expand_user_types(&self) -> CqlType {
        let expand = |ty: &CqlType| std::sync::Arc::from(ty.expand_user_types());
        match self {
            CqlType::List { element, frozen } => CqlType::List { element: expand(element), frozen: *frozen },
            CqlType::Set { element, frozen } => CqlType::Set { element: expand(element), frozen: *frozen },
            CqlType::Map { key, value, frozen } => {
                CqlType::Map { key: expand(key), value: expand(value), frozen: *frozen }
            }
            CqlType::Tuple(types) => CqlType::Tuple(types.iter().map(CqlType::expand_user_types).collect()),
            CqlType::Udt(udt) => {
                CqlType::Tuple(udt.fields.iter().map(|(_, ty)| ty.expand_user_types().freeze()).collect())
            }
            CqlType::Vector { element, dimension } => {
                CqlType::Vector { element: expand(element), dimension: *dimension }
            }
            other => other.clone(),
        }
    }
}

fn length(bytes: &[u8], allowed: &[usize], expected: &'static str) -> Result<(), TypeError> {
    if allowed.contains(&bytes.len()) {
        Ok(())
    } else {
        Err(TypeError::Length { expected, length_bytes: bytes.len() })
    }
}
