//! CAST between native types (`CastFcts`).

use crate::error::{CqlError, Result};
use helenus_model::types::{ConstantKind, CqlType, parse_constant, to_cql_literal};
use num_bigint::BigInt;

/// How a value is cast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cast {
    /// To its text.
    Text,
    /// Between numbers, as Java narrows and widens them.
    Number,
    /// Between times.
    Time,
}

const NUMBERS: &[CqlType] = &[
    CqlType::TinyInt,
    CqlType::SmallInt,
    CqlType::Int,
    CqlType::BigInt,
    CqlType::Float,
    CqlType::Double,
    CqlType::Decimal,
    CqlType::Counter,
    CqlType::Varint,
];

/// The types that can be cast to `to`, and how.
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
/// A fraction that is no number, to a number without fractions of any size.
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

fn number(from: &CqlType, to: &CqlType, value: &[u8]) -> Result<Vec<u8>> {
    if let (CqlType::Decimal | CqlType::Varint, _) | (_, CqlType::Decimal) = (from, to) {
        return through_text(from, to, value);
    }
    let bytes = |value: &[u8]| -> i64 {
        let negative = value.first().is_some_and(|first| first & 0x80 != 0);
        value.iter().fold(if negative { -1 } else { 0 }, |all, byte| all << 8 | i64::from(*byte))
    };
    let (whole, real) = match from {
        CqlType::Float => {
            let real = f64::from(f32::from_be_bytes(value.try_into().unwrap_or_default()));
            (real as i64, real)
        }
        CqlType::Double => {
            let real = f64::from_be_bytes(value.try_into().unwrap_or_default());
            (real as i64, real)
        }
        _ => (bytes(value), bytes(value) as f64),
    };
    let is_real = matches!(from, CqlType::Float | CqlType::Double);
    Ok(match to {
        // Java narrows a fraction to 32 bits first, and those to fewer.
        CqlType::TinyInt => vec![if is_real { real as i32 as i8 } else { whole as i8 } as u8],
        CqlType::SmallInt => (if is_real { real as i32 as i16 } else { whole as i16 }).to_be_bytes().to_vec(),
        CqlType::Int => (if is_real { real as i32 } else { whole as i32 }).to_be_bytes().to_vec(),
        CqlType::Float if is_real => (real as f32).to_be_bytes().to_vec(),
        CqlType::Float => (whole as f32).to_be_bytes().to_vec(),
        CqlType::Double => real.to_be_bytes().to_vec(),
        CqlType::Varint => BigInt::from(whole).to_signed_bytes_be(),
        _ => whole.to_be_bytes().to_vec(),
    })
}

/// Numbers of any size go by their text.
fn through_text(from: &CqlType, to: &CqlType, value: &[u8]) -> Result<Vec<u8>> {
    let text = to_cql_literal(from, Some(value));
    let refused = || CqlError::Invalid(format!("{text} cannot be cast to {to}"));
    match to {
        CqlType::Decimal => parse_constant(to, ConstantKind::Float, &text).map_err(|_| refused()),
        CqlType::Float => Ok(text.parse::<f32>().map_err(|_| refused())?.to_be_bytes().to_vec()),
        CqlType::Double => Ok(text.parse::<f64>().map_err(|_| refused())?.to_be_bytes().to_vec()),
        _ => {
            let whole = match from {
                CqlType::Varint => BigInt::from_signed_bytes_be(value),
                _ => super::aggregate::Decimal::from_bytes(value).whole(),
            };
            let low = whole.iter_u64_digits().next().unwrap_or(0) as i64;
            let low = if whole.sign() == num_bigint::Sign::Minus { low.wrapping_neg() } else { low };
            number(&CqlType::BigInt, to, &low.to_be_bytes())
        }
    }
}
