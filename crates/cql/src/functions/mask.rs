//! Functions that hide values (`functions.masking`).

use super::digest::{self, Digest};
use super::time;
use crate::error::{CqlError, Result};
use crate::json::shown;
use helenus_model::types::{CqlType, Duration, pack};
use helenus_model::vint;

/// The default replacement of masked characters.
const PADDING: u16 = b'*' as u16;

/// The default masked value of a type (`AbstractType.getMaskedValue`). The type decides its length, whatever is masked:
/// the caller has checked `default_length`.
pub(super) fn default_of(ty: &CqlType) -> Vec<u8> {
    let mut out = Vec::with_capacity(default_length(ty).unwrap_or(0));
    put_default(ty, &mut out);
    out
}

fn put_default(ty: &CqlType, out: &mut Vec<u8>) {
    match ty {
        CqlType::Tuple(types) => types.iter().for_each(|ty| put_field(ty, out)),
        CqlType::Udt(udt) => udt.fields.iter().for_each(|(_, ty)| put_field(ty, out)),
        CqlType::Vector { element, dimension } => {
            let start = out.len();
            if element.fixed_length().is_none() {
                vint::write_unsigned(default_length(element).unwrap_or(0) as u64, out);
            }
            put_default(element, out);
            // All elements are alike: what is there is doubled.
            let each = out.len() - start;
            let whole = each * *dimension as usize;
            while out.len() - start < whole {
                let more = (out.len() - start).min(whole - (out.len() - start));
                out.extend_from_within(start..start + more);
            }
        }
        CqlType::List { .. } | CqlType::Set { .. } | CqlType::Map { .. } => pack(0, [], out),
        _ => out.extend_from_slice(&simple_default(ty)),
    }
}

fn put_field(ty: &CqlType, out: &mut Vec<u8>) {
    let length = i32::try_from(default_length(ty).unwrap_or(0)).unwrap_or(i32::MAX);
    out.extend_from_slice(&length.to_be_bytes());
    put_default(ty, out);
}

/// The default of a type without parts: a few bytes.
fn simple_default(ty: &CqlType) -> Vec<u8> {
    match ty {
        CqlType::Ascii | CqlType::Text => b"****".to_vec(),
        CqlType::Boolean | CqlType::TinyInt | CqlType::Varint => vec![0],
        CqlType::SmallInt => vec![0; 2],
        CqlType::Int | CqlType::Float | CqlType::Inet => vec![0; 4],
        CqlType::BigInt | CqlType::Counter | CqlType::Double | CqlType::Time | CqlType::Timestamp => {
            vec![0; 8]
        }
        CqlType::Date => time::from_millis(ty, 0),
        CqlType::Decimal => vec![0; 5],
        CqlType::Duration => Duration::default().to_bytes(),
        CqlType::TimeUuid => time::min_time_uuid(0),
        CqlType::Uuid => vec![0; 16],
        _ => Vec::new(),
    }
}

/// The bytes of the default of a type; `None` if there is no such number.
pub(super) fn default_length(ty: &CqlType) -> Option<usize> {
    let field = |sum: usize, ty: &CqlType| sum.checked_add(4)?.checked_add(default_length(ty)?);
    match ty {
        CqlType::Tuple(types) => types.iter().try_fold(0, field),
        CqlType::Udt(udt) => udt.fields.iter().map(|(_, ty)| ty).try_fold(0, field),
        CqlType::Vector { element, dimension } => {
            let value = default_length(element)?;
            let header = match element.fixed_length() {
                Some(_) => 0,
                None => vint::unsigned_length(value as u64),
            };
            value.checked_add(header)?.checked_mul(*dimension as usize)
        }
        CqlType::List { .. } | CqlType::Set { .. } | CqlType::Map { .. } => Some(4),
        _ => Some(simple_default(ty).len()),
    }
}

/// Masks the inner or the outer characters of a text. Characters are UTF-16 units, as in Java.
///
/// `function` is the function's name. `arguments` are the text, the numbers of characters at the beginning and at the
/// end, and the padding.
///
/// # Errors
/// The padding is not a single character.
pub(super) fn partial(inner: bool, function: &str, arguments: &[Option<&[u8]>]) -> Result<Option<Vec<u8>>> {
    let argument = |index: usize| arguments.get(index).copied().flatten();
    let padding = match argument(3) {
        None => PADDING,
        Some(bytes) => {
            let text = String::from_utf8_lossy(bytes);
            let units: Vec<u16> = text.encode_utf16().collect();
            match units[..] {
                [only] => only,
                _ => {
                    return Err(CqlError::Invalid(format!(
                        "The padding argument for function {function} should be single-character, but '{}' has {} characters.",
                        shown(&text),
                        units.len()
                    )));
                }
            }
        }
    };
    let Some(value) = argument(0) else { return Ok(None) };
    let number = |index: usize| {
        let bytes = argument(index).and_then(|bytes| bytes.first_chunk::<4>());
        bytes.map_or(0, |bytes| i64::from(i32::from_be_bytes(*bytes)))
    };
    let (begin, end) = (number(1), number(2));
    let units: Vec<u16> = String::from_utf8_lossy(value).encode_utf16().collect();
    let last = units.len() as i64 - 1 - end;
    let masked: Vec<u16> = units
        .iter()
        .zip(0_i64..)
        .map(|(unit, at)| if (at >= begin && at <= last) == inner { padding } else { *unit })
        .collect();
    Ok(Some(String::from_utf16_lossy(&masked).into_bytes()))
}

/// The hash of a value by an algorithm with Java's name.
///
/// # Errors
/// There is no algorithm with this name.
pub(super) fn hash(value: Option<&[u8]>, algorithm: Option<&[u8]>) -> Result<Option<Vec<u8>>> {
    let name = algorithm.map_or("SHA-256".into(), String::from_utf8_lossy);
    let Some(digest) = Digest::named(&name) else {
        return Err(CqlError::Invalid(format!("Hash algorithm not found: {name}")));
    };
    Ok(value.map(|value| digest::of(digest, value)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn vector(element: CqlType, dimension: u32) -> CqlType {
        CqlType::Vector { element: Arc::new(element), dimension }
    }

    #[test]
    fn the_length_of_a_default_is_known_before_it_is_made() {
        let list = CqlType::List { element: Arc::new(CqlType::Int), frozen: true };
        let tuple = CqlType::Tuple([CqlType::Text, vector(CqlType::Int, 70), list.clone()].into());
        for ty in [
            CqlType::Blob,
            CqlType::Date,
            CqlType::Duration,
            list,
            vector(CqlType::Text, 1000),
            vector(vector(CqlType::Boolean, 3), 5),
            vector(vector(CqlType::Text, 300), 7),
            vector(tuple.clone(), 9),
            tuple,
        ] {
            let made = default_of(&ty);
            assert_eq!(Some(made.len()), default_length(&ty), "{ty}");
            assert!(ty.validate(&made).is_ok(), "{ty}");
        }
        assert_eq!(default_length(&vector(CqlType::Int, u32::MAX)), Some(4 * u32::MAX as usize));
        let endless = (0..3).fold(CqlType::Int, |ty, _| vector(ty, u32::MAX));
        assert_eq!(default_length(&endless), None, "more than any memory");
    }
}
