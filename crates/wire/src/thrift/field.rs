//! The values of struct fields: numbers, strings, lists, maps, enumerations, other structs.

use super::ThriftError;
use super::binary::{Reader, Type, put_binary, put_i32, put_i64, put_list, put_map};
use std::borrow::Cow;

/// A value that a field, a list or a map can contain.
pub trait Field<'a>: Sized {
    /// Its type on the wire.
    const TYPE: Type;

    /// Reads a value.
    ///
    /// # Errors
    /// The bytes are not a value of this type.
    fn read(reader: &mut Reader<'a>) -> Result<Self, ThriftError>;

    /// Appends the value.
    fn write(&self, out: &mut Vec<u8>);
}

impl Field<'_> for bool {
    const TYPE: Type = Type::Bool;

    fn read(reader: &mut Reader<'_>) -> Result<bool, ThriftError> {
        Ok(reader.byte()? != 0)
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }
}

impl Field<'_> for i32 {
    const TYPE: Type = Type::I32;

    fn read(reader: &mut Reader<'_>) -> Result<i32, ThriftError> {
        reader.i32()
    }

    fn write(&self, out: &mut Vec<u8>) {
        put_i32(*self, out);
    }
}

impl Field<'_> for i64 {
    const TYPE: Type = Type::I64;

    fn read(reader: &mut Reader<'_>) -> Result<i64, ThriftError> {
        reader.i64()
    }

    fn write(&self, out: &mut Vec<u8>) {
        put_i64(*self, out);
    }
}

impl Field<'_> for f64 {
    const TYPE: Type = Type::Double;

    fn read(reader: &mut Reader<'_>) -> Result<f64, ThriftError> {
        reader.i64().map(|bits| f64::from_bits(bits.cast_unsigned()))
    }

    fn write(&self, out: &mut Vec<u8>) {
        put_i64(self.to_bits().cast_signed(), out);
    }
}

impl<'a> Field<'a> for &'a [u8] {
    const TYPE: Type = Type::String;

    #[inline]
    fn read(reader: &mut Reader<'a>) -> Result<&'a [u8], ThriftError> {
        reader.binary()
    }

    fn write(&self, out: &mut Vec<u8>) {
        put_binary(self, out);
    }
}

impl<'a> Field<'a> for &'a str {
    const TYPE: Type = Type::String;

    fn read(reader: &mut Reader<'a>) -> Result<&'a str, ThriftError> {
        std::str::from_utf8(reader.binary()?).map_err(|_| ThriftError::Text)
    }

    fn write(&self, out: &mut Vec<u8>) {
        put_binary(self.as_bytes(), out);
    }
}

impl<'a> Field<'a> for Cow<'a, str> {
    const TYPE: Type = Type::String;

    fn read(reader: &mut Reader<'a>) -> Result<Cow<'a, str>, ThriftError> {
        <&str>::read(reader).map(Cow::Borrowed)
    }

    fn write(&self, out: &mut Vec<u8>) {
        put_binary(self.as_bytes(), out);
    }
}

impl<'a> Field<'a> for Cow<'a, [u8]> {
    const TYPE: Type = Type::String;

    fn read(reader: &mut Reader<'a>) -> Result<Cow<'a, [u8]>, ThriftError> {
        reader.binary().map(Cow::Borrowed)
    }

    fn write(&self, out: &mut Vec<u8>) {
        put_binary(self, out);
    }
}

impl<'a, T: Field<'a>> Field<'a> for Vec<T> {
    const TYPE: Type = Type::List;

    fn read(reader: &mut Reader<'a>) -> Result<Vec<T>, ThriftError> {
        let (ty, count) = reader.list()?;
        if count > 0 && ty != T::TYPE {
            return Err(ThriftError::UnknownType(ty as u8));
        }
        reader.enter()?;
        let mut list = Vec::with_capacity(count.min(1024));
        for _ in 0..count {
            list.push(T::read(reader)?);
        }
        reader.leave();
        Ok(list)
    }

    fn write(&self, out: &mut Vec<u8>) {
        put_list(T::TYPE, self.len(), out);
        for element in self {
            element.write(out);
        }
    }
}

/// A map, as its pairs in the order of the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Map<K, V>(pub Vec<(K, V)>);

impl<'a, K: Field<'a>, V: Field<'a>> Field<'a> for Map<K, V> {
    const TYPE: Type = Type::Map;

    fn read(reader: &mut Reader<'a>) -> Result<Map<K, V>, ThriftError> {
        let (key, value, count) = reader.map()?;
        if count > 0 && (key, value) != (K::TYPE, V::TYPE) {
            return Err(ThriftError::UnknownType(key as u8));
        }
        reader.enter()?;
        let mut pairs = Vec::with_capacity(count.min(1024));
        for _ in 0..count {
            pairs.push((K::read(reader)?, V::read(reader)?));
        }
        reader.leave();
        Ok(Map(pairs))
    }

    fn write(&self, out: &mut Vec<u8>) {
        put_map(K::TYPE, V::TYPE, self.0.len(), out);
        for (key, value) in &self.0 {
            key.write(out);
            value.write(out);
        }
    }
}
