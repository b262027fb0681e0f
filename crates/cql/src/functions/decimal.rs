//! Decimal arithmetic like Java's `BigDecimal`; it matters which scale a result has, because the scale is stored.

use num_bigint::{BigInt, BigUint, Sign};
use std::cmp::Ordering;

/// A decimal: an unscaled number, and the number of its digits after the point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Decimal {
    /// All digits.
    pub(super) unscaled: BigInt,
    /// Number of digits after the point; a negative scale adds zeros.
    pub(super) scale: i32,
}

/// The largest computed power of ten; an operation on such numbers takes some tens of milliseconds. Java computes powers
/// up to 10^646456993, the limit of its integers, which takes minutes.
pub(super) const POWER_MAX: u32 = 200_000;
/// Java's error above its own limit.
const TOO_LARGE: &str = "BigInteger would overflow supported range";
/// Maximum digits of sums and products (`DecimalType.MAX_PRECISION`).
pub(super) const PRECISION_MAX: u64 = 10_000;
/// Minimum digits after the point, and minimum digits in all, of a quotient (`DecimalType.MIN_SCALE`).
pub(super) const QUOTIENT_DIGITS_MIN: i32 = 32;
/// Maximum digits after the point of a quotient (`DecimalType.MAX_SCALE`).
pub(super) const QUOTIENT_SCALE_MAX: i32 = 1000;

/// A result or the message of Java's `ArithmeticException`.
pub(super) type Arithmetic<T> = Result<T, &'static str>;

/// Ten to a power.
pub(super) fn ten_to(power: u32) -> BigInt {
    BigInt::from(10).pow(power)
}

/// Ten to a power, unless the power is too large.
fn power_of_ten(power: u64) -> Arithmetic<BigInt> {
    let power = u32::try_from(power).ok().filter(|power| *power <= POWER_MAX);
    power.map(ten_to).ok_or(TOO_LARGE)
}

/// Checks a scale that may exceed 32 bits. For a zero it is clamped to 32 bits (`BigDecimal.checkScale`).
fn checked_scale(is_zero: bool, scale: i64) -> Arithmetic<i32> {
    i32::try_from(scale).or(match (is_zero, scale > 0) {
        (true, true) => Ok(i32::MAX),
        (true, false) => Ok(i32::MIN),
        (false, true) => Err("Underflow"),
        (false, false) => Err("Overflow"),
    })
}

/// How removed digits are rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rounding {
    /// Half away from zero.
    HalfUp,
    /// Half to the even neighbour.
    HalfEven,
}

/// The quotient, rounded to a whole number.
pub(super) fn divide_rounded(dividend: &BigInt, divisor: &BigInt, rounding: Rounding) -> BigInt {
    let mut quotient = dividend / divisor;
    let rest = dividend - &quotient * divisor;
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

    /// From a serialised value; zero if it is too short.
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

    /// The integer part.
    pub(super) fn whole(&self) -> Arithmetic<BigInt> {
        if self.scale <= 0 {
            return self.at(0);
        }
        if i64::from(self.scale) > self.precision() as i64 {
            return Ok(BigInt::ZERO);
        }
        Ok(&self.unscaled / ten_to(self.scale.unsigned_abs()))
    }

    /// A number with the same low 64 bits as the integer part; multiples of 10^64 have only zeros there.
    pub(super) fn low_whole(&self) -> BigInt {
        if self.scale <= -64 { BigInt::ZERO } else { self.whole().unwrap_or(BigInt::ZERO) }
    }

    fn is_zero(&self) -> bool {
        self.unscaled == BigInt::ZERO
    }

    /// The exact sum.
    pub(super) fn plus(&self, other: &Decimal) -> Arithmetic<Decimal> {
        let scale = self.scale.max(other.scale);
        Ok(Decimal { unscaled: self.at(scale)? + other.at(scale)?, scale })
    }

    /// The exact difference.
    pub(super) fn minus(&self, other: &Decimal) -> Arithmetic<Decimal> {
        self.plus(&other.negated())
    }

    /// The sum, rounded to `PRECISION_MAX` digits (`BigDecimal.add` with a `MathContext`).
    pub(super) fn limited_sum(&self, other: &Decimal) -> Arithmetic<Decimal> {
        if self.is_zero() || other.is_zero() {
            return self.sum_with_zero(other);
        }
        let (big, small) = if self.scale < other.scale { (self, other) } else { (other, self) };
        // A small number whose digits are all far behind the kept ones is replaced by a single digit.
        let last_kept = i64::from(big.scale) - big.precision() as i64 + PRECISION_MAX as i64;
        let first_of_small = i64::from(small.scale) - small.precision() as i64 + 1;
        if big.scale != small.scale
            && first_of_small > i64::from(big.scale) + 2
            && first_of_small > last_kept + 2
        {
            let unscaled = BigInt::from(if small.unscaled.sign() == Sign::Minus { -1 } else { 1 });
            let scale = checked_scale(false, last_kept.max(i64::from(big.scale)) + 3)?;
            return big.plus(&Decimal { unscaled, scale })?.limited();
        }
        big.plus(small)?.limited()
    }

    /// The other number, extended with zeros to the scale of the zero as far as the maximum digits allow.
    fn sum_with_zero(&self, other: &Decimal) -> Arithmetic<Decimal> {
        let preferred = self.scale.max(other.scale);
        let sum = match (self.is_zero(), other.is_zero()) {
            (true, true) => return Ok(Decimal { unscaled: BigInt::ZERO, scale: preferred }),
            (true, false) => other.clone().limited()?,
            _ => self.clone().limited()?,
        };
        let more = PRECISION_MAX as i64 - sum.precision() as i64;
        // Java's difference wraps around; the resulting scale is then refused.
        let scale = if more >= i64::from(preferred.wrapping_sub(sum.scale)) {
            i64::from(preferred)
        } else {
            i64::from(sum.scale) + more
        };
        checked_scale(false, scale - i64::from(sum.scale))?;
        let scale = scale as i32;
        Ok(Decimal { unscaled: sum.at(scale)?, scale })
    }

    /// The negated number.
    pub(super) fn negated(&self) -> Decimal {
        Decimal { unscaled: -&self.unscaled, scale: self.scale }
    }

    /// The exact product.
    pub(super) fn times(&self, other: &Decimal) -> Arithmetic<Decimal> {
        let scale = checked_scale(self.is_zero(), i64::from(self.scale) + i64::from(other.scale))?;
        Ok(Decimal { unscaled: &self.unscaled * &other.unscaled, scale })
    }

    /// Rounds to `PRECISION_MAX` digits.
    pub(super) fn limited(self) -> Arithmetic<Decimal> {
        if self.unscaled.bits() < PRECISION_MAX * 3 {
            return Ok(self);
        }
        let extra = self.precision().saturating_sub(PRECISION_MAX) as i64;
        checked_scale(false, i64::from(self.scale) - extra)?;
        Ok(self.rounded(PRECISION_MAX, Rounding::HalfUp))
    }

    /// Rounds to at most `digits` digits.
    pub(super) fn rounded(self, digits: u64, rounding: Rounding) -> Decimal {
        let extra = self.precision().saturating_sub(digits) as u32;
        if extra == 0 {
            return self;
        }
        let unscaled = divide_rounded(&self.unscaled, &ten_to(extra), rounding);
        let scale = self.scale.saturating_sub_unsigned(extra);
        // Rounding nines up may have added a digit.
        Decimal { unscaled, scale }.rounded(digits, rounding)
    }

    /// Number of digits; zero has one.
    pub(super) fn precision(&self) -> u64 {
        let bits = self.unscaled.bits();
        if bits <= 60 {
            let small: u64 = self.unscaled.magnitude().iter_u64_digits().next().unwrap_or(0);
            return u64::from(small.checked_ilog10().unwrap_or(0)) + 1;
        }
        // There is at most one power of ten between 2^(bits-1) and 2^bits.
        let least = (bits - 1) * 30_102 / 100_000;
        let mut power = ten_to(least as u32);
        let mut digits = least;
        while self.unscaled.magnitude() >= power.magnitude() {
            power *= 10;
            digits += 1;
        }
        digits
    }

    /// The quotient of `DecimalType.divide`.
    pub(super) fn divided_by(&self, divisor: &Decimal) -> Arithmetic<Decimal> {
        if divisor.unscaled == BigInt::ZERO {
            return Err("BigInteger divide by zero");
        }
        // All of this is computed in 32 bits that wrap around.
        let digits_before_point = |number: &Decimal| (number.precision() as i32).wrapping_sub(number.scale);
        let first_digit = digits_before_point(self).wrapping_sub(digits_before_point(divisor));
        let least = self.scale.max(divisor.scale).max(QUOTIENT_DIGITS_MIN.wrapping_sub(first_digit));
        let scale = least.clamp(QUOTIENT_DIGITS_MIN, QUOTIENT_SCALE_MAX);
        self.quotient(divisor, scale, Rounding::HalfUp).map(Decimal::stripped)
    }

    /// The quotient at a scale (`BigDecimal.divide`): one of the numbers is rescaled, by a 32-bit difference. If that
    /// wraps around, the number is not rescaled.
    pub(super) fn quotient(&self, divisor: &Decimal, scale: i32, rounding: Rounding) -> Arithmetic<Decimal> {
        let shifted = |number: &Decimal, to: i32| -> Arithmetic<BigInt> {
            let power = u64::try_from(to.wrapping_sub(number.scale)).unwrap_or(0);
            Ok(&number.unscaled * power_of_ten(power)?)
        };
        let of_dividend = checked_scale(self.is_zero(), i64::from(scale) + i64::from(divisor.scale))?;
        let unscaled = if of_dividend > self.scale {
            divide_rounded(&shifted(self, of_dividend)?, &divisor.unscaled, rounding)
        } else {
            let of_divisor = checked_scale(false, i64::from(self.scale) - i64::from(scale))?;
            divide_rounded(&self.unscaled, &shifted(divisor, of_divisor)?, rounding)
        };
        Ok(Decimal { unscaled, scale })
    }

    /// The remainder of an integer division (`BigDecimal.remainder`).
    pub(super) fn remainder(&self, divisor: &Decimal) -> Arithmetic<Decimal> {
        if divisor.unscaled == BigInt::ZERO {
            let is_zero = self.unscaled == BigInt::ZERO;
            return Err(if is_zero { "Division undefined" } else { "Division by zero" });
        }
        let preferred = i64::from(self.scale) - i64::from(divisor.scale);
        if self.is_smaller(divisor)? {
            let quotient_scale = preferred.clamp(i32::MIN.into(), i32::MAX.into());
            let scale = checked_scale(true, quotient_scale + i64::from(divisor.scale))?.max(self.scale);
            return Ok(Decimal { unscaled: self.at(scale)?, scale });
        }
        let common = self.scale.max(divisor.scale);
        let (dividend, by) = (self.at(common)?, divisor.at(common)?);
        let quotient = &dividend / &by;
        let rest = dividend - &quotient * by;
        // The quotient's scale is the preferred one, or as near to it as its trailing zeros allow.
        let quotient_scale = if preferred >= 0 || quotient == BigInt::ZERO {
            preferred
        } else {
            -(trailing_zeros(&quotient).min(preferred.unsigned_abs()) as i64)
        };
        let scale = (quotient_scale + i64::from(divisor.scale)).max(i64::from(self.scale));
        let scale = i32::try_from(scale).map_err(|_| "Overflow")?;
        let rest = Decimal { unscaled: rest, scale: common };
        Ok(Decimal { unscaled: rest.rescaled(scale)?, scale })
    }

    /// Whether the number is nearer to zero than another one, which must not be zero.
    fn is_smaller(&self, other: &Decimal) -> Arithmetic<bool> {
        let place = |number: &Decimal| number.precision() as i64 - i64::from(number.scale);
        if self.is_zero() || place(self) != place(other) {
            return Ok(self.is_zero() || place(self) < place(other));
        }
        let scale = self.scale.max(other.scale);
        Ok(self.at(scale)?.magnitude() < other.at(scale)?.magnitude())
    }

    /// Rounds to a whole number, half away from zero.
    pub(super) fn round(&self) -> Arithmetic<Decimal> {
        let unscaled = match u32::try_from(self.scale) {
            Ok(scale) if u64::from(scale) > self.precision() => BigInt::ZERO,
            Ok(scale) => divide_rounded(&self.unscaled, &ten_to(scale), Rounding::HalfUp),
            Err(_) => self.whole()?,
        };
        Ok(Decimal { unscaled, scale: 0 })
    }

    /// Removes trailing zeros.
    pub(super) fn stripped(self) -> Decimal {
        if self.unscaled == BigInt::ZERO {
            return Decimal::ZERO;
        }
        let zeros = trailing_zeros(&self.unscaled) as u32;
        Decimal { unscaled: self.unscaled / ten_to(zeros), scale: self.scale.saturating_sub_unsigned(zeros) }
    }

    /// The unscaled number at a scale that is not less than its own.
    fn at(&self, scale: i32) -> Arithmetic<BigInt> {
        if self.is_zero() || scale == self.scale {
            return Ok(self.unscaled.clone());
        }
        Ok(&self.unscaled * power_of_ten(scale.abs_diff(self.scale).into())?)
    }

    /// The unscaled number at a scale at which only zeros are dropped.
    fn rescaled(&self, scale: i32) -> Arithmetic<BigInt> {
        if scale >= self.scale {
            return self.at(scale);
        }
        Ok(&self.unscaled / power_of_ten(scale.abs_diff(self.scale).into())?)
    }
}

/// Number of trailing decimal zeros of a number other than zero. Digits would take longer than quotients, and most
/// numbers end with too few zero bits for a quotient.
fn trailing_zeros(number: &BigInt) -> u64 {
    // A power of ten divides only numbers that the same power of two divides.
    let most = number.trailing_zeros().unwrap_or(0);
    let mut powers = vec![(1_u64, BigInt::from(10))];
    while let Some((zeros, power)) = powers.last()
        && zeros * 2 <= most
        && power.bits() * 2 <= number.bits() + 1
    {
        powers.push((zeros * 2, power * power));
    }
    let (mut rest, mut found) = (number.clone(), 0);
    for (zeros, power) in powers.into_iter().rev() {
        if found + zeros > most {
            continue;
        }
        let quotient = &rest / &power;
        if &quotient * power == rest {
            (rest, found) = (quotient, found + zeros);
        }
    }
    found
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
        assert_eq!(decimal("1.50").plus(&decimal("2.5")), Ok(decimal("4.00")));
        assert_eq!(decimal("1.50").limited_sum(&decimal("2.5")), Ok(decimal("4.00")));
        assert_eq!(decimal("1.5").times(&decimal("-2.0")), Ok(decimal("-3.00")));
        assert_eq!(decimal("1").divided_by(&decimal("4")), Ok(decimal("0.25")));
        assert_eq!(decimal("7.5").remainder(&decimal("2")), Ok(decimal("1.5")));
        assert_eq!(decimal("-2.5").round(), Ok(decimal("-3")));
        assert_eq!(decimal("1").remainder(&decimal("0")), Err("Division by zero"));
        assert_eq!(decimal("0.0").remainder(&decimal("0")), Err("Division undefined"));
    }

    /// The expected results are those of Cassandra 5.0.6.
    #[test]
    fn extreme_scales_answer_as_java_does() {
        let power = |scale: i32| Decimal { unscaled: 1.into(), scale };
        let one = power(0);
        let (huge, tiny) = (power(-i32::MAX), power(i32::MAX));
        for (sum, scale) in [
            (huge.limited_sum(&one), -2_147_473_648),
            (huge.limited_sum(&tiny), -2_147_473_648),
            (one.limited_sum(&tiny), 9_999),
            (power(-150_000).limited_sum(&decimal("7")), -140_001),
        ] {
            let sum = sum.unwrap();
            assert_eq!((sum.scale, sum.unscaled), (scale, ten_to(9_999)));
        }
        let zero = decimal("0.0");
        assert_eq!(huge.limited_sum(&zero), Err("Underflow"));
        assert_eq!(zero.limited_sum(&tiny).unwrap(), tiny);
        // Differences that wrap around in Java.
        assert_eq!(huge.divided_by(&one), Ok(power(32)));
        assert_eq!(huge.divided_by(&decimal("3")), Ok(Decimal::ZERO));
        assert_eq!(tiny.divided_by(&one), Err(TOO_LARGE));
        assert_eq!(huge.divided_by(&tiny), Err("Underflow"));
        assert_eq!(tiny.divided_by(&tiny), Err("Underflow"));
        assert_eq!(power(150_000).divided_by(&Decimal { unscaled: 7.into(), scale: -3 }), Ok(Decimal::ZERO));
        assert_eq!(power(-150_000).remainder(&decimal("7")), Ok(decimal("1")));
        assert_eq!(tiny.remainder(&decimal("7")).unwrap(), tiny);
        let far_zero = Decimal { unscaled: BigInt::ZERO, scale: i32::MAX };
        assert_eq!(far_zero.times(&decimal("2.0")), Ok(far_zero.clone()));
        assert_eq!(tiny.times(&tiny), Err("Underflow"));
        assert_eq!(huge.times(&huge), Err("Overflow"));
        assert_eq!(tiny.round(), Ok(Decimal::ZERO));
        assert!(huge.round().is_err());
    }

    #[test]
    fn trailing_zeros_are_those_of_the_digits() {
        for zeros in (0..70).chain([128, 255, 256, 1000]) {
            for number in [1, 2, 5, 7, 16, 25, 1024, 9_765_625, 1_000_003] {
                let number = BigInt::from(number) * ten_to(zeros);
                let digits = number.to_string();
                let expected = digits.len() - digits.trim_end_matches('0').len();
                assert_eq!(trailing_zeros(&number), expected as u64, "{digits}");
                assert_eq!(trailing_zeros(&-number), expected as u64);
            }
        }
    }

    /// For all scales there is a result in short time.
    #[test]
    fn no_scale_takes_long_or_panics() {
        let mut state = 11_u64;
        let mut draw = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let unscaled = BigInt::from((state >> 40) as i64 % 2_000 - 1_000);
            let scale = match state >> 60 {
                0..5 => (state >> 20) as i32 % 40,
                5..10 => (state >> 20) as i32 % 20_000,
                10 => i32::MAX,
                11 => i32::MIN,
                _ => (state >> 20) as i32,
            };
            Decimal { unscaled, scale }
        };
        for _ in 0..3_000 {
            let (a, b) = (draw(), draw());
            _ = (a.limited_sum(&b), a.times(&b), a.divided_by(&b), a.remainder(&b), a.plus(&b));
            _ = (a.round(), a.low_whole(), a.stripped());
        }
    }
}
