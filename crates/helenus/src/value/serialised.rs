//! Values to and from the serialised form of Cassandra's types, by the type of their column.

use super::number::{Decimal, Varint};
use super::value_kinds::Value;
use helenus_model::types::{
    CqlType, Duration, Elements, Fields, VectorElements, normalise, pack, put_element, put_value,
};
use std::net::IpAddr;
use uuid::Uuid;

impl Value {
    /// The serialised value for a column of type `ty`; `None` for null. Integers and floats convert to other widths
    /// where nothing is lost. Text is not parsed as a CQL constant here.
    ///
    /// # Errors
    /// The value's kind in words, if the type does not take it.
    pub(crate) fn to_bytes(&self, ty: &CqlType) -> Result<Option<Vec<u8>>, &'static str> {
        if *self == Value::Null {
            return Ok(None);
        }
        let bytes = match self.of_simple(ty) {
            Some(bytes) => bytes,
            None => self.of_parts(ty)?,
        };
        if ty.validate(&bytes).is_err() {
            return Err(self.kind());
        }
        // Sets and maps are stored in the order of their type, each element once.
        Ok(Some(normalise(ty, &bytes).into_owned()))
    }

    /// The serialised value of a type without parts, and of any type from its bytes.
    fn of_simple(&self, ty: &CqlType) -> Option<Vec<u8>> {
        Some(match (self, ty) {
            (Value::Text(text), CqlType::Text | CqlType::Ascii) => text.as_bytes().to_vec(),
            (Value::Boolean(value), CqlType::Boolean) => vec![u8::from(*value)],
            (Value::TinyInt(_) | Value::SmallInt(_) | Value::Int(_) | Value::BigInt(_), _) => {
                integer_bytes(self.integer()?, ty)?
            }
            (Value::Varint(value), CqlType::Varint) => value.to_be_bytes().to_vec(),
            (Value::Varint(value), _) => integer_bytes(i64::try_from(value).ok()?, ty)?,
            (Value::Decimal(value), CqlType::Decimal) => value.to_bytes(),
            (Value::Float(value), CqlType::Float) => value.to_be_bytes().to_vec(),
            (Value::Float(value), CqlType::Double) => f64::from(*value).to_be_bytes().to_vec(),
            (Value::Double(value), CqlType::Double) => value.to_be_bytes().to_vec(),
            (Value::Timestamp(ms), CqlType::Timestamp) => ms.to_be_bytes().to_vec(),
            (Value::Date(days), CqlType::Date) => days.to_be_bytes().to_vec(),
            (Value::Time(ns), CqlType::Time) => ns.to_be_bytes().to_vec(),
            (Value::Duration(value), CqlType::Duration) => value.to_bytes(),
            (Value::Uuid(uuid), CqlType::Uuid | CqlType::TimeUuid) => uuid.as_bytes().to_vec(),
            (Value::Inet(IpAddr::V4(address)), CqlType::Inet) => address.octets().to_vec(),
            (Value::Inet(IpAddr::V6(address)), CqlType::Inet) => address.octets().to_vec(),
            (Value::Blob(bytes), _) => bytes.clone(),
            _ => return None,
        })
    }

    /// The serialised value of a type with parts. Elements of collections are never null, fields may be.
    fn of_parts(&self, ty: &CqlType) -> Result<Vec<u8>, &'static str> {
        let refused = || self.kind();
        let mut out = Vec::new();
        match (self, ty) {
            (Value::List(values), CqlType::List { element, .. })
            | (Value::List(values) | Value::Set(values), CqlType::Set { element, .. }) => {
                let values = all_bytes(values, element).ok_or_else(refused)?;
                pack(values.len(), values.iter().map(|value| Some(&value[..])), &mut out);
            }
            (Value::Map(entries), CqlType::Map { key, value, .. }) => {
                let mut values = Vec::with_capacity(entries.len() * 2);
                for (its_key, its_value) in entries {
                    values.push(part(its_key, key).ok_or_else(refused)?);
                    values.push(part(its_value, value).ok_or_else(refused)?);
                }
                pack(entries.len(), values.iter().map(|value| Some(&value[..])), &mut out);
            }
            (Value::List(values) | Value::Vector(values), CqlType::Vector { element, dimension }) => {
                if values.len() != *dimension as usize {
                    return Err(refused());
                }
                for value in all_bytes(values, element).ok_or_else(refused)? {
                    put_element(element, &value, &mut out);
                }
            }
            (Value::Tuple(values), CqlType::Tuple(types)) if values.len() <= types.len() => {
                for (value, ty) in values.iter().zip(types.iter()) {
                    put_value(value.to_bytes(ty).map_err(|_| refused())?.as_deref(), &mut out);
                }
            }
            (Value::Udt(fields), CqlType::Udt(udt)) => {
                let is_known = |name: &str| udt.fields.iter().any(|(known, _)| **known == *name);
                if !fields.iter().all(|(name, _)| is_known(name)) {
                    return Err(refused());
                }
                for (name, ty) in &udt.fields {
                    let value = self.field(name).unwrap_or(&Value::Null);
                    put_value(value.to_bytes(ty).map_err(|_| refused())?.as_deref(), &mut out);
                }
            }
            _ => return Err(refused()),
        }
        Ok(out)
    }

    /// The value of a column of type `ty` from its serialised form. Bytes that are no value of the type, and a type whose class is
    /// not known here, give a `Blob`.
    pub(crate) fn from_bytes(ty: &CqlType, bytes: &[u8]) -> Value {
        simple(ty, bytes).or_else(|| of_parts(ty, bytes)).unwrap_or_else(|| Value::Blob(bytes.to_vec()))
    }
}

fn simple(ty: &CqlType, bytes: &[u8]) -> Option<Value> {
    Some(match ty {
        CqlType::Text | CqlType::Ascii => Value::Text(String::from_utf8(bytes.to_vec()).ok()?),
        CqlType::Boolean => Value::Boolean(*bytes.first()? != 0),
        CqlType::TinyInt => Value::TinyInt(i8::from_be_bytes(*bytes.first_chunk()?)),
        CqlType::SmallInt => Value::SmallInt(i16::from_be_bytes(*bytes.first_chunk()?)),
        CqlType::Int => Value::Int(i32::from_be_bytes(*bytes.first_chunk()?)),
        CqlType::BigInt | CqlType::Counter => Value::BigInt(i64::from_be_bytes(*bytes.first_chunk()?)),
        CqlType::Varint if !bytes.is_empty() => Value::Varint(Varint::from_be_bytes(bytes)),
        CqlType::Decimal => Value::Decimal(Decimal::from_bytes(bytes)?),
        CqlType::Float => Value::Float(f32::from_be_bytes(*bytes.first_chunk()?)),
        CqlType::Double => Value::Double(f64::from_be_bytes(*bytes.first_chunk()?)),
        CqlType::Timestamp => Value::Timestamp(i64::from_be_bytes(*bytes.first_chunk()?)),
        CqlType::Date => Value::Date(u32::from_be_bytes(*bytes.first_chunk()?)),
        CqlType::Time => Value::Time(i64::from_be_bytes(*bytes.first_chunk()?)),
        CqlType::Duration => Value::Duration(Duration::from_bytes(bytes)?),
        CqlType::Uuid | CqlType::TimeUuid => Value::Uuid(Uuid::from_slice(bytes).ok()?),
        CqlType::Inet if bytes.len() == 4 => Value::Inet(IpAddr::from(*bytes.first_chunk::<4>()?)),
        CqlType::Inet => Value::Inet(IpAddr::from(*bytes.first_chunk::<16>()?)),
        _ => return None,
    })
}

fn of_parts(ty: &CqlType, bytes: &[u8]) -> Option<Value> {
    let value =
        |ty: &CqlType, bytes: Option<&[u8]>| bytes.map_or(Value::Null, |bytes| Value::from_bytes(ty, bytes));
    if ty.validate(bytes).is_err() {
        return None;
    }
    Some(match ty {
        CqlType::List { element, .. } => {
            Value::List(Elements::of_list(bytes).map(|bytes| value(element, bytes)).collect())
        }
        CqlType::Set { element, .. } => {
            Value::Set(Elements::of_list(bytes).map(|bytes| value(element, bytes)).collect())
        }
        CqlType::Map { key: key_type, value: value_type, .. } => {
            let mut parts = Elements::of_map(bytes);
            let mut entries = Vec::new();
            while let (Some(key), Some(its_value)) = (parts.next(), parts.next()) {
                entries.push((value(key_type, key), value(value_type, its_value)));
            }
            Value::Map(entries)
        }
        CqlType::Tuple(types) => {
            let mut fields = Fields::of(bytes);
            Value::Tuple(types.iter().map(|ty| value(ty, fields.next().flatten())).collect())
        }
        CqlType::Udt(udt) => {
            let mut fields = Fields::of(bytes);
            let field = |(name, ty): &(std::sync::Arc<str>, CqlType)| {
                (name.to_string(), value(ty, fields.next().flatten()))
            };
            Value::Udt(udt.fields.iter().map(field).collect())
        }
        CqlType::Vector { element, .. } => Value::Vector(
            VectorElements::of(element, bytes).map(|bytes| Value::from_bytes(element, bytes)).collect(),
        ),
        _ => return None,
    })
}

/// The serialised elements of a collection; `None` if one is null or not of the type.
fn all_bytes(values: &[Value], element: &CqlType) -> Option<Vec<Vec<u8>>> {
    values.iter().map(|value| part(value, element)).collect()
}

fn part(value: &Value, ty: &CqlType) -> Option<Vec<u8>> {
    value.to_bytes(ty).ok().flatten()
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
        CqlType::Varint => Varint::from(value).to_be_bytes().to_vec(),
        CqlType::Decimal => Decimal { scale: 0, unscaled: value.into() }.to_bytes(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use helenus_model::types::UserType;
    use std::sync::Arc;

    fn list(element: CqlType) -> CqlType {
        CqlType::List { element: Arc::new(element), frozen: true }
    }

    fn udt() -> CqlType {
        let fields = vec![("street".into(), CqlType::Text), ("zip".into(), CqlType::Int)];
        CqlType::Udt(Arc::new(UserType { keyspace: "k".into(), name: "a".into(), fields, frozen: true }))
    }

    #[test]
    fn integers_fit_every_width_that_holds_them_and_no_other() {
        assert_eq!(Value::from(5i64).to_bytes(&CqlType::TinyInt), Ok(Some(vec![5])));
        assert_eq!(Value::from(128i32).to_bytes(&CqlType::TinyInt), Err("integer of this size"));
        assert_eq!(Value::from(128i32).to_bytes(&CqlType::Varint), Ok(Some(vec![0, 128])));
        assert_eq!(Value::from(-1i32).to_bytes(&CqlType::Varint), Ok(Some(vec![0xFF])));
        assert_eq!(Value::from(1i32).to_bytes(&CqlType::Text), Err("integer of this size"));
    }

    #[test]
    fn a_value_of_every_type_comes_back_as_it_went() {
        let map =
            CqlType::Map { key: Arc::new(CqlType::Text), value: Arc::new(list(CqlType::Int)), frozen: true };
        let set = CqlType::Set { element: Arc::new(CqlType::Int), frozen: true };
        let vector = CqlType::Vector { element: Arc::new(CqlType::Float), dimension: 2 };
        let texts = CqlType::Vector { element: Arc::new(CqlType::Text), dimension: 2 };
        let tuple = CqlType::Tuple(Arc::new([CqlType::Int, CqlType::Text]));
        let duration = Duration { months: 1, days: 2, nanoseconds: 3 };
        let values: Vec<(Value, CqlType)> = vec![
            ("x".into(), CqlType::Text),
            ("x".into(), CqlType::Ascii),
            (vec![1u8, 2].into(), CqlType::Blob),
            (true.into(), CqlType::Boolean),
            (7i8.into(), CqlType::TinyInt),
            (7i16.into(), CqlType::SmallInt),
            (7i32.into(), CqlType::Int),
            (7i64.into(), CqlType::BigInt),
            (7i64.into(), CqlType::Counter),
            (Value::Varint(i128::MAX.into()), CqlType::Varint),
            (Value::Decimal("-1.50".parse().unwrap()), CqlType::Decimal),
            (1.5f32.into(), CqlType::Float),
            (2.5f64.into(), CqlType::Double),
            (Value::Timestamp(-1), CqlType::Timestamp),
            (Value::Date(1 << 31), CqlType::Date),
            (Value::Time(1), CqlType::Time),
            (duration.into(), CqlType::Duration),
            (Uuid::from_u128(9).into(), CqlType::Uuid),
            (IpAddr::from([127, 0, 0, 1]).into(), CqlType::Inet),
            (IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1u16]).into(), CqlType::Inet),
            (vec!["b", "a"].into(), list(CqlType::Text)),
            (Value::Set(vec![1i32.into(), 2i32.into()]), set),
            (Value::Map(vec![("k".into(), vec![1i32, 2].into())]), map),
            (Value::Tuple(vec![1i32.into(), Value::Null]), tuple),
            (Value::udt([("street", "s".into()), ("zip", Value::Null)]), udt()),
            (Value::Vector(vec![1.5f32.into(), 2.5f32.into()]), vector),
            (Value::Vector(vec!["a".into(), "".into()]), texts),
        ];
        for (value, ty) in values {
            let bytes = value.to_bytes(&ty).unwrap().unwrap();
            assert_eq!(Value::from_bytes(&ty, &bytes), value, "{ty}");
        }
    }

    #[test]
    fn sets_are_written_in_their_order_and_fields_by_their_names() {
        let set = CqlType::Set { element: Arc::new(CqlType::Int), frozen: true };
        let bytes = Value::List(vec![2i32.into(), 1i32.into(), 2i32.into()]).to_bytes(&set).unwrap().unwrap();
        assert_eq!(Value::from_bytes(&set, &bytes), Value::Set(vec![1i32.into(), 2i32.into()]));
        let bytes = Value::udt([("zip", 1i32.into())]).to_bytes(&udt()).unwrap().unwrap();
        assert_eq!(
            Value::from_bytes(&udt(), &bytes),
            Value::udt([("street", Value::Null), ("zip", 1i32.into())])
        );
    }

    #[test]
    fn parts_that_do_not_fit_are_refused() {
        let two = CqlType::Vector { element: Arc::new(CqlType::Float), dimension: 2 };
        for (value, ty) in [
            (Value::List(vec![Value::Null]), list(CqlType::Int)),
            (vec!["x"].into(), list(CqlType::Int)),
            (vec![1.0f32].into(), two),
            (Value::udt([("city", "x".into())]), udt()),
            (Value::udt([("zip", "x".into())]), udt()),
            (Value::Tuple(vec![1i32.into(), 2i32.into()]), CqlType::Tuple(Arc::new([CqlType::Int]))),
            (Value::Map(Vec::new()), list(CqlType::Int)),
        ] {
            assert!(value.to_bytes(&ty).is_err(), "{value:?}");
        }
    }
}
