//! A value of a column, with a variant for each type of CQL.

use super::conversion::{ConversionError, FromValue};
use super::number::{Decimal, Varint};
use helenus_model::types::Duration;
use std::net::IpAddr;
use uuid::Uuid;

/// A value of a column.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// No value. A collection without elements is null too, unless it is frozen.
    Null,
    /// `ascii`, `text`.
    Text(String),
    /// `blob`. Written to a column of another type, the bytes are its serialised form; so is read what a class of one's own has.
    Blob(Vec<u8>),
    /// `boolean`.
    Boolean(bool),
    /// `tinyint`.
    TinyInt(i8),
    /// `smallint`.
    SmallInt(i16),
    /// `int`.
    Int(i32),
    /// `bigint`; also `counter`.
    BigInt(i64),
    /// `varint`: an integer of any size.
    Varint(Varint),
    /// `decimal`.
    Decimal(Decimal),
    /// `float`.
    Float(f32),
    /// `double`.
    Double(f64),
    /// `timestamp`: milliseconds since the epoch.
    Timestamp(i64),
    /// `date`: days since 1970-01-01, plus 2^31.
    Date(u32),
    /// `time`: nanoseconds since midnight.
    Time(i64),
    /// `duration`.
    Duration(Duration),
    /// `uuid`, `timeuuid`.
    Uuid(Uuid),
    /// `inet`.
    Inet(IpAddr),
    /// `list`. Also written to a set and to a vector.
    List(Vec<Value>),
    /// `set`, in the order of its type when it was read.
    Set(Vec<Value>),
    /// `map`, in the order of its keys' type when it was read.
    Map(Vec<(Value, Value)>),
    /// `tuple`. One that was written with fewer fields than its type has reads as if the others were null.
    Tuple(Vec<Value>),
    /// A value of a user-defined type: names of fields and their values. Fields that are left out are null.
    Udt(Vec<(String, Value)>),
    /// `vector`.
    Vector(Vec<Value>),
}

impl Value {
    /// A value of a user-defined type.
    pub fn udt<N: Into<String>>(fields: impl IntoIterator<Item = (N, Value)>) -> Value {
        Value::Udt(fields.into_iter().map(|(name, value)| (name.into(), value)).collect())
    }

    /// The value as a Rust type: `value.get::<Vec<String>>()`, `value.get::<Option<i64>>()`.
    ///
    /// # Errors
    /// It has another kind, or a number is too large for the type.
    pub fn get<T: FromValue>(&self) -> Result<T, ConversionError> {
        T::from_value(self.clone())
    }

    /// The text, if the value is text.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The integer, if the value is an integer that 64 bits hold, a timestamp or a time.
    pub fn integer(&self) -> Option<i64> {
        Some(match self {
            Value::TinyInt(value) => i64::from(*value),
            Value::SmallInt(value) => i64::from(*value),
            Value::Int(value) => i64::from(*value),
            Value::BigInt(value) | Value::Timestamp(value) | Value::Time(value) => *value,
            Value::Varint(value) => i64::try_from(value).ok()?,
            _ => return None,
        })
    }

    /// The field of a value of a user-defined type.
    pub fn field(&self, name: &str) -> Option<&Value> {
        match self {
            Value::Udt(fields) => fields.iter().find(|(known, _)| known == name).map(|(_, value)| value),
            _ => None,
        }
    }

    /// Its kind, for messages.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Value::Null => "null",
            Value::Text(_) => "text",
            Value::Blob(_) => "blob of this form",
            Value::Boolean(_) => "boolean",
            Value::TinyInt(_) | Value::SmallInt(_) | Value::Int(_) | Value::BigInt(_) | Value::Varint(_) => {
                "integer of this size"
            }
            Value::Decimal(_) => "decimal",
            Value::Float(_) => "float",
            Value::Double(_) => "double",
            Value::Timestamp(_) => "timestamp",
            Value::Date(_) => "date",
            Value::Time(_) => "time",
            Value::Duration(_) => "duration of this form",
            Value::Uuid(_) => "uuid",
            Value::Inet(_) => "inet",
            Value::List(_) => "list of these elements",
            Value::Set(_) => "set of these elements",
            Value::Map(_) => "map of these entries",
            Value::Tuple(_) => "tuple of these fields",
            Value::Udt(_) => "user-defined value of these fields",
            Value::Vector(_) => "vector of these elements",
        }
    }
}
