//! Estimates the steps of arithmetic on `varint` and `decimal` (`crate::cost` says why and in which unit), with the same
//! case distinctions as `decimal` and `logarithm`. Other numbers have at most eight bytes and cost one step.

use super::decimal::{Decimal, POWER_MAX, PRECISION_MAX, QUOTIENT_DIGITS_MIN, QUOTIENT_SCALE_MAX};
use super::math::Math;
use crate::cost::{digits, digits_of_words, power_of_ten, product, quotient, words, words_of_digits};
use crate::syntax::ast::ArithmeticOperator;
use helenus_model::types::CqlType;

/// More than the scale of any double.
const DOUBLE_SCALE: u64 = 400;
/// Digits of the longest argument of exp, log and log10, and of the shortest computation.
const LOGARITHM_DIGITS: (u64, u64) = (50, 1000);

/// The size of an operand.
#[derive(Clone, Copy)]
struct Size {
    words: u64,
    scale: i64,
    /// How far the scale may be from `scale`.
    error: u64,
}

impl Size {
    fn of(ty: &CqlType, value: &[u8]) -> Size {
        match (ty, value.split_first_chunk::<4>()) {
            (CqlType::Decimal, Some((scale, unscaled))) => {
                Size { words: words(unscaled.len()), scale: i32::from_be_bytes(*scale).into(), error: 0 }
            }
            (CqlType::Float | CqlType::Double, _) => Size { words: 1, scale: 0, error: DOUBLE_SCALE },
            _ => Size { words: words(value.len()), scale: 0, error: 0 },
        }
    }
}

/// An operator's steps. `returns` is the type of its result.
pub(super) fn arithmetic(
    operator: ArithmeticOperator,
    returns: &CqlType,
    operands: [(&CqlType, &[u8]); 2],
) -> usize {
    use ArithmeticOperator::{Add, Divide, Modulo, Multiply, Subtract};
    let [left, right] = operands.map(|(ty, value)| Size::of(ty, value));
    match (returns, operator) {
        (CqlType::Decimal, Add | Subtract) => {
            let digits_max = PRECISION_MAX + digits_of_words(left.words.saturating_add(right.words));
            let power = distance(left, right).min(digits_max);
            let shifted = left.words.max(right.words) + words_of_digits(power);
            shift(left.words.max(right.words), power).saturating_add(rounding(shifted))
        }
        (CqlType::Decimal, Multiply) => {
            product(left.words, right.words).saturating_add(rounding(left.words + right.words))
        }
        (CqlType::Decimal, Divide | Modulo) => {
            let digits = digits_of_words(left.words + right.words);
            let scale =
                (QUOTIENT_DIGITS_MIN as u64 + digits + distance(left, right)).min(QUOTIENT_SCALE_MAX as u64);
            let power = (distance(left, right) + scale).min(POWER_MAX.into());
            let more = words_of_digits(power);
            let shifted = shift(left.words.max(right.words), power);
            let divided =
                quotient(left.words + more, right.words).max(quotient(left.words, right.words + more));
            let words_max = (left.words + more).saturating_sub(right.words).max(left.words);
            // The zeros at the end of a quotient are counted by quotients too.
            let counted =
                quotient(2 * words_max, words_max) + 2 * digits_counted(left.words.max(right.words));
            shifted.saturating_add(divided.saturating_mul(2)).saturating_add(counted)
        }
        (CqlType::Varint, Multiply) => product(left.words, right.words),
        (CqlType::Varint, Divide | Modulo) => quotient(left.words, right.words),
        _ => 0,
    }
}

/// The steps of adding a value to a sum, exactly.
pub(super) fn sum(sum: &Decimal, value: &[u8]) -> usize {
    let value = Size::of(&CqlType::Decimal, value);
    let sum = Size { words: sum.unscaled.bits() / 64 + 1, scale: sum.scale.into(), error: 0 };
    let power = sum.scale.abs_diff(value.scale).min(POWER_MAX.into());
    let words = sum.words.max(value.words);
    (words / 32) as usize + shift(words, power)
}

/// The steps of a function of one number.
pub(super) fn math(math: Math, ty: &CqlType, value: &[u8]) -> usize {
    if !matches!(ty, CqlType::Decimal | CqlType::Varint) {
        return 0;
    }
    let size = Size::of(ty, value);
    match math {
        Math::Abs => 0,
        Math::Round => whole(size),
        Math::Exp | Math::Log | Math::Log10 => {
            let (least, most) = LOGARITHM_DIGITS;
            let digits = digits_of_words(size.words).clamp(least, most);
            // The time grows with the third power of the digits and is half a second at the most.
            let series = (digits * digits * digits / 1000) as usize;
            series + digits_counted(size.words)
        }
    }
}

/// The steps of casting a number to another type or to text.
pub(super) fn cast(ty: &CqlType, value: &[u8]) -> usize {
    match ty {
        CqlType::Decimal | CqlType::Varint => {
            let size = Size::of(ty, value);
            digits(size.words).saturating_add(whole(size))
        }
        _ => 0,
    }
}

/// The largest power of ten by which one of two operands is multiplied.
fn distance(left: Size, right: Size) -> u64 {
    left.scale.abs_diff(right.scale) + left.error + right.error
}

/// A product of a number and a power of ten.
fn shift(number: u64, power: u64) -> usize {
    if power == 0 {
        return 0;
    }
    power_of_ten(power).saturating_add(product(number, words_of_digits(power)))
}

/// Rounding a number of so many words to the most digits of a sum.
fn rounding(number: u64) -> usize {
    let kept = words_of_digits(PRECISION_MAX);
    if number <= kept {
        return 0;
    }
    digits_counted(number).saturating_mul(2).saturating_add(quotient(number, number - kept))
}

/// Counting the digits of a number, which takes a power of ten of the same size.
fn digits_counted(number: u64) -> usize {
    power_of_ten(digits_of_words(number))
}

/// The whole part of a number.
fn whole(size: Size) -> usize {
    let all = digits_of_words(size.words);
    let power = match u64::try_from(size.scale) {
        Ok(behind_point) => behind_point.min(all),
        Err(_) => size.scale.unsigned_abs().min(POWER_MAX.into()),
    };
    shift(size.words, power).saturating_add(quotient(size.words, words_of_digits(power)))
        + digits_counted(size.words)
}
