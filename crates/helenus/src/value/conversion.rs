//! Values from and to Rust types: `From` for what is written, `TryFrom` and [`FromValue`] for what was read.

use super::number::{Decimal, Varint};
use super::value_kinds::Value;
use helenus_model::types::Duration;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::Hash;
use std::net::IpAddr;
use uuid::Uuid;

macro_rules! from {
    ($($from:ty => $variant:ident),* $(,)?) => {
        $(impl From<$from> for Value {
            fn from(value: $from) -> Value {
                Value::$variant(value.into())
            }
        })*
    };
}

from!(&str => Text, String => Text, Vec<u8> => Blob, &[u8] => Blob, bool => Boolean, i8 => TinyInt, i16 => SmallInt,
    i32 => Int, i64 => BigInt, i128 => Varint, Varint => Varint, Decimal => Decimal, f32 => Float, f64 => Double,
    Duration => Duration, Uuid => Uuid, IpAddr => Inet);

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Value {
        value.map_or(Value::Null, Into::into)
    }
}

impl<T: Into<Value>> From<Vec<T>> for Value {
    fn from(values: Vec<T>) -> Value {
        Value::List(values.into_iter().map(Into::into).collect())
    }
}

macro_rules! from_collections {
    ($($set:ident),*; $($map:ident),*) => {
        $(impl<T: Into<Value>> From<$set<T>> for Value {
            fn from(values: $set<T>) -> Value {
                Value::Set(values.into_iter().map(Into::into).collect())
            }
        })*
        $(impl<K: Into<Value>, V: Into<Value>> From<$map<K, V>> for Value {
            fn from(entries: $map<K, V>) -> Value {
                Value::Map(entries.into_iter().map(|(key, value)| (key.into(), value.into())).collect())
            }
        })*
    };
}

from_collections!(BTreeSet, HashSet; BTreeMap, HashMap);

macro_rules! tuples {
    ($(($($name:ident $field:ident),+))*) => {
        $(impl<$($name: Into<Value>),+> From<($($name,)+)> for Value {
            fn from(($($field,)+): ($($name,)+)) -> Value {
                Value::Tuple(vec![$($field.into()),+])
            }
        }

        impl<$($name: FromValue),+> FromValue for ($($name,)+) {
            fn from_value(value: Value) -> Result<Self, ConversionError> {
                let Value::Tuple(fields) = value else { return Err(ConversionError::of(&value, "tuple")) };
                let mut fields = fields.into_iter();
                let read = ($($name::from_value(fields.next().unwrap_or(Value::Null))?,)+);
                match fields.next() {
                    None => Ok(read),
                    Some(_) => Err(ConversionError { wanted: "tuple of so few fields", found: "tuple" }),
                }
            }
        })*
    };
}

tuples! {
    (A a)
    (A a, B b)
    (A a, B b, C c)
    (A a, B b, C c, D d)
    (A a, B b, C c, D d, E e)
    (A a, B b, C c, D d, E e, F f)
}

/// A value is not of the Rust type that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{found} is no {wanted}")]
pub struct ConversionError {
    /// The Rust type.
    pub wanted: &'static str,
    /// The kind of the value.
    pub found: &'static str,
}

impl ConversionError {
    fn of(value: &Value, wanted: &'static str) -> ConversionError {
        ConversionError { wanted, found: value.kind() }
    }
}

/// A Rust type that values are turned into: `value.get::<T>()`, `T::try_from(value)`. `Option` takes null; collections take those
/// of their elements; a set is also a `Vec`.
pub trait FromValue: Sized {
    /// Turns a value into the type.
    ///
    /// # Errors
    /// The value is of another kind, or too large.
    fn from_value(value: Value) -> Result<Self, ConversionError>;
}

impl FromValue for Value {
    fn from_value(value: Value) -> Result<Value, ConversionError> {
        Ok(value)
    }
}

impl<T: FromValue> FromValue for Option<T> {
    fn from_value(value: Value) -> Result<Option<T>, ConversionError> {
        match value {
            Value::Null => Ok(None),
            value => T::from_value(value).map(Some),
        }
    }
}

macro_rules! to {
    ($($to:ty, $pattern:pat => $found:expr;)*) => {
        $(impl FromValue for $to {
            fn from_value(value: Value) -> Result<$to, ConversionError> {
                let wrong = ConversionError::of(&value, stringify!($to));
                match value {
                    $pattern => Some($found),
                    _ => None,
                }
                .ok_or(wrong)
            }
        }

        impl TryFrom<Value> for $to {
            type Error = ConversionError;

            fn try_from(value: Value) -> Result<$to, ConversionError> {
                <$to>::from_value(value)
            }
        })*
    };
}

to! {
    String, Value::Text(text) => text;
    Vec<u8>, Value::Blob(bytes) => bytes;
    bool, Value::Boolean(value) => value;
    f32, Value::Float(value) => value;
    Duration, Value::Duration(value) => value;
    Uuid, Value::Uuid(value) => value;
    IpAddr, Value::Inet(value) => value;
}

macro_rules! to_number {
    ($($to:ty, $value:ident => $found:expr;)*) => {
        $(impl FromValue for $to {
            fn from_value($value: Value) -> Result<$to, ConversionError> {
                let wrong = ConversionError::of(&$value, stringify!($to));
                $found.ok_or(wrong)
            }
        }

        impl TryFrom<Value> for $to {
            type Error = ConversionError;

            fn try_from(value: Value) -> Result<$to, ConversionError> {
                <$to>::from_value(value)
            }
        })*
    };
}

to_number! {
    i8, value => value.integer().and_then(|value| i8::try_from(value).ok());
    i16, value => value.integer().and_then(|value| i16::try_from(value).ok());
    i32, value => value.integer().and_then(|value| i32::try_from(value).ok());
    i64, value => value.integer();
    i128, value => match &value {
        Value::Varint(value) => i128::try_from(value).ok(),
        value => value.integer().map(i128::from),
    };
    u32, value => match value {
        Value::Date(days) => Some(days),
        value => value.integer().and_then(|value| u32::try_from(value).ok()),
    };
    f64, value => match value {
        Value::Double(value) => Some(value),
        Value::Float(value) => Some(f64::from(value)),
        _ => None,
    };
    Varint, value => match value {
        Value::Varint(value) => Some(value),
        value => value.integer().map(Varint::from),
    };
    Decimal, value => match value {
        Value::Decimal(value) => Some(value),
        _ => None,
    };
}

impl<T: FromValue> FromValue for Vec<T> {
    fn from_value(value: Value) -> Result<Vec<T>, ConversionError> {
        elements(value, "list, set or vector")
    }
}

fn elements<T: FromValue, C: FromIterator<T>>(
    value: Value,
    wanted: &'static str,
) -> Result<C, ConversionError> {
    match value {
        Value::List(values) | Value::Set(values) | Value::Vector(values) => {
            values.into_iter().map(T::from_value).collect()
        }
        other => Err(ConversionError::of(&other, wanted)),
    }
}

fn entries<K: FromValue, V: FromValue, C: FromIterator<(K, V)>>(value: Value) -> Result<C, ConversionError> {
    match value {
        Value::Map(entries) => {
            entries.into_iter().map(|(key, value)| Ok((K::from_value(key)?, V::from_value(value)?))).collect()
        }
        other => Err(ConversionError::of(&other, "map")),
    }
}

impl<T: FromValue + Ord> FromValue for BTreeSet<T> {
    fn from_value(value: Value) -> Result<BTreeSet<T>, ConversionError> {
        elements(value, "set")
    }
}

impl<T: FromValue + Eq + Hash> FromValue for HashSet<T> {
    fn from_value(value: Value) -> Result<HashSet<T>, ConversionError> {
        elements(value, "set")
    }
}

impl<K: FromValue + Ord, V: FromValue> FromValue for BTreeMap<K, V> {
    fn from_value(value: Value) -> Result<BTreeMap<K, V>, ConversionError> {
        entries(value)
    }
}

impl<K: FromValue + Eq + Hash, V: FromValue> FromValue for HashMap<K, V> {
    fn from_value(value: Value) -> Result<HashMap<K, V>, ConversionError> {
        entries(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_turned_into_rust_types_and_back() {
        let map: BTreeMap<String, Vec<i32>> = [("a".to_owned(), vec![1, 2])].into();
        assert_eq!(Value::from(map.clone()).get(), Ok(map));
        let set: HashSet<i64> = [1, 2].into();
        assert_eq!(Value::from(set.clone()).get(), Ok(set));
        assert_eq!(Value::from((1i32, "x")).get(), Ok((1i64, "x".to_owned())));
        assert_eq!(Value::Null.get::<Option<String>>(), Ok(None));
        assert_eq!(Value::from(vec![1u8]).get(), Ok(vec![1u8]));
        assert_eq!(String::try_from(Value::from("x")), Ok("x".to_owned()));
        assert_eq!(Value::Varint(i128::MIN.into()).get(), Ok(i128::MIN));
        let wrong = Value::from(300i32).get::<i8>().unwrap_err();
        assert_eq!(wrong.to_string(), "integer of this size is no i8");
        assert!(Value::from("x").get::<Vec<i32>>().is_err() && Value::Null.get::<String>().is_err());
    }

    #[test]
    fn a_tuple_gives_all_its_fields_or_an_error() {
        let tuple = Value::Tuple(vec![Value::Int(1), Value::Int(2)]);
        assert_eq!(<(i32, i32)>::from_value(tuple.clone()), Ok((1, 2)));
        assert_eq!(<(i32, i32, Option<i32>)>::from_value(tuple.clone()), Ok((1, 2, None)));
        assert!(<(i32,)>::from_value(tuple).is_err());
    }
}
