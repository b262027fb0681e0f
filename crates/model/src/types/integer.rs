//! `tinyint`, `smallint`, `int`, `bigint` (and a counter as clients see it), and `varint`.
//!
//! All are two's complement, big endian. `tinyint` and `smallint` have no empty value; the empty value of the others
//! sorts before every number (`Int32Type` and the other integer types, `IntegerType`).

use std::cmp::Ordering;
use std::collections::HashMap;
use std::fmt::Write as _;

use num_bigint::BigInt;

use super::TypeError;
use super::digits::write_integer;

/// Order of two values of one fixed-length signed type; the empty value is first. Values of other lengths have some
/// order.
#[inline]
pub(super) fn compare_fixed(a: &[u8], b: &[u8]) -> Ordering {
    if let (Ok(a), Ok(b)) = (<[u8; 4]>::try_from(a), <[u8; 4]>::try_from(b)) {
        return i32::from_be_bytes(a).cmp(&i32::from_be_bytes(b));
    }
    if let (Ok(a), Ok(b)) = (<[u8; 8]>::try_from(a), <[u8; 8]>::try_from(b)) {
        return i64::from_be_bytes(a).cmp(&i64::from_be_bytes(b));
    }
    match (a.split_first(), b.split_first()) {
        (Some((first_a, rest_a)), Some((first_b, rest_b))) => {
            (*first_a as i8).cmp(&(*first_b as i8)).then_with(|| rest_a.cmp(rest_b))
        }
        (None, None) => Ordering::Equal,
        (None, Some(_)) => Ordering::Less,
        (Some(_), None) => Ordering::Greater,
    }
}

/// Order of two `varint`s, which may have redundant sign bytes; the empty value is first.
pub(super) fn compare_varint(a: &[u8], b: &[u8]) -> Ordering {
    let (Some(sign_a), Some(sign_b)) = (a.first(), b.first()) else {
        return a.len().cmp(&b.len());
    };
    let (negative_a, negative_b) = (*sign_a >= 0x80, *sign_b >= 0x80);
    match (negative_a, negative_b) {
        (true, false) => return Ordering::Less,
        (false, true) => return Ordering::Greater,
        _ => {}
    }
    let (a, b) = (magnitude(a), magnitude(b));
    let longer = a.len().cmp(&b.len());
    if negative_a { longer.reverse().then_with(|| a.cmp(b)) } else { longer.then_with(|| a.cmp(b)) }
}

/// The bytes after all leading sign bytes (0xFF for a negative number, otherwise 0x00).
fn magnitude(bytes: &[u8]) -> &[u8] {
    let sign = if bytes.first().is_some_and(|first| *first >= 0x80) { 0xFF } else { 0x00 };
    let skip = bytes.iter().position(|byte| *byte != sign).unwrap_or(bytes.len());
    bytes.get(skip..).unwrap_or_default()
}

/// The value of a fixed-length integer of one, two, four or eight bytes.
pub(super) fn to_i64(bytes: &[u8]) -> Option<i64> {
    if let Ok(bytes) = <[u8; 8]>::try_from(bytes) {
        return Some(i64::from_be_bytes(bytes));
    }
    if let Ok(bytes) = <[u8; 4]>::try_from(bytes) {
        return Some(i64::from(i32::from_be_bytes(bytes)));
    }
    if let Ok(bytes) = <[u8; 2]>::try_from(bytes) {
        return Some(i64::from(i16::from_be_bytes(bytes)));
    }
    match bytes {
        [byte] => Some(i64::from(*byte as i8)),
        _ => None,
    }
}

pub(super) fn write_varint(bytes: &[u8], out: &mut String) {
    match small(bytes) {
        Some(value) => match i64::try_from(value) {
            Ok(value) => write_integer(value, out),
            Err(_) => _ = write!(out, "{value}"),
        },
        None => _ = write!(out, "{}", BigInt::from_signed_bytes_be(bytes)),
    }
}

/// The value of a `varint` of at most 16 bytes.
pub(super) fn small(bytes: &[u8]) -> Option<i128> {
    if bytes.len() > 16 {
        return None;
    }
    let mut value = if bytes.first().is_some_and(|first| *first >= 0x80) { -1_i128 } else { 0 };
    for byte in bytes {
        value = value << 8 | i128::from(*byte);
    }
    Some(value)
}

/// The shortest two's complement bytes of `value`.
pub(super) fn shortest(value: i128) -> Vec<u8> {
    let bytes = value.to_be_bytes();
    let significant = 128 - (value ^ (value >> 127)).leading_zeros() as usize; // without the sign bit
    bytes[16 - (significant / 8 + 1)..].to_vec()
}

pub(super) fn parse_tinyint(text: &str) -> Result<Vec<u8>, TypeError> {
    text.parse::<i8>()
        .map(|value| value.to_be_bytes().to_vec())
        .map_err(|_| TypeError::text("Unable to make byte from", text))
}

pub(super) fn parse_smallint(text: &str) -> Result<Vec<u8>, TypeError> {
    text.parse::<i16>()
        .map(|value| value.to_be_bytes().to_vec())
        .map_err(|_| TypeError::text("Unable to make short from", text))
}

pub(super) fn parse_int(text: &str) -> Result<Vec<u8>, TypeError> {
    text.parse::<i32>()
        .map(|value| value.to_be_bytes().to_vec())
        .map_err(|_| TypeError::text("Unable to make int from", text))
}

pub(super) fn parse_bigint(text: &str) -> Result<Vec<u8>, TypeError> {
    text.parse::<i64>()
        .map(|value| value.to_be_bytes().to_vec())
        .map_err(|_| TypeError::text("Unable to make long from", text))
}

pub(super) fn parse_varint(text: &str) -> Result<Vec<u8>, TypeError> {
    if let Ok(value) = text.parse::<i128>() {
        return Ok(shortest(value));
    }
    parse_big(text)
        .map(|value| value.to_signed_bytes_be())
        .ok_or_else(|| TypeError::text("unable to make int from", text))
}

/// Parses digits with an optional sign. Stricter than `BigInt`'s own parser, which accepts underscores.
pub(super) fn parse_big(text: &str) -> Option<BigInt> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let mut powers = PowersOfTen::default();
    let value = read_digits(digits, &mut powers)?;
    Some(if text.starts_with('-') { -value } else { value })
}

/// Number of digits that `num_bigint` parses at once; its parser takes quadratic time.
const DIGITS_AT_ONCE: usize = 4096;

/// Powers of ten that `read_digits` has computed, by exponent.
type PowersOfTen = HashMap<usize, BigInt>;

/// Parses ASCII digits. Long texts are split, and the parts are combined by multiplication, which takes less than
/// quadratic time.
fn read_digits(digits: &str, powers: &mut PowersOfTen) -> Option<BigInt> {
    if digits.len() <= DIGITS_AT_ONCE {
        return digits.parse().ok();
    }
    // The number of low digits is a power of two times DIGITS_AT_ONCE, so that few different powers of ten are needed.
    let low_length = DIGITS_AT_ONCE << ((digits.len() - 1) / DIGITS_AT_ONCE).ilog2();
    let (high, low) = digits.split_at_checked(digits.len() - low_length)?;
    let high = read_digits(high, powers)?;
    let low = read_digits(low, powers)?;
    Some(high * power_of_ten(low_length, powers) + low)
}

/// Ten to a power of two times `DIGITS_AT_ONCE`, computed by squaring the previous power.
fn power_of_ten(exponent: usize, powers: &mut PowersOfTen) -> &BigInt {
    if !powers.contains_key(&exponent) {
        let power = if exponent <= DIGITS_AT_ONCE {
            BigInt::from(10).pow(exponent as u32)
        } else {
            let root = power_of_ten(exponent / 2, powers);
            root * root
        };
        powers.insert(exponent, power);
    }
    &powers[&exponent]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_formatting_writes_them() {
        for value in [0, 1, -1, 9, 10, 99, 100, -12345, i64::MAX, i64::MIN, i64::MAX / 10, 1_000_000_000] {
            let mut out = String::new();
            write_integer(value, &mut out);
            assert_eq!(out, value.to_string());
        }
    }

    #[test]
    fn varints_order_by_value_whatever_their_padding() {
        let values = [i128::MIN, -70_000, -257, -256, -129, -128, -1, 0, 1, 127, 128, 255, 256, i128::MAX];
        for a in values {
            for b in values {
                let (plain, mut padded) = (shortest(a), shortest(b));
                assert_eq!(compare_varint(&plain, &padded), a.cmp(&b), "{a} {b}");
                padded.insert(0, if b < 0 { 0xFF } else { 0 });
                assert_eq!(compare_varint(&plain, &padded), a.cmp(&b), "{a} {b} padded");
            }
            assert_eq!(small(&shortest(a)), Some(a));
            assert_eq!(BigInt::from(a).to_signed_bytes_be(), shortest(a));
            assert_eq!(compare_varint(&[], &shortest(a)), Ordering::Less);
        }
    }

    #[test]
    fn long_numbers_are_read_in_parts_as_they_are_read_at_once() {
        let digit = |i: usize| char::from(b'0' + (i * i * 7 + i / 3) as u8 % 10);
        for length in [1, 4095, 4096, 4097, 8192, 8193, 12_288, 12_289, 30_000, 70_001] {
            for sign in ["", "-", "+"] {
                let text: String = sign.chars().chain((0..length).map(digit)).collect();
                assert_eq!(parse_big(&text), text.parse().ok(), "{sign} and {length} digits");
            }
        }
        assert_eq!(parse_big(&"0".repeat(10_000)), Some(BigInt::ZERO));
    }

    #[test]
    fn numbers_that_do_not_fit_are_refused_in_cassandras_words() {
        let text = |result: Result<Vec<u8>, TypeError>| result.unwrap_err().to_string();
        assert_eq!(text(parse_int("99999999999")), "Unable to make int from '99999999999'");
        assert_eq!(text(parse_tinyint("128")), "Unable to make byte from '128'");
        assert_eq!(text(parse_smallint("")), "Unable to make short from ''");
        assert_eq!(text(parse_bigint("1e3")), "Unable to make long from '1e3'");
        assert_eq!(text(parse_varint("1_0")), "unable to make int from '1_0'");
        assert_eq!(parse_varint("-170141183460469231731687303715884105729").unwrap().len(), 17);
    }
}
