//! Numbers of all types for arithmetic, with Java's conversions between them.

use super::decimal::{Arithmetic, Decimal, ten_to};
use helenus_model::types::{ConstantKind, CqlType, parse_constant, to_cql_literal};
use num_bigint::{BigInt, Sign};

/// A number. The variant is the type that it was read from, which determines its conversions.
#[derive(Clone, Debug)]
pub(super) enum Number {
    /// An integer of up to 64 bits, or a counter.
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

/// The number types, in Cassandra's order (`OperationFcts`).
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

/// Whether a type is a number type.
pub(super) fn is_number(ty: &CqlType) -> bool {
    NUMBERS.contains(ty)
}

impl Number {
    /// From a serialised value; `None` if it is empty or not a number.
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

    /// Java's `longValue`; narrower integers are its low bits.
    pub(super) fn whole(&self) -> i64 {
        match self {
            Number::Whole(value) => *value,
            Number::Float(value) => *value as i64,
            Number::Double(value) => *value as i64,
            Number::Big(value) => low_bits(value),
            Number::Decimal(value) => low_bits(&value.low_whole()),
        }
    }

    /// Java's `intValue`; a fraction outside 32 bits gives the nearest limit.
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
            Number::Big(value) => big_text(value).parse().unwrap_or(f64::NAN),
            Number::Decimal(value) => decimal_text(value).parse().unwrap_or(f64::NAN),
        }
    }

    /// Java's `floatValue`.
    pub(super) fn float(&self) -> f32 {
        match self {
            Number::Whole(value) => *value as f32,
            Number::Float(value) => *value,
            Number::Double(value) => *value as f32,
            Number::Big(value) => big_text(value).parse().unwrap_or(f32::NAN),
            Number::Decimal(value) => decimal_text(value).parse().unwrap_or(f32::NAN),
        }
    }

    /// The operand of a `varint` operation (`IntegerType.toBigInteger`).
    pub(super) fn big(&self) -> BigInt {
        match self {
            Number::Big(value) => value.clone(),
            other => BigInt::from(other.whole()),
        }
    }

    /// The operand of a `decimal` operation (`DecimalType.toBigDecimal`); 64-bit numbers are converted by way of a
    /// double.
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

/// A finite double converted to a decimal by its text in Java.
fn decimal_of_double(value: f64) -> Decimal {
    let text = to_cql_literal(&CqlType::Double, Some(&value.to_be_bytes()));
    let bytes = parse_constant(&CqlType::Decimal, ConstantKind::Float, &text);
    bytes.map_or(Decimal::ZERO, |bytes| Decimal::from_bytes(&bytes))
}

/// Digits after this many decide the rounding to a double only by whether all of them are zero.
const DECISIVE_DIGITS: i64 = 800;
/// Every double is below this power of ten, and every number below its inverse rounds to zero.
const EXPONENT_BOUND: i64 = 400;

/// A text of a whole number that parses to the nearest double or float; infinite if out of range, because printing all
/// digits of a number with a million digits takes seconds.
fn big_text(value: &BigInt) -> String {
    if value.bits() <= 1024 {
        return value.to_string();
    }
    if value.sign() == Sign::Minus { "-inf" } else { "inf" }.to_owned()
}

/// A text of a decimal that parses to the nearest double or float, of about `DECISIVE_DIGITS` digits at most.
fn decimal_text(value: &Decimal) -> String {
    let sign = if value.unscaled.sign() == Sign::Minus { "-" } else { "" };
    // 100,000 bits are 30,103 decimal digits; the result is an upper bound of the number of digits.
    let digits = i64::try_from(value.unscaled.bits()).unwrap_or(i64::MAX / 100_000) * 30_103 / 100_000 + 1;
    let exponent = digits - i64::from(value.scale);
    if value.unscaled.sign() == Sign::NoSign || exponent < -EXPONENT_BOUND {
        return format!("{sign}0");
    }
    if exponent > EXPONENT_BOUND {
        return format!("{sign}inf");
    }
    let Some(dropped) = u32::try_from(digits - DECISIVE_DIGITS).ok().filter(|dropped| *dropped > 0) else {
        return format!("{}e{}", value.unscaled, -i64::from(value.scale));
    };
    let power = ten_to(dropped);
    let kept = &value.unscaled / &power;
    // One more digit tells whether anything but zeros was dropped.
    let last = u8::from(&kept * &power != value.unscaled);
    format!("{kept}{last}e{}", i64::from(dropped) - i64::from(value.scale) - 1)
}

/// The low 64 bits, in two's complement.
fn low_bits(value: &BigInt) -> i64 {
    let low = value.iter_u64_digits().next().unwrap_or(0) as i64;
    if value.sign() == Sign::Minus { low.wrapping_neg() } else { low }
}

#[cfg(test)]
mod tests {
    use super::{Number, big_text, decimal_text};
    use crate::functions::decimal::Decimal;
    use num_bigint::{BigInt, Sign};
    use proptest::prelude::*;

    fn whole(bytes: &[u8], negative: bool) -> BigInt {
        BigInt::from_bytes_be(if negative { Sign::Minus } else { Sign::Plus }, bytes)
    }

    proptest! {
        #[test]
        fn a_long_number_is_read_as_all_its_digits_are(
            bytes in prop::collection::vec(any::<u8>(), 0..2000),
            negative: bool,
            // Number of digits before the point.
            magnitude in -450_i32..450,
        ) {
            let unscaled = whole(&bytes, negative);
            let digits = unscaled.magnitude().to_string().len() as i32;
            let decimal = Decimal { unscaled: unscaled.clone(), scale: digits - magnitude };
            let all = format!("{unscaled}e{}", magnitude - digits);
            let short = decimal_text(&decimal);
            prop_assert!(short.len() < 900, "{}", short.len());
            prop_assert_eq!(short.parse::<f64>().unwrap().to_bits(), all.parse::<f64>().unwrap().to_bits());
            prop_assert_eq!(short.parse::<f32>().unwrap().to_bits(), all.parse::<f32>().unwrap().to_bits());
            let all = unscaled.to_string();
            prop_assert_eq!(big_text(&unscaled).parse::<f64>().unwrap(), all.parse::<f64>().unwrap());
        }
    }

    #[test]
    fn halves_between_two_doubles_are_decided_by_the_last_digit() {
        // 2^53 + 1 is halfway between two doubles; a digit far after the point moves it up.
        let tie = BigInt::from(9_007_199_254_740_993_i64);
        let zeros = 5000;
        let exact = Decimal { unscaled: &tie * BigInt::from(10).pow(zeros), scale: zeros as i32 };
        let above = Decimal { unscaled: &exact.unscaled + 1, scale: zeros as i32 };
        assert_eq!(Number::Decimal(exact).double(), 9_007_199_254_740_992.0);
        assert_eq!(Number::Decimal(above).double(), 9_007_199_254_740_994.0);
    }
}
