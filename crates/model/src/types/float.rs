//! `float` and `double`: IEEE 754, big endian; the empty value is allowed and sorts first.
//!
//! The order is that of Java's `Float.compareTo`: -0.0 before 0.0; all NaNs are equal and after infinity.

use std::cmp::Ordering;
use std::fmt::Write as _;

use super::TypeError;
use super::digits::write_padded;
use super::java_digits::Binary;

pub(super) fn compare_float(a: &[u8], b: &[u8]) -> Ordering {
    match (<[u8; 4]>::try_from(a), <[u8; 4]>::try_from(b)) {
        (Ok(a), Ok(b)) => java_order(f32::from_be_bytes(a).into(), f32::from_be_bytes(b).into()),
        _ => a.len().cmp(&b.len()),
    }
}

pub(super) fn compare_double(a: &[u8], b: &[u8]) -> Ordering {
    match (<[u8; 8]>::try_from(a), <[u8; 8]>::try_from(b)) {
        (Ok(a), Ok(b)) => java_order(f64::from_be_bytes(a), f64::from_be_bytes(b)),
        _ => a.len().cmp(&b.len()),
    }
}

fn java_order(a: f64, b: f64) -> Ordering {
    match (a.is_nan(), b.is_nan()) {
        (false, false) => a.total_cmp(&b),
        (a, b) => a.cmp(&b),
    }
}

pub(super) fn write_float(bytes: &[u8; 4], out: &mut String) {
    let value = f32::from_be_bytes(*bytes);
    write_java(value.into(), Binary::of_float(value), out);
}

pub(super) fn write_double(bytes: &[u8; 8], out: &mut String) {
    let value = f64::from_be_bytes(*bytes);
    if !write_short(value, out) {
        write_java(value, Binary::of_double(value), out);
    }
}

fn write_short(value: f64, out: &mut String) -> bool {
    let Some(short) = short(value) else { return false };
    if short.is_negative {
        out.push('-');
    }
    write_padded(short.whole, 1, out);
    out.push('.');
    write_padded(short.fraction, short.digits, out);
    true
}

/// A number with few digits.
pub(super) struct FewDigits {
    pub(super) is_negative: bool,
    pub(super) whole: u64,
    /// The digits after the point as a number; `digits` of them, one to six.
    pub(super) fraction: u64,
    pub(super) digits: usize,
}

/// Splits a number of at most six digits after the point, from 10^-3 to below 10^7, as most measured values are. It has
/// fewer than 15 digits, and no other number with so few digits parses to the same double, so Java prints exactly these
/// digits.
pub(super) fn short(value: f64) -> Option<FewDigits> {
    const SCALE: f64 = 1e6;
    let magnitude = value.abs();
    if !(1e-3..1e7).contains(&magnitude) {
        return None;
    }
    let scaled = (magnitude * SCALE).round();
    if scaled / SCALE != magnitude {
        return None;
    }
    let scaled = scaled as u64;
    let (mut fraction, mut digits) = (scaled % 1_000_000, 6);
    if fraction == 0 {
        digits = 1;
    }
    while digits > 1 && fraction % 10 == 0 {
        fraction /= 10;
        digits -= 1;
    }
    Some(FewDigits { is_negative: value < 0.0, whole: scaled / 1_000_000, fraction, digits })
}

/// Prints in Java's form: plain from 10^-3 to below 10^7, otherwise `d.dE±n`; always with a digit after the point.
/// `binary` is `None` if the number is zero, infinite or NaN.
fn write_java(value: f64, binary: Option<Binary>, out: &mut String) {
    if value.is_nan() {
        out.push_str("NaN");
        return;
    }
    if value.is_sign_negative() {
        out.push('-');
    }
    let Some(binary) = binary else {
        out.push_str(if value.is_infinite() { "Infinity" } else { "0.0" });
        return;
    };
    let found = binary.digits();
    let digits = found.as_slice();
    let push = |out: &mut String, digits: &[u8]| {
        out.extend(digits.iter().map(|digit| char::from(b'0' + digit)));
    };
    let point = match found.exponent {
        -2..=0 => {
            out.push_str("0.");
            out.extend(std::iter::repeat_n('0', found.exponent.unsigned_abs() as usize));
            push(out, digits);
            return;
        }
        places @ 1..=7 => places as usize,
        _ => 1,
    };
    let (before, after) = digits.split_at(point.min(digits.len()));
    push(out, before);
    out.extend(std::iter::repeat_n('0', point - before.len()));
    out.push('.');
    push(out, if after.is_empty() { &[0] } else { after });
    if !(1..=7).contains(&found.exponent) {
        _ = write!(out, "E{}", found.exponent - 1);
    }
}

pub(super) fn parse_float(text: &str) -> Result<Vec<u8>, TypeError> {
    let value = match java_number(text) {
        Some(Number::Nan) => Some(0x7FC0_0000),
        Some(Number::Digits(digits)) => digits.parse::<f32>().ok().map(f32::to_bits),
        Some(Number::Hexadecimal(number)) => u32::try_from(number.rounded(24, -149)).ok(),
        None => None,
    };
    let value = value.ok_or_else(|| TypeError::text("Unable to make float from", text))?;
    Ok(value.to_be_bytes().to_vec())
}

pub(super) fn parse_double(text: &str) -> Result<Vec<u8>, TypeError> {
    let value = match java_number(text) {
        Some(Number::Nan) => Some(0x7FF8_0000_0000_0000),
        Some(Number::Digits(digits)) => digits.parse::<f64>().ok().map(f64::to_bits),
        Some(Number::Hexadecimal(number)) => Some(number.rounded(53, -1074)),
        None => None,
    };
    let value = value.ok_or_else(|| TypeError::text("Unable to make double from", text))?;
    Ok(value.to_be_bytes().to_vec())
}

enum Number<'a> {
    Nan,
    Digits(&'a str),
    Hexadecimal(Hexadecimal),
}

/// Parses what `Double.valueOf` accepts: blanks and control characters around it, a sign, `NaN`, `Infinity`, hexadecimal
/// digits with a binary exponent, a suffix d or f.
fn java_number(text: &str) -> Option<Number<'_>> {
    let text = text.trim_matches(|c: char| c <= ' ');
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    match unsigned {
        "NaN" => return Some(Number::Nan),
        "Infinity" => return Some(Number::Digits(text)),
        _ => {}
    }
    let digits = text.strip_suffix(['d', 'D', 'f', 'F']).unwrap_or(text);
    if let Some(rest) = unsigned.strip_prefix("0x").or_else(|| unsigned.strip_prefix("0X")) {
        let rest = rest.strip_suffix(['d', 'D', 'f', 'F']).unwrap_or(rest);
        return Hexadecimal::parse(text.starts_with('-'), rest).map(Number::Hexadecimal);
    }
    let numeric = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'-' | b'+');
    digits.bytes().all(numeric).then_some(Number::Digits(digits))
}

/// A number `significand * 2^exponent`. If digits were dropped that are not zero, the lowest bit of the significand is set.
struct Hexadecimal {
    is_negative: bool,
    significand: u64,
    exponent: i64,
}

impl Hexadecimal {
    /// Parses what follows `0x`: digits with a point, `p`, the exponent.
    fn parse(is_negative: bool, text: &str) -> Option<Hexadecimal> {
        let (digits, power) = text.split_once(['p', 'P'])?;
        let unsigned = power.strip_prefix(['-', '+']).unwrap_or(power);
        if unsigned.is_empty() || !unsigned.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        // A greater exponent has the same result, because no text has so many digits.
        const POWER_MAX: i64 = 1 << 40;
        let power_size = unsigned.parse().map_or(POWER_MAX, |size: i64| size.min(POWER_MAX));
        let mut exponent = if power.starts_with('-') { -power_size } else { power_size };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let mut significand = 0_u64;
        for (digits, is_fraction) in [(whole, false), (fraction, true)] {
            for digit in digits.chars() {
                let digit = u64::from(digit.to_digit(16)?);
                let is_full = significand >> 60 != 0;
                if is_full {
                    significand |= u64::from(digit != 0);
                } else {
                    significand = significand << 4 | digit;
                }
                exponent += 4 * (i64::from(is_full) - i64::from(is_fraction));
            }
        }
        Some(Hexadecimal { is_negative, significand, exponent })
    }

    /// The bits of the nearest number that has `precision` bits, of two equally near the even one. The lowest bit of the
    /// smallest number is 2^`exponent_min`; the format has as many greater exponents as IEEE 754 says.
    fn rounded(&self, precision: u32, exponent_min: i64) -> u64 {
        let exponent_bits = if precision == 24 { 8 } else { 11 };
        let infinity = ((1_u64 << exponent_bits) - 1) << (precision - 1);
        let sign = u64::from(self.is_negative) << (exponent_bits + precision - 1);
        if self.significand == 0 {
            return sign;
        }
        let shift = self.significand.leading_zeros();
        let (significand, exponent) = (self.significand << shift, self.exponent - i64::from(shift));
        // The exponent of the lowest bit that is kept.
        let lowest = exponent_min.max(exponent + 64 - i64::from(precision));
        // At least 11 bits are dropped; from 65 on, nothing is left.
        let dropped = u32::try_from(lowest - exponent).unwrap_or(u32::MAX);
        if dropped > 64 {
            return sign;
        }
        let wide = u128::from(significand);
        let (kept, rest, half) =
            ((wide >> dropped) as u64, wide & ((1 << dropped) - 1), 1_u128 << (dropped - 1));
        let up = rest > half || rest == half && kept & 1 == 1;
        // Zero for numbers with less than the full precision; a full significand adds one.
        let field = u64::try_from(lowest - exponent_min).unwrap_or(0);
        if field >= 1 << exponent_bits {
            return sign | infinity;
        }
        sign | ((field << (precision - 1)) + kept + u64::from(up)).min(infinity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(value: f64) -> String {
        let mut out = String::new();
        write_double(&value.to_be_bytes(), &mut out);
        out
    }

    #[test]
    fn doubles_print_as_java_prints_them() {
        let cases = [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (-1.5, "-1.5"),
            (100.0, "100.0"),
            (1234567.0, "1234567.0"),
            (12345678.0, "1.2345678E7"),
            (1e7, "1.0E7"),
            (0.001, "0.001"),
            (0.00123, "0.00123"),
            (0.0001, "1.0E-4"),
            (123.456, "123.456"),
            (1e21, "1.0E21"),
            (1.25e-10, "1.25E-10"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
            (f64::MAX, "1.7976931348623157E308"),
            // JDK 17 prints more digits here than are needed.
            (2.0e-3, "0.002"),
            (2e23, "1.9999999999999998E23"),
            (2.2250738585072014e-308, "2.2250738585072014E-308"),
            (f64::from_bits(1), "4.9E-324"),
            (2_f64.powi(-44), "5.6843418860808015E-14"),
            (9_223_372_036_854_775_807.0, "9.223372036854776E18"),
        ];
        for (value, text) in cases {
            assert_eq!(printed(value), text);
        }
    }

    #[test]
    fn numbers_of_few_digits_print_the_short_way_as_the_long_one() {
        let mut state = 1_u64;
        let mut short = 0;
        for round in 0..20_000_u64 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let digits = (state >> 20) % 10_u64.pow(1 + (round % 13) as u32);
            let sign = if round % 2 == 0 { 1.0 } else { -1.0 };
            let value = sign * digits as f64 / 10_f64.powi((round / 13 % 8) as i32);
            for value in [value, f64::from_bits(value.to_bits().wrapping_add(1))] {
                let (mut quick, mut any) = (String::new(), String::new());
                write_java(value, Binary::of_double(value), &mut any);
                if write_short(value, &mut quick) {
                    assert_eq!(quick, any);
                    short += 1;
                }
            }
        }
        assert!(short > 5_000, "{short}");
    }

    /// `tests/types_against_cassandra.rs` has drawn numbers.
    #[test]
    fn what_java_reads_is_read() {
        for (text, value) in [
            ("1d", 1.0),
            (" +4. ", 4.0),
            ("0x1.8p-1", 0.75),
            ("-0X.8P+3f", -4.0),
            ("0x1p-1075", 0.0),
            ("1e400", f64::INFINITY),
        ] {
            assert_eq!(parse_double(text).unwrap(), f64::to_be_bytes(value), "{text}");
        }
        for text in ["", "inf", "nan", "1.2.3", "e", "0x1", "0xp1", "0x.p1", "infinity", "\u{a0}1"] {
            assert!(parse_double(text).is_err(), "{text}");
        }
        assert_eq!(parse_double("-NaN").unwrap(), parse_double("NaN").unwrap());
        assert_eq!(parse_float("x").unwrap_err().to_string(), "Unable to make float from 'x'");
    }
}
