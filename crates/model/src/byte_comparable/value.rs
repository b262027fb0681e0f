//! Encodes and decodes one value of any type.

use super::source::Source;
use super::{composite, decimal, escape, nested, number};
use crate::types::{
    Composite, CqlType, DATE_CLASS, Elements, LEXICAL_UUID_CLASS, SIGNED_BYTES, TypeError, VectorElements,
    uuid_halves, uuid_time_back, uuid_time_first, uuid_version,
};

/// The NaN that stands for all of them in the encoding. They are equal and after infinity, as `Float.compare` of Java
/// has them. Cassandra encodes their bits, so its own two orders of a NaN with the sign bit, which x86 processors make of
/// 0.0/0.0, differ.
const FLOAT_NAN: [u8; 4] = 0x7FC0_0000_u32.to_be_bytes();
/// The same of a double.
const DOUBLE_NAN: [u8; 8] = 0x7FF8_0000_0000_0000_u64.to_be_bytes();

/// Whether a value has bytes in the encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Encoded {
    /// Its bytes were appended.
    Bytes,
    /// Nothing was appended: the value is empty, and the type's empty value has no encoding. The separator before it
    /// must tell.
    Nothing,
}

/// Appends the ordered encoding of one serialised value.
///
/// # Errors
/// The error of [`CqlType::validate`] if the value's length is wrong for its type; `out` then ends with part of an
/// encoding. Text is not checked for validity.
#[inline]
pub fn encode_value(
    ty: &CqlType,
    reversed: bool,
    bytes: &[u8],
    out: &mut Vec<u8>,
) -> Result<Encoded, TypeError> {
    let start = out.len();
    let encoded = append(ty, bytes, out)?;
    if reversed {
        for byte in out.iter_mut().skip(start) {
            *byte = !*byte;
        }
    }
    Ok(encoded)
}

/// Decodes the value at `position`, advances `position` past it, and appends the serialised value to `out`. It is equal
/// to the encoded value; the module documentation tells where its bytes may differ.
///
/// # Errors
/// [`TypeError::Ordered`] if the bytes do not encode a value of this type.
pub fn decode_value(
    ty: &CqlType,
    reversed: bool,
    encoded: &[u8],
    position: &mut usize,
    out: &mut Vec<u8>,
) -> Result<(), TypeError> {
    let mut source = Source::new(encoded, *position);
    source.set_reversed(reversed);
    read(ty, &mut source, out)?;
    *position = source.position();
    Ok(())
}

/// Appends a value's encoding in ascending order.
#[inline]
pub(super) fn append(ty: &CqlType, bytes: &[u8], out: &mut Vec<u8>) -> Result<Encoded, TypeError> {
    match ty {
        CqlType::Ascii | CqlType::Text | CqlType::Blob | CqlType::Inet | CqlType::Duration => {
            escape::encode(bytes, out);
            return Ok(Encoded::Bytes);
        }
        CqlType::Custom(class) if !matches!(&**class, LEXICAL_UUID_CLASS | DATE_CLASS) => {
            if let Some(composite) = Composite::of(class) {
                return composite::encode(&composite, bytes, out);
            }
            escape::encode(bytes, out);
            return Ok(Encoded::Bytes);
        }
        CqlType::Empty => return Ok(Encoded::Nothing),
        _ if bytes.is_empty() => return Ok(Encoded::Nothing),
        _ => {}
    }
    let appended = match ty {
        CqlType::Int => bytes.try_into().ok().map(|bytes: [u8; 4]| append_signed(bytes, out)),
        CqlType::BigInt | CqlType::Counter => {
            bytes.try_into().ok().map(|bytes| number::encode_i64(i64::from_be_bytes(bytes), out))
        }
        CqlType::Timestamp => bytes.try_into().ok().map(|bytes: [u8; 8]| append_signed(bytes, out)),
        CqlType::SmallInt => bytes.try_into().ok().map(|bytes: [u8; 2]| append_signed(bytes, out)),
        CqlType::TinyInt => bytes.try_into().ok().map(|bytes: [u8; 1]| append_signed(bytes, out)),
        CqlType::Float => bytes.try_into().ok().map(|bytes: [u8; 4]| {
            let is_nan = f32::from_be_bytes(bytes).is_nan();
            append_float(if is_nan { FLOAT_NAN } else { bytes }, out);
        }),
        CqlType::Double => bytes.try_into().ok().map(|bytes: [u8; 8]| {
            let is_nan = f64::from_be_bytes(bytes).is_nan();
            append_float(if is_nan { DOUBLE_NAN } else { bytes }, out);
        }),
        CqlType::Boolean => <[u8; 1]>::try_from(bytes).ok().map(|[byte]| out.push(u8::from(byte != 0))),
        CqlType::Date => bytes.try_into().ok().map(|bytes: [u8; 4]| out.extend_from_slice(&bytes)),
        CqlType::Time => bytes.try_into().ok().map(|bytes: [u8; 8]| out.extend_from_slice(&bytes)),
        CqlType::Custom(class) if &**class == DATE_CLASS => {
            bytes.try_into().ok().map(|bytes: [u8; 8]| out.extend_from_slice(&bytes))
        }
        CqlType::Uuid | CqlType::TimeUuid | CqlType::Custom(_) => {
            uuid_halves(bytes).map(|halves| append_uuid(ty, halves, out))
        }
        CqlType::Varint => {
            number::encode_varint(bytes, out);
            Some(())
        }
        CqlType::Decimal => decimal::encode(bytes, out),
        nested => {
            append_nested(nested, bytes, out)?;
            Some(())
        }
    };
    match appended {
        Some(()) => Ok(Encoded::Bytes),
        None => Err(wrong_length(ty, bytes)),
    }
}

/// The error of [`CqlType::validate`] for a value that it must refuse.
#[cold]
fn wrong_length(ty: &CqlType, bytes: &[u8]) -> TypeError {
    let refusal = ty.validate(bytes).err();
    refusal.unwrap_or(TypeError::Length {
        expected: "A value without an ordered encoding",
        length_bytes: bytes.len(),
    })
}

fn append_nested(ty: &CqlType, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), TypeError> {
    match ty {
        CqlType::List { element, .. } | CqlType::Set { element, .. } => {
            nested::collection(Elements::of_list(bytes), &[element], out)
        }
        CqlType::Map { key, value, .. } => nested::collection(Elements::of_map(bytes), &[key, value], out),
        CqlType::Tuple(types) => nested::fields(bytes, types.iter(), out),
        CqlType::Udt(udt) => nested::fields(bytes, udt.fields.iter().map(|(_, ty)| ty), out),
        CqlType::Vector { element, .. } => nested::vector(VectorElements::of(element, bytes), element, out),
        _ => Err(wrong_length(ty, bytes)),
    }
}

fn append_signed<const N: usize>(mut bytes: [u8; N], out: &mut Vec<u8>) {
    if let Some(first) = bytes.first_mut() {
        *first ^= 0x80;
    }
    out.extend_from_slice(&bytes);
}

/// A negative number has all its bits flipped, any other only its sign bit.
fn append_float<const N: usize>(mut bytes: [u8; N], out: &mut Vec<u8>) {
    if bytes.first().is_some_and(|first| *first >= 0x80) {
        bytes = bytes.map(|byte| !byte);
        out.extend_from_slice(&bytes);
    } else {
        append_signed(bytes, out);
    }
}

fn append_uuid(ty: &CqlType, (high, low): (u64, u64), out: &mut Vec<u8>) {
    let (high, low) = match ty {
        CqlType::TimeUuid => (uuid_time_first(high), low ^ SIGNED_BYTES),
        CqlType::Uuid if uuid_version(high) == 1 => (uuid_time_first(high), low),
        // The version moves to the top; the bits above it move down.
        CqlType::Uuid => (uuid_version(high) << 60 | (high >> 4 & 0x0FFF_FFFF_FFFF_F000) | high & 0xFFF, low),
        _ => (high ^ 1 << 63, low ^ 1 << 63),
    };
    out.extend_from_slice(&high.to_be_bytes());
    out.extend_from_slice(&low.to_be_bytes());
}

/// Appends the value of type `ty` at `source`.
pub(super) fn read(ty: &CqlType, source: &mut Source<'_>, out: &mut Vec<u8>) -> Result<(), TypeError> {
    match ty {
        CqlType::Int => out.extend_from_slice(&read_signed::<4>(source)?),
        CqlType::SmallInt => out.extend_from_slice(&read_signed::<2>(source)?),
        CqlType::TinyInt => out.extend_from_slice(&read_signed::<1>(source)?),
        CqlType::Timestamp => out.extend_from_slice(&read_signed::<8>(source)?),
        CqlType::BigInt | CqlType::Counter => {
            out.extend_from_slice(&number::decode_i64(source)?.to_be_bytes())
        }
        CqlType::Varint => number::decode_varint(source, out)?,
        CqlType::Decimal => decimal::decode(source, out)?,
        CqlType::Float => out.extend_from_slice(&read_float::<4>(source)?),
        CqlType::Double => out.extend_from_slice(&read_float::<8>(source)?),
        CqlType::Boolean => match source.next()? {
            byte @ (0 | 1) => out.push(byte),
            _ => return Err(source.error("no boolean")),
        },
        CqlType::Date => out.extend_from_slice(&source.array::<4>()?),
        CqlType::Time => out.extend_from_slice(&source.array::<8>()?),
        CqlType::Empty => {}
        CqlType::List { element, .. } | CqlType::Set { element, .. } => {
            nested::read_collection(source, &[element], out)?;
        }
        CqlType::Map { key, value, .. } => nested::read_collection(source, &[key, value], out)?,
        CqlType::Tuple(types) => nested::read_fields(source, types.iter(), out)?,
        CqlType::Udt(udt) => nested::read_fields(source, udt.fields.iter().map(|(_, ty)| ty), out)?,
        CqlType::Vector { element, dimension } => nested::read_vector(source, element, *dimension, out)?,
        CqlType::Uuid | CqlType::TimeUuid => read_uuid(ty, source, out)?,
        CqlType::Custom(class) if &**class == LEXICAL_UUID_CLASS => read_uuid(ty, source, out)?,
        CqlType::Custom(class) if &**class == DATE_CLASS => out.extend_from_slice(&source.array::<8>()?),
        CqlType::Custom(class) => match Composite::of(class) {
            Some(composite) => composite::decode(&composite, source, out)?,
            None => escape::decode(source, out)?,
        },
        CqlType::Ascii | CqlType::Text | CqlType::Blob | CqlType::Inet | CqlType::Duration => {
            escape::decode(source, out)?;
        }
    }
    Ok(())
}

fn read_signed<const N: usize>(source: &mut Source<'_>) -> Result<[u8; N], TypeError> {
    let mut bytes = source.array::<N>()?;
    if let Some(first) = bytes.first_mut() {
        *first ^= 0x80;
    }
    Ok(bytes)
}

fn read_float<const N: usize>(source: &mut Source<'_>) -> Result<[u8; N], TypeError> {
    if source.peek().is_some_and(|first| first < 0x80) {
        return Ok(source.array::<N>()?.map(|byte| !byte));
    }
    read_signed(source)
}

fn read_uuid(ty: &CqlType, source: &mut Source<'_>, out: &mut Vec<u8>) -> Result<(), TypeError> {
    let high = u64::from_be_bytes(source.array()?);
    let low = u64::from_be_bytes(source.array()?);
    let (high, low) = match ty {
        CqlType::TimeUuid => (uuid_time_back(high), low ^ SIGNED_BYTES),
        CqlType::Uuid if high >> 60 == 1 => (uuid_time_back(high), low),
        CqlType::Uuid => (high << 4 & 0xFFFF_FFFF_FFFF_0000 | high >> 60 << 12 | high & 0xFFF, low),
        _ => (high ^ 1 << 63, low ^ 1 << 63),
    };
    out.extend_from_slice(&high.to_be_bytes());
    out.extend_from_slice(&low.to_be_bytes());
    Ok(())
}
