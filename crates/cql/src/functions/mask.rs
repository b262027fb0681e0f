//! Functions that hide values (`functions.masking`).

use super::digest::{self, Digest};
use super::time;
use crate::error::{CqlError, Result};
use helenus_model::types::{CqlType, Duration, pack, put_element, put_value};

/// The default replacement of masked characters.
const PADDING: u16 = b'*' as u16;

/// The default masked value of a type (`AbstractType.getMaskedValue`).
pub(super) fn default_of(ty: &CqlType) -> Vec<u8> {
    match ty {
        CqlType::Ascii | CqlType::Text => b"****".to_vec(),
        CqlType::Blob | CqlType::Empty | CqlType::Custom(_) => Vec::new(),
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
        CqlType::List { .. } | CqlType::Set { .. } | CqlType::Map { .. } => {
            let mut out = Vec::new();
            pack(0, [], &mut out);
            out
        }
        CqlType::Tuple(types) => fields(types.iter()),
        CqlType::Udt(udt) => fields(udt.fields.iter().map(|(_, ty)| ty)),
        CqlType::Vector { element, dimension } => {
            let (value, mut out) = (default_of(element), Vec::new());
            (0..*dimension).for_each(|_| put_element(element, &value, &mut out));
            out
        }
    }
}

fn fields<'t>(types: impl Iterator<Item = &'t CqlType>) -> Vec<u8> {
    let mut out = Vec::new();
    types.for_each(|ty| put_value(Some(&default_of(ty)), &mut out));
    out
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
                        "The padding argument for function {function} should be single-character, but '{text}' has {} characters.",
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
