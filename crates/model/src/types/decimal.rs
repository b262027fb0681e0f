//! `decimal`: a scale (i32) and an unscaled `varint`; the value is the unscaled number times 10^-scale.
//!
//! Equal numbers may have different bytes (1.0 and 1.00) and compare as equal. Scales reach two thousand million, so
//! powers of ten are never computed: all operations work on decimal digits.

use std::cmp::Ordering;
use std::fmt::Write as _;

use num_bigint::{BigInt, Sign};

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

pub(super) fn compare(a: &[u8], b: &[u8]) -> Ordering {
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

fn parse_exponent(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let valid = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if !valid { None } else { text.parse::<i32>().ok().map(i64::from) }
}

#[cfg(test)]
mod tests {
    use super::*;

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
