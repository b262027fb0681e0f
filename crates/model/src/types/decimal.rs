//! `decimal`: a scale (i32) and an unscaled `varint`; the value is the unscaled number times 10^-scale.
//!
//! Equal numbers may have different bytes (1.0 and 1.00) and compare as equal. Scales reach two thousand million, so
//! no power of ten is computed for a scale. Texts and ordered encodings work on decimal digits; comparisons compute no digits
//! of long numbers, because that takes much longer than reading their bytes.

use std::cmp::Ordering;
use std::fmt::Write as _;

use num_bigint::{BigInt, BigUint, Sign};

use super::TypeError;
use super::integer;

/// A decimal decomposed into its decimal digits.
pub(crate) struct Parts {
    /// Whether the number is negative.
    pub(crate) negative: bool,
    /// Power of ten that the digits are divided by.
    pub(crate) scale: i32,
    digits: Digits,
}

/// Digits 0 to 9, most significant first, without leading zeros. Numbers of up to 16 bytes are kept inline.
enum Digits {
    Inline { buffer: [u8; INLINE_DIGITS], start: usize },
    Heap(Vec<u8>),
}

/// 2^128 has 39 digits.
const INLINE_DIGITS: usize = 39;

impl Parts {
    /// Decodes a value; `None` if it is too short for a scale (four bytes). No bytes after the scale mean zero.
    pub(crate) fn read(bytes: &[u8]) -> Option<Parts> {
        let (scale, unscaled) = bytes.split_first_chunk::<4>()?;
        let scale = i32::from_be_bytes(*scale);
        if let Some(value) = integer::small(unscaled) {
            let mut buffer = [0; INLINE_DIGITS];
            let mut start = INLINE_DIGITS;
            let mut high = value.unsigned_abs();
            while high > u128::from(u64::MAX) {
                start -= 1;
                buffer[start] = (high % 10) as u8;
                high /= 10;
            }
            let mut rest = high as u64; // division of 128 bits is slow
            while rest != 0 {
                start -= 1;
                buffer[start] = (rest % 10) as u8;
                rest /= 10;
            }
            return Some(Parts { negative: value < 0, scale, digits: Digits::Inline { buffer, start } });
        }
        let (sign, mut digits) = BigInt::from_signed_bytes_be(unscaled).to_radix_be(10);
        if sign == Sign::NoSign {
            digits.clear();
        }
        Some(Parts { negative: sign == Sign::Minus, scale, digits: Digits::Heap(digits) })
    }

    /// The digits, most significant first; none for zero.
    pub(crate) fn digits(&self) -> &[u8] {
        match &self.digits {
            Digits::Inline { buffer, start } => buffer.get(*start..).unwrap_or_default(),
            Digits::Heap(digits) => digits,
        }
    }

    /// The digits without trailing zeros.
    pub(crate) fn significant(&self) -> &[u8] {
        let digits = self.digits();
        let end = digits.iter().rposition(|digit| *digit != 0).map_or(0, |last| last + 1);
        digits.get(..end).unwrap_or_default()
    }

    /// The power of ten by which `0.digits` is multiplied.
    pub(crate) fn exponent(&self) -> i64 {
        self.digits().len() as i64 - i64::from(self.scale)
    }
}

/// Longer serialised decimals are compared without their digits.
const DIGITS_BYTES_MAX: usize = 20;

pub(super) fn compare(a: &[u8], b: &[u8]) -> Ordering {
    if a.len().max(b.len()) > DIGITS_BYTES_MAX {
        return compare_long(a, b);
    }
    let (Some(a), Some(b)) = (Parts::read(a), Parts::read(b)) else {
        return a.len().cmp(&b.len());
    };
    let sign = |parts: &Parts| match (parts.digits().is_empty(), parts.negative) {
        (true, _) => 0,
        (false, true) => -1,
        (false, false) => 1,
    };
    let (sign_a, sign_b) = (sign(&a), sign(&b));
    if sign_a != sign_b || sign_a == 0 {
        return sign_a.cmp(&sign_b);
    }
    let magnitude = a.exponent().cmp(&b.exponent()).then_with(|| a.significant().cmp(b.significant()));
    if sign_a < 0 { magnitude.reverse() } else { magnitude }
}

/// Compares by signs, then by logarithms, for which the first bytes suffice. Only numbers that are nearly equal are
/// brought to the same scale; the difference of their scales is then that of their numbers of digits.
fn compare_long(a: &[u8], b: &[u8]) -> Ordering {
    if a.len() < 4 || b.len() < 4 {
        return a.len().cmp(&b.len());
    }
    let (of_a, of_b) = (Magnitude::of(a), Magnitude::of(b));
    if let Some(order) = of_a.order(&of_b) {
        return order;
    }
    let (Some((scale_a, number_a)), Some((scale_b, number_b))) = (parsed(a), parsed(b)) else {
        return a.len().cmp(&b.len());
    };
    let (number_a, number_b) = (number_a.magnitude(), number_b.magnitude());
    let power = BigUint::from(10_u32).pow(scale_a.abs_diff(scale_b));
    let magnitude = match scale_a.cmp(&scale_b) {
        Ordering::Less => (number_a * power).cmp(number_b),
        Ordering::Equal => number_a.cmp(number_b),
        Ordering::Greater => number_a.cmp(&(number_b * power)),
    };
    if of_a.sign == Sign::Minus { magnitude.reverse() } else { magnitude }
}

/// Whether two values are so nearly equal, with different scales, that their comparison computes a power of ten. It has
/// about as many digits as the longer number.
#[must_use]
pub fn decimals_need_power(a: &[u8], b: &[u8]) -> bool {
    a.len().max(b.len()) > DIGITS_BYTES_MAX
        && a.len().min(b.len()) >= 4
        && a.first_chunk::<4>() != b.first_chunk::<4>()
        && Magnitude::of(a).order(&Magnitude::of(b)).is_none()
}

/// Sign and approximate size of a number.
struct Magnitude {
    sign: Sign,
    /// The logarithm to base ten, with an error below half of `LOGARITHM_ERROR_MAX`.
    log10: f64,
}

impl Magnitude {
    /// Of a serialised decimal.
    fn of(bytes: &[u8]) -> Magnitude {
        let Some((scale, unscaled)) = bytes.split_first_chunk::<4>() else {
            return Magnitude { sign: Sign::NoSign, log10: 0.0 };
        };
        let is_negative = unscaled.first().is_some_and(|first| *first > 0x7F);
        let filler = if is_negative { 0xFF } else { 0 };
        let start = unscaled.iter().position(|byte| *byte != filler).unwrap_or(unscaled.len());
        let digits = unscaled.get(start..).unwrap_or_default();
        if digits.is_empty() && !is_negative {
            return Magnitude { sign: Sign::NoSign, log10: 0.0 };
        }
        // The first bytes decide all bits of a double. Those of a negative number are the complement of its magnitude
        // less one, which matters only where there are no other bytes.
        let first = digits.get(..digits.len().min(HIGH_BYTES)).unwrap_or_default();
        let high = first.iter().fold(0_u64, |high, byte| high << 8 | u64::from(byte ^ filler));
        let behind = digits.len() - first.len();
        let high = high as f64 + if is_negative && behind == 0 { 1.0 } else { 0.0 };
        let log10 = high.log10() + behind as f64 * (8.0 * std::f64::consts::LOG10_2)
            - f64::from(i32::from_be_bytes(*scale));
        Magnitude { sign: if is_negative { Sign::Minus } else { Sign::Plus }, log10 }
    }

    /// The order of two numbers; `None` if they are nearly equal.
    fn order(&self, other: &Magnitude) -> Option<Ordering> {
        if self.sign != other.sign || self.sign == Sign::NoSign {
            return Some(self.sign.cmp(&other.sign));
        }
        let distance = self.log10 - other.log10;
        if distance.abs() <= LOGARITHM_ERROR_MAX {
            return None;
        }
        let magnitude = distance.total_cmp(&0.0);
        Some(if self.sign == Sign::Minus { magnitude.reverse() } else { magnitude })
    }
}

/// The bytes of a number from which its logarithm is computed.
const HIGH_BYTES: usize = 8;

/// More than the error of a difference of two logarithms. A scale is below 2^31 and a number has less than 2^31 bytes, so
/// each rounding of a double changes less than 2^34 / 2^53; the bytes that are left out change less than 2^-55.
const LOGARITHM_ERROR_MAX: f64 = 1e-4;

fn parsed(bytes: &[u8]) -> Option<(i32, BigInt)> {
    let (scale, unscaled) = bytes.split_first_chunk::<4>()?;
    Some((i32::from_be_bytes(*scale), BigInt::from_signed_bytes_be(unscaled)))
}

/// Prints like Java's `BigDecimal.toString`: in plain form if the scale is not negative and at most five zeros follow
/// the point, otherwise in scientific form.
pub(super) fn write(bytes: &[u8], out: &mut String) {
    let Some(parts) = Parts::read(bytes) else { return };
    let digits = if parts.digits().is_empty() { &[0][..] } else { parts.digits() };
    let push =
        |out: &mut String, digits: &[u8]| out.extend(digits.iter().map(|digit| char::from(b'0' + digit)));
    if parts.negative {
        out.push('-');
    }
    let scale = i64::from(parts.scale);
    let adjusted = digits.len() as i64 - 1 - scale;
    if scale == 0 {
        push(out, digits);
    } else if scale > 0 && adjusted >= -6 {
        let whole = usize::try_from(digits.len() as i64 - scale).unwrap_or(0);
        let (before, after) = digits.split_at(whole);
        push(out, if before.is_empty() { &[0] } else { before });
        out.push('.');
        out.extend(std::iter::repeat_n('0', scale as usize - after.len()));
        push(out, after);
    } else {
        let (first, rest) = digits.split_at(1);
        push(out, first);
        if !rest.is_empty() {
            out.push('.');
            push(out, rest);
        }
        if adjusted != 0 {
            _ = write!(out, "E{adjusted:+}");
        }
    }
}

/// Parses the texts that `new BigDecimal(String)` accepts.
pub(super) fn parse(text: &str) -> Result<Vec<u8>, TypeError> {
    parse_parts(text).ok_or_else(|| TypeError::text("unable to make BigDecimal from", text))
}

fn parse_parts(text: &str) -> Option<Vec<u8>> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, parse_exponent(exponent)?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let mut digits = String::with_capacity(mantissa.len());
    digits.push_str(whole);
    digits.push_str(fraction);
    let scale = i32::try_from(fraction.len() as i64 - exponent).ok()?;
    let unscaled = match digits.parse::<i128>() {
        Ok(value) => integer::shortest(value),
        Err(_) => integer::parse_big(&digits)?.to_signed_bytes_be(),
    };
    let mut bytes = Vec::with_capacity(4 + unscaled.len());
    bytes.extend_from_slice(&scale.to_be_bytes());
    bytes.extend_from_slice(&unscaled);
    Some(bytes)
}

pub(super) fn parse_exponent(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let valid = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if !valid { None } else { text.parse::<i32>().ok().map(i64::from) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn printed(text: &str) -> String {
        let mut out = String::new();
        write(&parse(text).unwrap(), &mut out);
        out
    }

    #[test]
    fn decimals_print_as_java_prints_them() {
        for text in [
            "0",
            "0.00",
            "1.10",
            "-1.5",
            "123456789012345678901234567890.5",
            "0.000001",
            "1E+3",
            "-1.2E-7",
            "0E+5",
        ] {
            assert_eq!(printed(text), text);
        }
        assert_eq!(printed("12e2"), "1.2E+3");
        assert_eq!(printed("+.5"), "0.5");
        assert_eq!(printed("0.0000001"), "1E-7");
        assert_eq!(printed("1e-2147483647"), "1E-2147483647");
    }

    #[test]
    fn decimals_order_by_value() {
        let ordered = [
            "-1e9", "-100", "-99.9", "-99", "-1.00", "-0.5", "-1e-9", "0.0", "1e-9", "0.5", "1", "1.1", "99",
            "1e9",
        ];
        for (i, a) in ordered.iter().enumerate() {
            for (j, b) in ordered.iter().enumerate() {
                assert_eq!(compare(&parse(a).unwrap(), &parse(b).unwrap()), i.cmp(&j), "{a} {b}");
            }
        }
        assert_eq!(compare(&parse("1").unwrap(), &parse("1.000").unwrap()), Ordering::Equal);
        assert_eq!(compare(&parse("0e9").unwrap(), &parse("-0").unwrap()), Ordering::Equal);
        assert_eq!(compare(&[], &parse("-1").unwrap()), Ordering::Less);
    }

    /// Compares by digits, as short numbers are.
    fn compare_by_digits(a: &[u8], b: &[u8]) -> Ordering {
        let (a, b) = (Parts::read(a).unwrap(), Parts::read(b).unwrap());
        let value = |parts: &Parts| {
            let digits = parts.significant().to_vec();
            (!digits.is_empty(), if digits.is_empty() { 0 } else { parts.exponent() }, digits)
        };
        let is_less_than_zero = |parts: &Parts| parts.negative && !parts.digits().is_empty();
        match (is_less_than_zero(&a), is_less_than_zero(&b)) {
            (false, false) => value(&a).cmp(&value(&b)),
            (true, true) => value(&b).cmp(&value(&a)),
            (a, b) => b.cmp(&a),
        }
    }

    proptest! {
        #[test]
        fn long_numbers_compare_as_their_digits_do(
            start in prop::collection::vec(any::<u8>(), 0..40),
            zeros in 0_u32..60,
            ends in prop::array::uniform2(prop_oneof![Just(0_i32), -3_i32..4]),
            scale in prop_oneof![-50_i32..50, Just(i32::MIN + 70), Just(i32::MAX - 70)],
            moved in -2_i32..3,
            is_negated: bool,
        ) {
            let number = BigInt::from_signed_bytes_be(&start);
            let value = |number: BigInt, scale: i32| [&scale.to_be_bytes()[..], &number.to_signed_bytes_be()].concat();
            let a = value(&number + ends[0], scale);
            // Nearly the same number with more digits.
            let longer = (&number + ends[1] / 2) * BigInt::from(10).pow(zeros) + ends[1] % 2;
            let longer = if is_negated { -longer } else { longer };
            let b = value(longer, scale + zeros as i32 + moved);
            prop_assert_eq!(compare(&a, &b), compare_by_digits(&a, &b));
            prop_assert_eq!(compare_long(&a, &b), compare_by_digits(&a, &b));
            prop_assert_eq!(compare_long(&b, &a), compare_by_digits(&b, &a));
        }
    }

    proptest! {
        /// What an estimate of the work relies on: without a power the comparison only looks at bytes.
        #[test]
        fn logarithms_are_those_of_the_digits(bytes in prop::collection::vec(any::<u8>(), 1..60), scale: i32) {
            let value = [&scale.to_be_bytes()[..], &bytes].concat();
            let (found, parts) = (Magnitude::of(&value), Parts::read(&value).unwrap());
            if parts.digits().is_empty() {
                prop_assert_eq!(found.sign, Sign::NoSign);
                return Ok(());
            }
            prop_assert_eq!(found.sign == Sign::Minus, parts.negative);
            let first = parts.digits().iter().take(17).fold(0.0, |sum, digit| sum * 10.0 + f64::from(*digit));
            let more = parts.digits().len().saturating_sub(17) as f64;
            let expected = f64::log10(first) + more - f64::from(scale);
            prop_assert!((found.log10 - expected).abs() < LOGARITHM_ERROR_MAX / 4.0, "{} {expected}", found.log10);
        }
    }

    #[test]
    fn only_nearly_equal_numbers_need_a_power() {
        let decimal = |scale: i32, unscaled: BigInt| {
            [&scale.to_be_bytes()[..], &unscaled.to_signed_bytes_be()].concat()
        };
        let long = BigInt::from(10).pow(3000);
        let short = decimal(-3000, BigInt::from(1));
        for (near, order) in
            [(&long - 1, Ordering::Less), (long.clone(), Ordering::Equal), (&long + 1, Ordering::Greater)]
        {
            let near = decimal(0, near);
            assert!(decimals_need_power(&near, &short) && decimals_need_power(&short, &near));
            assert_eq!(compare(&near, &short), order);
        }
        for far in
            [decimal(0, &long * 2), decimal(0, -&long), decimal(1, long.clone()), decimal(0, BigInt::ZERO)]
        {
            assert!(!decimals_need_power(&far, &short), "{far:?}");
        }
        assert!(!decimals_need_power(&decimal(7, long.clone()), &decimal(7, long + 1)));
        assert!(!decimals_need_power(&[], &short) && !decimals_need_power(&short, &[]));
    }

    /// Digits of such numbers take minutes in a build for tests.
    #[test]
    fn numbers_of_megabytes_are_compared_without_digits() {
        let long = |scale: i32, first: u8| [&scale.to_be_bytes()[..], &vec![first; 4 << 20]].concat();
        assert_eq!(compare(&long(0, 5), &long(0, 6)), Ordering::Less);
        assert_eq!(compare(&long(7, 5), &long(7, 5)), Ordering::Equal);
        assert_eq!(compare(&long(i32::MAX, 5), &parse("1").unwrap()), Ordering::Less);
        assert_eq!(compare(&long(0, 0xFE), &parse("-1e2147483647").unwrap()), Ordering::Greater);
    }

    #[test]
    fn text_that_is_no_decimal_is_refused() {
        for text in ["", ".", "e1", "1e", "1.2.3", "NaN", "1_0", "--1", "1.-2", "1e99999999999"] {
            assert_eq!(
                parse(text).unwrap_err().to_string(),
                format!("unable to make BigDecimal from '{text}'")
            );
        }
    }
}
