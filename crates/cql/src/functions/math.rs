//! `abs`, `exp`, `log`, `log10` and `round`; the result has the argument's type (`MathFcts`).

use super::decimal::{Arithmetic, Decimal};
use super::logarithm;
use super::number::Number;
use helenus_model::types::CqlType;
use num_bigint::BigInt;

/// A function of one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Math {
    /// The absolute value.
    Abs,
    /// e to the power of the number.
    Exp,
    /// The natural logarithm.
    Log,
    /// The logarithm to base ten.
    Log10,
    /// The nearest whole number.
    Round,
}

impl Math {
    /// The function with this name.
    pub(super) fn named(name: &str) -> Option<Math> {
        Some(match name {
            "abs" => Math::Abs,
            "exp" => Math::Exp,
            "log" => Math::Log,
            "log10" => Math::Log10,
            "round" => Math::Round,
            _ => return None,
        })
    }

    /// Computes the function; `None` for an empty value.
    ///
    /// # Errors
    /// Logarithm of a number that is not above zero, if the type has no NaN.
    pub(super) fn of(self, ty: &CqlType, value: &[u8]) -> Arithmetic<Option<Vec<u8>>> {
        let Some(number) = Number::read(ty, value) else { return Ok(None) };
        let bytes = match number {
            Number::Whole(value) => self.of_whole(ty, value),
            Number::Float(value) => self.of_float(value).to_be_bytes().to_vec(),
            Number::Double(value) => self.of_double(value).to_be_bytes().to_vec(),
            Number::Big(value) => match self {
                Math::Abs => BigInt::from(value.magnitude().clone()),
                Math::Round => value,
                _ => self.of_decimal(&Decimal { unscaled: value, scale: 0 })?.whole()?,
            }
            .to_signed_bytes_be(),
            Number::Decimal(value) => self.of_decimal(&value)?.to_bytes(),
        };
        Ok(Some(bytes))
    }

    /// Java computes a double and casts it; a cast to fewer than 32 bits truncates a 32-bit integer.
    fn of_whole(self, ty: &CqlType, value: i64) -> Vec<u8> {
        let real = |real: f64| match ty {
            CqlType::TinyInt | CqlType::SmallInt | CqlType::Int => i64::from(real as i32),
            _ => real as i64,
        };
        let found = match self {
            Math::Abs if *ty == CqlType::Int => i64::from((value as i32).wrapping_abs()),
            Math::Abs => value.wrapping_abs(),
            Math::Round => value,
            Math::Exp => real((value as f64).exp()),
            Math::Log => real((value as f64).ln()),
            Math::Log10 => real((value as f64).log10()),
        };
        match ty {
            CqlType::TinyInt => vec![found as u8],
            CqlType::SmallInt => (found as i16).to_be_bytes().to_vec(),
            CqlType::Int => (found as i32).to_be_bytes().to_vec(),
            _ => found.to_be_bytes().to_vec(),
        }
    }

    fn of_double(self, value: f64) -> f64 {
        match self {
            Math::Abs => value.abs(),
            Math::Exp => value.exp(),
            Math::Log => value.ln(),
            Math::Log10 => value.log10(),
            Math::Round => half_up(value) as i64 as f64,
        }
    }

    fn of_float(self, value: f32) -> f32 {
        match self {
            Math::Abs => value.abs(),
            Math::Round => half_up(f64::from(value)) as i32 as f32,
            other => other.of_double(f64::from(value)) as f32,
        }
    }

    fn of_decimal(self, value: &Decimal) -> Arithmetic<Decimal> {
        let is_positive = value.unscaled > BigInt::ZERO;
        Ok(match self {
            Math::Abs if is_positive => value.clone(),
            Math::Abs => value.negated(),
            Math::Round => value.round()?,
            Math::Exp => logarithm::exp(value)?,
            Math::Log if !is_positive => return Err("Natural log of number zero or less"),
            Math::Log => logarithm::log(value)?,
            Math::Log10 if !is_positive => return Err("Log10 of number zero or less"),
            Math::Log10 => logarithm::log10(value)?,
        })
    }
}

/// `Math.round`: halves are rounded up, also below zero.
fn half_up(value: f64) -> f64 {
    let floor = value.floor();
    if value - floor >= 0.5 { floor + 1.0 } else { floor }
}
