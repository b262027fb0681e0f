//! CAST between native types (`CastFcts`).

use super::number::{NUMBERS, Number};
use crate::error::{CqlError, Result};
use helenus_model::types::{ConstantKind, CqlType, parse_constant, to_cql_literal};
use num_bigint::BigInt;

/// The kind of a cast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cast {
    /// To its text.
    Text,
    /// Between numbers, with Java's narrowing and widening.
    Number,
    /// Between times.
    Time,
}

/// The types that can be cast to `to`, each with the kind of the cast.
pub(super) fn sources(to: &CqlType) -> impl Iterator<Item = (CqlType, Cast)> + use<> {
    let to = to.clone();
    let others: &[(CqlType, Cast)] = match to {
        CqlType::Text | CqlType::Ascii => &[
            (CqlType::Ascii, Cast::Text),
            (CqlType::Inet, Cast::Text),
            (CqlType::Boolean, Cast::Text),
            (CqlType::TimeUuid, Cast::Text),
            (CqlType::Timestamp, Cast::Text),
            (CqlType::Date, Cast::Text),
            (CqlType::Time, Cast::Text),
            (CqlType::Uuid, Cast::Text),
        ],
        CqlType::Date => &[(CqlType::TimeUuid, Cast::Time), (CqlType::Timestamp, Cast::Time)],
        CqlType::Timestamp => &[(CqlType::TimeUuid, Cast::Time), (CqlType::Date, Cast::Time)],
        _ => &[],
    };
    let is_text = matches!(to, CqlType::Text | CqlType::Ascii);
    let is_number = NUMBERS.contains(&to) && to != CqlType::Counter;
    let how = if is_text { Cast::Text } else { Cast::Number };
    let numbers = NUMBERS.iter().filter(move |_| is_text || is_number).map(move |from| (from.clone(), how));
    numbers.chain(others.iter().cloned()).filter(move |(from, _)| *from != to)
}

/// Casts a value that is not empty.
///
/// # Errors
/// A NaN or infinity that is cast to a type without them.
pub(super) fn cast(how: Cast, from: &CqlType, to: &CqlType, value: &[u8]) -> Result<Vec<u8>> {
    match how {
        Cast::Text => {
            let literal = to_cql_literal(from, Some(value));
            let text =
                literal.strip_prefix('\'').and_then(|text| text.strip_suffix('\'')).unwrap_or(&literal);
            Ok(text.as_bytes().to_vec())
        }
        Cast::Time => {
            let millis = super::time::millis_of(from, value).unwrap_or(0);
            Ok(super::time::from_millis(to, millis))
        }
        Cast::Number => number(from, to, value),
    }
}

/// `byteValue` to `doubleValue`; fractions are converted to decimals by their text
/// (`CastFcts.getDecimalConversionFunction`).
fn number(from: &CqlType, to: &CqlType, value: &[u8]) -> Result<Vec<u8>> {
    let Some(number) = Number::read(from, value) else { return Ok(Vec::new()) };
    Ok(match to {
        CqlType::TinyInt => vec![number.int() as u8],
        CqlType::SmallInt => (number.int() as i16).to_be_bytes().to_vec(),
        CqlType::Int => number.int().to_be_bytes().to_vec(),
        CqlType::Float => number.float().to_be_bytes().to_vec(),
        CqlType::Double => number.double().to_be_bytes().to_vec(),
        CqlType::Varint => BigInt::from(number.whole()).to_signed_bytes_be(),
        CqlType::Decimal => {
            let text = to_cql_literal(from, Some(value));
            let refused = |_| CqlError::Invalid(format!("{text} cannot be cast to {to}"));
            parse_constant(to, ConstantKind::Float, &text).map_err(refused)?
        }
        _ => number.whole().to_be_bytes().to_vec(),
    })
}
