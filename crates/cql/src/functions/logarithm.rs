//! `exp`, `log` and `log10` of decimals, with the number of digits that Cassandra returns.
//!
//! They compute in fixed point with big integers and extra digits, and then round: Cassandra's results are the exact
//! values rounded to the nearest (`DecimalType.exp`, `log`, `log10`). Powers of ten are split off first, so they and
//! their logarithms are exact.

use super::decimal::{Arithmetic, Decimal, Rounding, divide_rounded, ten_to};
use num_bigint::{BigInt, Sign};

/// Minimum and maximum digits of a result (`DecimalType.MIN_SIGNIFICANT_DIGITS`, `MAX_PRECISION`).
const DIGITS_MIN: u64 = 32;
const DIGITS_MAX: u64 = 10_000;
/// Maximum digits of an argument. The time grows with the third power of the digits and is about half a second at this
/// limit. Cassandra takes minutes for some thousand digits.
const ARGUMENT_DIGITS_MAX: u64 = 1000;
/// The error for longer arguments.
pub(super) const TOO_MANY_DIGITS: &str =
    "exp, log and log10 take numbers of at most 1000 digits; round or cast the number to double first";
/// Extra digits of the computation.
const SPARE_DIGITS: u32 = 20;

/// Number of digits of the result for a number.
fn digits_for(number: &Decimal) -> Arithmetic<u64> {
    match number.precision() {
        digits if digits > ARGUMENT_DIGITS_MAX => Err(TOO_MANY_DIGITS),
        digits => Ok(digits.clamp(DIGITS_MIN, DIGITS_MAX)),
    }
}

/// e to the power of a number.
pub(super) fn exp(number: &Decimal) -> Arithmetic<Decimal> {
    if number.unscaled == BigInt::ZERO {
        return Ok(Decimal { unscaled: BigInt::from(1), scale: 0 });
    }
    let digits = digits_for(number)?;
    let magnitude = number.precision() as i64 - i64::from(number.scale);
    if magnitude > 10 {
        return Err("Overflow");
    }
    let places = digits as u32 + SPARE_DIGITS + magnitude.max(0) as u32;
    if -magnitude > i64::from(places) {
        // The number is so near to zero that 1 + x is rounded to one. The sum itself may have millions of digits.
        let places = digits as u32 - 1;
        return Ok(Decimal { unscaled: ten_to(places), scale: places as i32 });
    }
    let point = FixedPoint { one: ten_to(places), places };
    let x = point.of(number);
    let ln_ten = point.ln_ten();
    // x = powers * ln 10 + rest, with the rest from 0 to ln 10.
    let mut powers = &x / &ln_ten;
    if x.sign() == Sign::Minus && &powers * &ln_ten != x {
        powers -= 1;
    }
    let rest = &x - &powers * &ln_ten;
    let scale = i64::from(places) - i64::try_from(&powers).map_err(|_| "Overflow")?;
    let scale = i32::try_from(scale).map_err(|_| "Overflow")?;
    Ok(Decimal { unscaled: point.exp(&rest), scale }.rounded(digits, Rounding::HalfEven))
}

/// The natural logarithm of a number above zero.
pub(super) fn log(number: &Decimal) -> Arithmetic<Decimal> {
    let digits = digits_for(number)?;
    Ok(if is_one(number) { Decimal::ZERO } else { natural(number, digits) })
}

/// The base-ten logarithm of a number above zero: its natural logarithm divided by that of ten, both with two more
/// digits than the result. This shows for powers of ten: some results are whole numbers, some have zeros after the
/// point.
pub(super) fn log10(number: &Decimal) -> Arithmetic<Decimal> {
    let digits = digits_for(number)?;
    let ten = natural(&Decimal { unscaled: BigInt::from(10), scale: 0 }, digits + 2);
    if is_one(number) {
        return Ok(Decimal { unscaled: BigInt::ZERO, scale: -ten.scale });
    }
    let log = natural(number, digits + 2);
    let preferred = log.scale - ten.scale;
    if &log.unscaled % &ten.unscaled == BigInt::ZERO {
        let exact = Decimal { unscaled: &log.unscaled / &ten.unscaled, scale: preferred };
        return Ok(exact);
    }
    let scale = digits as i32 + SPARE_DIGITS as i32 + preferred.abs();
    Ok(match log.quotient(&ten, scale, Rounding::HalfEven) {
        Ok(quotient) => quotient.rounded(digits + 2, Rounding::HalfEven).rounded(digits, Rounding::HalfEven),
        Err(_) => Decimal::ZERO,
    })
}

fn is_one(number: &Decimal) -> bool {
    number.clone().stripped() == Decimal { unscaled: BigInt::from(1), scale: 0 }
}

/// The natural logarithm of a number other than one, with this many digits.
fn natural(number: &Decimal, digits: u64) -> Decimal {
    // Near one the logarithm begins with zeros, so the number of places is doubled until enough digits are left.
    let mut places = digits as u32 + SPARE_DIGITS + number.precision() as u32;
    loop {
        let point = FixedPoint { one: ten_to(places), places };
        let found = Decimal { unscaled: point.ln(number), scale: places as i32 };
        if found.precision() >= digits + u64::from(SPARE_DIGITS) / 2 {
            return found.rounded(digits, Rounding::HalfEven);
        }
        places *= 2;
    }
}

/// Fixed-point arithmetic: a number is stored as a multiple of `one`.
struct FixedPoint {
    one: BigInt,
    places: u32,
}

impl FixedPoint {
    fn of(&self, number: &Decimal) -> BigInt {
        let shift = i64::from(self.places) - i64::from(number.scale);
        let power = ten_to(shift.unsigned_abs() as u32);
        if shift >= 0 {
            &number.unscaled * power
        } else {
            divide_rounded(&number.unscaled, &power, Rounding::HalfEven)
        }
    }

    fn times(&self, a: &BigInt, b: &BigInt) -> BigInt {
        a * b / &self.one
    }

    /// e to a power from 0 to 3: computed for a fraction of the power, and squared repeatedly.
    fn exp(&self, power: &BigInt) -> BigInt {
        const HALVINGS: u32 = 8;
        let part = power >> HALVINGS;
        let (mut term, mut sum, mut n) = (self.one.clone(), self.one.clone(), 1_u32);
        loop {
            term = self.times(&term, &part) / n;
            if term == BigInt::ZERO {
                break;
            }
            sum += &term;
            n += 1;
        }
        for _ in 0..HALVINGS {
            sum = self.times(&sum, &sum);
        }
        sum
    }

    /// The logarithm of a / b: twice the inverse hyperbolic tangent of (a - b) / (a + b).
    fn ln_of_fraction(&self, a: &BigInt, b: &BigInt) -> BigInt {
        let z = (a - b) * &self.one / (a + b);
        let square = self.times(&z, &z);
        let (mut power, mut sum, mut n) = (z.clone(), z, 1_u32);
        loop {
            power = self.times(&power, &square);
            n += 2;
            if power == BigInt::ZERO {
                return sum * 2;
            }
            sum += &power / n;
        }
    }

    /// ln 10, using 10 = 2^3 * 5/4.
    fn ln_ten(&self) -> BigInt {
        let ln_two = self.ln_of_fraction(&BigInt::from(2), &BigInt::from(1));
        ln_two * 3 + self.ln_of_fraction(&BigInt::from(5), &BigInt::from(4))
    }

    fn ln(&self, number: &Decimal) -> BigInt {
        let ln_two = self.ln_of_fraction(&BigInt::from(2), &BigInt::from(1));
        // number = m * 10^powers with m from 0.1 to 1; then m is doubled `doublings` times, to between 3/4 and 3/2.
        let precision = number.precision() as i64;
        let powers = precision - i64::from(number.scale);
        let mut m = self.of(&Decimal { unscaled: number.unscaled.clone(), scale: precision as i32 });
        let mut doublings = 0;
        while &m * 4 < &self.one * 3 {
            m *= 2;
            doublings += 1;
        }
        self.ln_of_fraction(&m, &self.one) - ln_two * doublings + self.ln_ten() * powers
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use helenus_model::types::{ConstantKind, CqlType, parse_constant, to_cql_literal};

    fn decimal(text: &str) -> Decimal {
        Decimal::from_bytes(&parse_constant(&CqlType::Decimal, ConstantKind::Float, text).unwrap())
    }

    fn text(number: &Decimal) -> String {
        to_cql_literal(&CqlType::Decimal, Some(&number.to_bytes()))
    }

    /// As the sum of one and the number, which takes long for numbers with many digits behind the point.
    #[test]
    fn exp_of_numbers_near_zero_is_a_rounded_one() {
        let one = decimal("1.0");
        for of in [
            "1E-60",
            "-1E-60",
            "7.3E-53",
            "-9.99E-70",
            "1E-3000",
            "-12345678901234567890123456789012345678901E-120",
        ] {
            let number = decimal(of);
            let digits = digits_for(&number).unwrap();
            let sum = one.plus(&number).unwrap().rounded(digits, Rounding::HalfEven);
            assert_eq!(exp(&number).unwrap(), sum, "{of}");
        }
        for of in ["1E-199999", "-1E-2147483647"] {
            assert_eq!(text(&exp(&decimal(of)).unwrap()), "1.0000000000000000000000000000000");
        }
    }

    #[test]
    fn known_digits_come_out() {
        assert_eq!(text(&exp(&decimal("1.0")).unwrap()), "2.7182818284590452353602874713527");
        assert_eq!(text(&exp(&decimal("-1.0")).unwrap()), "0.36787944117144232159552377016146");
        assert_eq!(text(&log(&decimal("2.0")).unwrap()), "0.69314718055994530941723212145818");
        assert_eq!(text(&log10(&decimal("2.0")).unwrap()), "0.30102999566398119521373889472449");
        assert_eq!(text(&log(&decimal("0.5")).unwrap()), "-0.69314718055994530941723212145818");
        assert_eq!(text(&log(&decimal("1.00")).unwrap()), "0");
    }
}
