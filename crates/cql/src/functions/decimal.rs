//! Decimal arithmetic as Java's `BigDecimal` does it: which scale a result has is part of the value's bytes.

use num_bigint::{BigInt, BigUint, Sign};
use std::cmp::Ordering;

/// A decimal: an unscaled number and how many of its digits are behind the point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Decimal {
    /// All digits.
    pub(super) unscaled: BigInt,
    /// How many of them are behind the point; less than none adds zeros.
    pub(super) scale: i32,
}

/// Scales further apart than this are not brought together: no sum of numbers that people write needs it.
const SCALE_DISTANCE_MAX: u32 = 100_000;
/// Digits that sums and products keep (`DecimalType.MAX_PRECISION`).
const PRECISION_MAX: u64 = 10_000;
/// Least digits behind the point, and least digits at all, of a quotient (`DecimalType.MIN_SCALE`).
const QUOTIENT_DIGITS_MIN: i64 = 32;
/// Most digits behind the point of a quotient (`DecimalType.MAX_SCALE`).
const QUOTIENT_SCALE_MAX: i64 = 1000;

/// What `ArithmeticException` says.
pub(super) type Arithmetic<T> = Result<T, &'static str>;

/// Ten to a power.
pub(super) fn ten_to(power: u32) -> BigInt {
    BigInt::from(10).pow(power)
}

/// How a digit that is cut off counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rounding {
    /// A half goes away from zero.
    HalfUp,
    /// A half goes to the even neighbour.
    HalfEven,
}

/// A quotient without fraction, rounded.
pub(super) fn divide_rounded(dividend: &BigInt, divisor: &BigInt, rounding: Rounding) -> BigInt {
    let (mut quotient, rest) = (dividend / divisor, dividend % divisor);
    let twice = rest.magnitude() * 2_u32;
    let up = match twice.cmp(divisor.magnitude()) {
        Ordering::Greater => true,
        Ordering::Less => false,
        Ordering::Equal => rounding == Rounding::HalfUp || quotient.bit(0),
    };
    if up {
        let negative = (dividend.sign() == Sign::Minus) != (divisor.sign() == Sign::Minus);
        let sign = if negative { Sign::Minus } else { Sign::Plus };
        quotient += BigInt::from_biguint(sign, BigUint::from(1_u32));
    }
    quotient
}

impl Decimal {
    pub(super) const ZERO: Decimal = Decimal { unscaled: BigInt::ZERO, scale: 0 };

    /// From a serialised value; too few bytes are zero.
    pub(super) fn from_bytes(bytes: &[u8]) -> Decimal {
        match bytes.split_first_chunk::<4>() {
            Some((scale, unscaled)) => Decimal {
                unscaled: BigInt::from_signed_bytes_be(unscaled),
                scale: i32::from_be_bytes(*scale),
            },
            None => Decimal::ZERO,
        }
    }

    /// The serialised value.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        [&self.scale.to_be_bytes()[..], &self.unscaled.to_signed_bytes_be()].concat()
    }

    /// Without what is behind the point.
    pub(super) fn whole(&self) -> BigInt {
        let power = ten_to(self.scale.unsigned_abs().min(SCALE_DISTANCE_MAX));
        if self.scale > 0 { &self.unscaled / power } else { &self.unscaled * power }
    }

    /// The sum, of any precision.
    pub(super) fn plus(&self, other: &Decimal) -> Decimal {
        let scale = self.scale.max(other.scale);
        Decimal { unscaled: self.at(scale) + other.at(scale), scale }
    }

    /// The difference, of any precision.
    pub(super) fn minus(&self, other: &Decimal) -> Decimal {
        self.plus(&other.negated())
    }

    /// The number with its sign turned.
    pub(super) fn negated(&self) -> Decimal {
        Decimal { unscaled: -&self.unscaled, scale: self.scale }
    }

    /// The product, of any precision.
    pub(super) fn times(&self, other: &Decimal) -> Arithmetic<Decimal> {
        let scale = i64::from(self.scale) + i64::from(other.scale);
        let scale = i32::try_from(scale).map_err(|_| if scale > 0 { "Underflow" } else { "Overflow" })?;
        Ok(Decimal { unscaled: &self.unscaled * &other.unscaled, scale })
    }

    /// Rounded to the digits that results keep.
    pub(super) fn limited(self) -> Decimal {
        if self.unscaled.bits() < PRECISION_MAX * 3 {
            self
        } else {
            self.rounded(PRECISION_MAX, Rounding::HalfUp)
        }
    }

    /// With so many digits at most.
    pub(super) fn rounded(self, digits: u64, rounding: Rounding) -> Decimal {
        let extra = self.precision().saturating_sub(digits) as u32;
        if extra == 0 {
            return self;
        }
        let unscaled = divide_rounded(&self.unscaled, &ten_to(extra), rounding);
        let scale = self.scale.saturating_sub_unsigned(extra);
        // Nines may have become a one more.
        Decimal { unscaled, scale }.rounded(digits, rounding)
    }

    /// How many digits it has; zero has one.
    pub(super) fn precision(&self) -> u64 {
        let bits = self.unscaled.bits();
        if bits <= 60 {
            let small: u64 = self.unscaled.magnitude().iter_u64_digits().next().unwrap_or(0);
            return u64::from(small.checked_ilog10().unwrap_or(0)) + 1;
        }
        // Between 2^(bits-1) and 2^bits there is one power of ten at most.
        let least = (bits - 1) * 30_102 / 100_000;
        let mut power = ten_to(least as u32);
        let mut digits = least;
        while self.unscaled.magnitude() >= power.magnitude() {
            power *= 10;
            digits += 1;
        }
        digits
    }

    /// The quotient as `DecimalType.divide` gives it.
    pub(super) fn divided_by(&self, divisor: &Decimal) -> Arithmetic<Decimal> {
        if divisor.unscaled == BigInt::ZERO {
            return Err("BigInteger divide by zero");
        }
        let first_digit = (self.precision() as i64 - i64::from(self.scale))
            - (divisor.precision() as i64 - i64::from(divisor.scale));
        let least = i64::from(self.scale.max(divisor.scale)).max(QUOTIENT_DIGITS_MIN - first_digit);
        let scale = least.clamp(QUOTIENT_DIGITS_MIN, QUOTIENT_SCALE_MAX) as i32;
        self.quotient(divisor, scale, Rounding::HalfUp).map(Decimal::stripped)
    }

    /// The quotient at a scale.
    pub(super) fn quotient(&self, divisor: &Decimal, scale: i32, rounding: Rounding) -> Arithmetic<Decimal> {
        let shift = i64::from(scale) + i64::from(divisor.scale) - i64::from(self.scale);
        let power = u32::try_from(shift.unsigned_abs()).ok().filter(|power| *power <= SCALE_DISTANCE_MAX);
        let power = ten_to(power.ok_or("Overflow")?);
        let unscaled = if shift >= 0 {
            divide_rounded(&(&self.unscaled * power), &divisor.unscaled, rounding)
        } else {
            divide_rounded(&self.unscaled, &(&divisor.unscaled * power), rounding)
        };
        Ok(Decimal { unscaled, scale })
    }

    /// What is left by a division without fraction (`BigDecimal.remainder`).
    pub(super) fn remainder(&self, divisor: &Decimal) -> Arithmetic<Decimal> {
        if divisor.unscaled == BigInt::ZERO {
            let is_zero = self.unscaled == BigInt::ZERO;
            return Err(if is_zero { "Division undefined" } else { "Division by zero" });
        }
        let common = self.scale.max(divisor.scale);
        let (dividend, by) = (self.at(common), divisor.at(common));
        let (quotient, rest) = (&dividend / &by, &dividend % &by);
        let preferred = i64::from(self.scale) - i64::from(divisor.scale);
        // The quotient's scale is the preferred one, or as near to it as its zeros allow.
        let quotient_scale = if preferred >= 0 || quotient == BigInt::ZERO {
            preferred
        } else {
            -(trailing_zeros(&quotient).min(preferred.unsigned_abs()) as i64)
        };
        let scale = (quotient_scale + i64::from(divisor.scale)).max(i64::from(self.scale));
        let scale = i32::try_from(scale).map_err(|_| "Overflow")?;
        let rest = Decimal { unscaled: rest, scale: common };
        Ok(Decimal { unscaled: rest.rescaled(scale), scale })
    }

    /// Without a fraction, a half away from zero.
    pub(super) fn round(&self) -> Decimal {
        let unscaled = match u32::try_from(self.scale) {
            Ok(scale) => {
                divide_rounded(&self.unscaled, &ten_to(scale.min(SCALE_DISTANCE_MAX)), Rounding::HalfUp)
            }
            Err(_) => self.whole(),
        };
        Decimal { unscaled, scale: 0 }
    }

    /// Without zeros at its end.
    pub(super) fn stripped(self) -> Decimal {
        if self.unscaled == BigInt::ZERO {
            return Decimal::ZERO;
        }
        let zeros = trailing_zeros(&self.unscaled) as u32;
        Decimal { unscaled: self.unscaled / ten_to(zeros), scale: self.scale.saturating_sub_unsigned(zeros) }
    }

    /// The digits at a scale that is not less than its own.
    fn at(&self, scale: i32) -> BigInt {
        &self.unscaled * ten_to(scale.abs_diff(self.scale).min(SCALE_DISTANCE_MAX))
    }

    /// The digits at a scale that loses none.
    fn rescaled(&self, scale: i32) -> BigInt {
        if scale >= self.scale {
            return self.at(scale);
        }
        &self.unscaled / ten_to(scale.abs_diff(self.scale).min(SCALE_DISTANCE_MAX))
    }
}

/// How many zeros end a number other than zero.
fn trailing_zeros(number: &BigInt) -> u64 {
    let text = number.magnitude().to_radix_le(10);
    text.iter().take_while(|digit| **digit == 0).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(text: &str) -> Decimal {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let unscaled = format!("{whole}{fraction}").parse().unwrap();
        Decimal { unscaled, scale: fraction.len() as i32 }
    }

    #[test]
    fn digits_are_counted_exactly() {
        for (text, digits) in [("0", 1), ("9", 1), ("10", 2), ("-999", 3), ("12345678901234567890123", 23)] {
            assert_eq!(decimal(text).precision(), digits, "{text}");
        }
        for power in 0..80 {
            let number = Decimal { unscaled: ten_to(power), scale: 0 };
            assert_eq!(number.precision(), u64::from(power) + 1);
            let below = Decimal { unscaled: ten_to(power) - 1, scale: 0 };
            assert_eq!(below.precision(), u64::from(power).max(1));
        }
    }

    #[test]
    fn results_have_the_scale_that_java_gives_them() {
        assert_eq!(decimal("1.50").plus(&decimal("2.5")), decimal("4.00"));
        assert_eq!(decimal("1.5").times(&decimal("-2.0")), Ok(decimal("-3.00")));
        assert_eq!(decimal("1").divided_by(&decimal("4")), Ok(decimal("0.25")));
        assert_eq!(decimal("7.5").remainder(&decimal("2")), Ok(decimal("1.5")));
        assert_eq!(decimal("-2.5").round(), decimal("-3"));
        assert_eq!(decimal("1").remainder(&decimal("0")), Err("Division by zero"));
        assert_eq!(decimal("0.0").remainder(&decimal("0")), Err("Division undefined"));
    }
}
