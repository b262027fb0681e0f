//! Values as Rust types, and their conversion to and from Cassandra's serialised form.

use helenus_model::types::CqlType;
use std::net::IpAddr;
use uuid::Uuid;

/// A value of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// No value.
    Null,
    /// `ascii`, `text`.
    Text(String),
    /// `blob`, and the serialised form of every type without a variant of its own.
    Blob(Vec<u8>),
    /// `boolean`.
    Boolean(bool),
    /// `tinyint`.
    TinyInt(i8),
    /// `smallint`.
    SmallInt(i16),
    /// `int`.
    Int(i32),
    /// `bigint`; also `counter` and `time` (nanoseconds since midnight).
    BigInt(i64),
    /// `float`.
    Float(f32),
    /// `double`.
    Double(f64),
    /// `timestamp`: milliseconds since the epoch.
    Timestamp(i64),
    /// `date`: days since 1970-01-01, plus 2^31.
    Date(u32),
    /// `uuid`, `timeuuid`.
    Uuid(Uuid),
    /// `inet`.
    Inet(IpAddr),
}

impl Value {
    /// The serialised value for a column of type `ty`; `None` for null. Integers and floats convert to other widths
    /// where nothing is lost. Text is not parsed as a CQL constant here.
    ///
    /// # Errors
    /// The value's kind in words, if the type does not take it.
    pub(crate) fn to_bytes(&self, ty: &CqlType) -> Result<Option<Vec<u8>>, &'static str> {
        let refused = Err(self.kind());
        let bytes = match (self, ty) {
            (Value::Null, _) => return Ok(None),
            (Value::Text(text), CqlType::Text | CqlType::Ascii) => text.as_bytes().to_vec(),
            (Value::Boolean(value), CqlType::Boolean) => vec![u8::from(*value)],
            (Value::TinyInt(_) | Value::SmallInt(_) | Value::Int(_) | Value::BigInt(_), _) => {
                match self.integer().and_then(|value| integer_bytes(value, ty)) {
                    Some(bytes) => bytes,
                    None => return refused,
                }
            }
            (Value::Float(value), CqlType::Float) => value.to_be_bytes().to_vec(),
            (Value::Float(value), CqlType::Double) => f64::from(*value).to_be_bytes().to_vec(),
            (Value::Double(value), CqlType::Double) => value.to_be_bytes().to_vec(),
            (Value::Timestamp(ms), CqlType::Timestamp) => ms.to_be_bytes().to_vec(),
            (Value::Date(days), CqlType::Date) => days.to_be_bytes().to_vec(),
            (Value::Uuid(uuid), CqlType::Uuid | CqlType::TimeUuid) => uuid.as_bytes().to_vec(),
            (Value::Inet(IpAddr::V4(address)), CqlType::Inet) => address.octets().to_vec(),
            (Value::Inet(IpAddr::V6(address)), CqlType::Inet) => address.octets().to_vec(),
            // A blob is taken as the serialised value of any type; `validate` below checks it.
            (Value::Blob(bytes), _) => bytes.clone(),
            _ => return refused,
        };
        if ty.validate(&bytes).is_err() { refused } else { Ok(Some(bytes)) }
    }

    /// The value of a column of type `ty` from its serialised form. A type without a variant of its own gives a `Blob`.
    pub(crate) fn from_bytes(ty: &CqlType, bytes: &[u8]) -> Value {
        let typed = match ty {
            CqlType::Text | CqlType::Ascii => String::from_utf8(bytes.to_vec()).ok().map(Value::Text),
            CqlType::Boolean => bytes.first().map(|byte| Value::Boolean(*byte != 0)),
            CqlType::TinyInt => bytes.first_chunk().map(|b| Value::TinyInt(i8::from_be_bytes(*b))),
            CqlType::SmallInt => bytes.first_chunk().map(|b| Value::SmallInt(i16::from_be_bytes(*b))),
            CqlType::Int => bytes.first_chunk().map(|b| Value::Int(i32::from_be_bytes(*b))),
            CqlType::BigInt | CqlType::Counter | CqlType::Time => {
                bytes.first_chunk().map(|b| Value::BigInt(i64::from_be_bytes(*b)))
            }
            CqlType::Float => bytes.first_chunk().map(|b| Value::Float(f32::from_be_bytes(*b))),
            CqlType::Double => bytes.first_chunk().map(|b| Value::Double(f64::from_be_bytes(*b))),
            CqlType::Timestamp => bytes.first_chunk().map(|b| Value::Timestamp(i64::from_be_bytes(*b))),
            CqlType::Date => bytes.first_chunk().map(|b| Value::Date(u32::from_be_bytes(*b))),
            CqlType::Uuid | CqlType::TimeUuid => Uuid::from_slice(bytes).ok().map(Value::Uuid),
            CqlType::Inet => match bytes.len() {
                4 => bytes.first_chunk::<4>().map(|b| Value::Inet(IpAddr::from(*b))),
                _ => bytes.first_chunk::<16>().map(|b| Value::Inet(IpAddr::from(*b))),
            },
            _ => None,
        };
        typed.unwrap_or_else(|| Value::Blob(bytes.to_vec()))
    }

    /// The text, if the value is text.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The integer, if the value is an integer of any width.
    pub fn integer(&self) -> Option<i64> {
        Some(match self {
            Value::TinyInt(value) => i64::from(*value),
            Value::SmallInt(value) => i64::from(*value),
            Value::Int(value) => i64::from(*value),
            Value::BigInt(value) | Value::Timestamp(value) => *value,
            _ => return None,
        })
    }

    fn kind(&self) -> &'static str {
        match self {
            Value::Null => "null",
            Value::Text(_) => "text",
            Value::Blob(_) => "blob of this form",
            Value::Boolean(_) => "boolean",
            Value::TinyInt(_) | Value::SmallInt(_) | Value::Int(_) | Value::BigInt(_) => {
                "integer of this size"
            }
            Value::Float(_) => "float",
            Value::Double(_) => "double",
            Value::Timestamp(_) => "timestamp",
            Value::Date(_) => "date",
            Value::Uuid(_) => "uuid",
            Value::Inet(_) => "inet",
        }
    }
}

/// An integer in the width of type `ty`, if it fits.
fn integer_bytes(value: i64, ty: &CqlType) -> Option<Vec<u8>> {
    Some(match ty {
        CqlType::TinyInt => i8::try_from(value).ok()?.to_be_bytes().to_vec(),
        CqlType::SmallInt => i16::try_from(value).ok()?.to_be_bytes().to_vec(),
        CqlType::Int => i32::try_from(value).ok()?.to_be_bytes().to_vec(),
        CqlType::BigInt | CqlType::Counter | CqlType::Time | CqlType::Timestamp => {
            value.to_be_bytes().to_vec()
        }
        CqlType::Varint => {
            let bytes = value.to_be_bytes();
            // The shortest two's complement form: a leading byte that only repeats the sign is dropped.
            let redundant = |at: usize| {
                let sign = (bytes[at + 1] as i8) < 0;
                bytes[at] == if sign { 0xFF } else { 0 }
            };
            let skip = (0..7).take_while(|at| redundant(*at)).count();
            bytes[skip..].to_vec()
        }
        _ => return None,
    })
}

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
    i32 => Int, i64 => BigInt, f32 => Float, f64 => Double, Uuid => Uuid, IpAddr => Inet);

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Value {
        value.map_or(Value::Null, Into::into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_fit_every_width_that_holds_them_and_no_other() {
        assert_eq!(Value::from(5i64).to_bytes(&CqlType::TinyInt), Ok(Some(vec![5])));
        assert_eq!(Value::from(128i32).to_bytes(&CqlType::TinyInt), Err("integer of this size"));
        assert_eq!(Value::from(128i32).to_bytes(&CqlType::Varint), Ok(Some(vec![0, 128])));
        assert_eq!(Value::from(-1i32).to_bytes(&CqlType::Varint), Ok(Some(vec![0xFF])));
        assert_eq!(Value::from(1i32).to_bytes(&CqlType::Text), Err("integer of this size"));
    }

    #[test]
    fn a_value_comes_back_as_it_went() {
        let values: [(Value, CqlType); 6] = [
            ("x".into(), CqlType::Text),
            (7i32.into(), CqlType::Int),
            (2.5f64.into(), CqlType::Double),
            (Uuid::from_u128(9).into(), CqlType::Uuid),
            (IpAddr::from([127, 0, 0, 1]).into(), CqlType::Inet),
            (true.into(), CqlType::Boolean),
        ];
        for (value, ty) in values {
            let bytes = value.to_bytes(&ty).unwrap().unwrap();
            assert_eq!(Value::from_bytes(&ty, &bytes), value);
        }
    }
}
