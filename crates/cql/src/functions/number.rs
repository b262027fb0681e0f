//! Numbers of every type as arithmetic sees them, with Java's conversions between them.

use super::decimal::{Arithmetic, Decimal};
use helenus_model::types::{ConstantKind, CqlType, parse_constant, to_cql_literal};
use num_bigint::{BigInt, Sign};

/// A number: what it was read as decides how it is converted.
#[derive(Clone, Debug)]
pub(super) enum Number {
    /// Up to 64 bits, a counter too.
    Whole(i64),
    /// A `float`.
    Float(f32),
    /// A `double`.
    Double(f64),
    /// A `varint`.
    Big(BigInt),
    /// A `decimal`.
    Decimal(Decimal),
}

/// The types that are numbers, in Cassandra's order (`OperationFcts`).
pub(super) const NUMBERS: &[CqlType] = &[
    CqlType::TinyInt,
    CqlType::SmallInt,
    CqlType::Int,
    CqlType::BigInt,
    CqlType::Float,
    CqlType::Double,
    CqlType::Decimal,
    CqlType::Varint,
    CqlType::Counter,
];

/// Whether values of a type are numbers.
pub(super) fn is_number(ty: &CqlType) -> bool {
    NUMBERS.contains(ty)
}

impl Number {
    /// From a serialised value; `None` if it is empty or not of a type of numbers.
    pub(super) fn read(ty: &CqlType, bytes: &[u8]) -> Option<Number> {
        if bytes.is_empty() {
            return None;
        }
        Some(match ty {
            CqlType::TinyInt | CqlType::SmallInt | CqlType::Int | CqlType::BigInt | CqlType::Counter => {
                let start = if bytes.first()? & 0x80 != 0 { -1 } else { 0 };
                Number::Whole(bytes.iter().fold(start, |all, byte| all << 8 | i64::from(*byte)))
            }
            CqlType::Float => Number::Float(f32::from_be_bytes(bytes.try_into().ok()?)),
            CqlType::Double => Number::Double(f64::from_be_bytes(bytes.try_into().ok()?)),
            CqlType::Varint => Number::Big(BigInt::from_signed_bytes_be(bytes)),
            CqlType::Decimal => Number::Decimal(Decimal::from_bytes(bytes)),
            _ => return None,
        })
    }

    /// Java's `longValue`; those of fewer bits are its low ones.
    pub(super) fn whole(&self) -> i64 {
        match self {
            Number::Whole(value) => *value,
            Number::Float(value) => *value as i64,
            Number::Double(value) => *value as i64,
            Number::Big(value) => low_bits(value),
            Number::Decimal(value) => low_bits(&value.low_whole()),
        }
    }

    /// Java's `intValue`: of a fraction the nearest within 32 bits.
    pub(super) fn int(&self) -> i32 {
        match self {
            Number::Float(value) => *value as i32,
            Number::Double(value) => *value as i32,
            other => other.whole() as i32,
        }
    }

    /// Java's `doubleValue`.
    pub(super) fn double(&self) -> f64 {
        match self {
            Number::Whole(value) => *value as f64,
            Number::Float(value) => f64::from(*value),
            Number::Double(value) => *value,
            Number::Big(value) => value.to_string().parse().unwrap_or(f64::NAN),
            Number::Decimal(value) => decimal_text(value).parse().unwrap_or(f64::NAN),
        }
    }

    /// Java's `floatValue`.
    pub(super) fn float(&self) -> f32 {
        match self {
            Number::Whole(value) => *value as f32,
            Number::Float(value) => *value,
            Number::Double(value) => *value as f32,
            Number::Big(value) => value.to_string().parse().unwrap_or(f32::NAN),
            Number::Decimal(value) => decimal_text(value).parse().unwrap_or(f32::NAN),
        }
    }

    /// As a `varint` operation takes it (`IntegerType.toBigInteger`).
    pub(super) fn big(&self) -> BigInt {
        match self {
            Number::Big(value) => value.clone(),
            other => BigInt::from(other.whole()),
        }
    }

    /// As a `decimal` operation takes it (`DecimalType.toBigDecimal`): numbers of 64 bits go by way of a double.
    pub(super) fn decimal(&self) -> Arithmetic<Decimal> {
        let real = match self {
            Number::Decimal(value) => return Ok(value.clone()),
            Number::Big(value) => return Ok(Decimal { unscaled: value.clone(), scale: 0 }),
            other => other.double(),
        };
        if real.is_nan() {
            return Err("A NaN cannot be converted into a decimal");
        }
        if real.is_infinite() {
            return Err("An infinite number cannot be converted into a decimal");
        }
        Ok(decimal_of_double(real))
    }
}

/// A finite double as Java prints it, read as a decimal.
fn decimal_of_double(value: f64) -> Decimal {
    let text = to_cql_literal(&CqlType::Double, Some(&value.to_be_bytes()));
    let bytes = parse_constant(&CqlType::Decimal, ConstantKind::Float, &text);
    bytes.map_or(Decimal::ZERO, |bytes| Decimal::from_bytes(&bytes))
}

fn decimal_text(value: &Decimal) -> String {
    to_cql_literal(&CqlType::Decimal, Some(&value.to_bytes()))
}

/// The low 64 bits, in two's complement.
fn low_bits(value: &BigInt) -> i64 {
    let low = value.iter_u64_digits().next().unwrap_or(0) as i64;
    if value.sign() == Sign::Minus { low.wrapping_neg() } else { low }
}
