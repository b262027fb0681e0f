//! Prints one value as cqlsh does (`formatting.py`: `format_value` and its formatters).

use super::collection;
use super::float::{self, Digits};
use super::paint::{BLUE, GREEN, Painted, Painter, RED, YELLOW, is_printable};
use super::time::{DEFAULT_TIMESTAMP, TimeFormat};
use helenus_model::types::{CqlType, Duration, write_text};
use std::fmt::Write as _;
use std::net::IpAddr;

/// The formatting rules of values, which the user may set.
#[derive(Clone, Debug)]
pub struct ValueRules {
    pub float: Digits,
    pub double: Digits,
    pub timestamp: TimeFormat,
    pub null: String,
    /// The words for true and false.
    pub booleans: [String; 2],
    /// Replaces the decimal point in numbers.
    pub decimal_separator: Option<char>,
    /// Separates groups of three digits.
    pub thousands_separator: Option<char>,
    /// Whether control characters are printed as escapes, and backslashes doubled.
    pub escapes: bool,
    /// Whether the text must be read back as the same value, as COPY TO writes it. Then all dates have a year, and a duration
    /// of zero has a unit.
    pub reads_back: bool,
}

impl Default for ValueRules {
    fn default() -> ValueRules {
        ValueRules {
            float: Some(5),
            double: Some(5),
            timestamp: TimeFormat::new(DEFAULT_TIMESTAMP),
            null: "null".to_owned(),
            booleans: ["True".to_owned(), "False".to_owned()],
            decimal_separator: None,
            thousands_separator: None,
            escapes: true,
            reads_back: false,
        }
    }
}

/// How values are shown.
#[derive(Clone, Copy, Debug)]
pub struct Style<'r> {
    pub rules: &'r ValueRules,
    pub in_colour: bool,
}

/// The text of a value; `None` is null.
pub fn show(ty: &CqlType, value: Option<&[u8]>, style: Style<'_>) -> Painted {
    let mut painter = Painter::new(style.in_colour);
    put(ty, value, style.rules, false, &mut painter);
    painter.done()
}

/// The coloured name of a column.
pub fn show_name(name: &str, colour: &str, in_colour: bool) -> Painted {
    let mut painter = Painter::new(in_colour);
    painter.put_escaped(colour, name, is_printable);
    painter.done()
}

/// Appends a value. Inside collections (`quoted`), a value that is a string in CQL is quoted.
pub(super) fn put(
    ty: &CqlType,
    value: Option<&[u8]>,
    rules: &ValueRules,
    quoted: bool,
    painter: &mut Painter,
) {
    let Some(bytes) = value else { return painter.put(RED, &rules.null) };
    match ty {
        CqlType::Text | CqlType::Ascii => return put_text(bytes, rules, quoted, painter),
        CqlType::Blob => return painter.put(super::paint::DARK_MAGENTA, &blob(bytes)),
        // An empty value of a type that is not a text: every type had one in old versions.
        _ if bytes.is_empty() => return painter.put(YELLOW, ""),
        _ if ty.validate_stored(bytes).is_err() => return painter.put(RED, &blob(bytes)),
        _ => {}
    }
    match ty {
        CqlType::List { .. }
        | CqlType::Set { .. }
        | CqlType::Map { .. }
        | CqlType::Tuple(_)
        | CqlType::Udt(_)
        | CqlType::Vector { .. } => collection::put(ty, bytes, rules, painter),
        CqlType::Timestamp | CqlType::Inet if quoted => {
            painter.put(GREEN, &format!("'{}'", scalar(ty, bytes, rules)))
        }
        CqlType::Custom(_) => painter.put(super::paint::DARK_MAGENTA, &blob(bytes)),
        _ => painter.put(GREEN, &scalar(ty, bytes, rules)),
    }
}

fn put_text(bytes: &[u8], rules: &ValueRules, quoted: bool, painter: &mut Painter) {
    let text = String::from_utf8_lossy(bytes);
    let text = if quoted { format!("'{}'", text.replace('\'', "''")).into() } else { text };
    match rules.escapes {
        true => painter.put_escaped(YELLOW, &text, is_printable),
        false => painter.put(YELLOW, &text),
    }
}

fn blob(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 + 2 * bytes.len());
    text.push_str("0x");
    for byte in bytes {
        _ = write!(text, "{byte:02x}");
    }
    text
}

/// The text of a valid scalar value that is not a text.
fn scalar(ty: &CqlType, bytes: &[u8], rules: &ValueRules) -> String {
    let plain = || {
        let mut text = String::new();
        write_text(ty, bytes, &mut text);
        text
    };
    match ty {
        CqlType::Boolean => {
            let [yes, no] = &rules.booleans;
            if bytes == [0] { no } else { yes }.clone()
        }
        CqlType::Float => match bytes.first_chunk::<4>() {
            Some(bytes) => {
                separated(float::number(f32::from_be_bytes(*bytes).into(), rules.float, plain), rules)
            }
            None => plain(),
        },
        CqlType::Double => match bytes.first_chunk::<8>() {
            Some(bytes) => separated(float::number(f64::from_be_bytes(*bytes), rules.double, plain), rules),
            None => plain(),
        },
        CqlType::Decimal => separated(plain(), rules),
        CqlType::Int
        | CqlType::BigInt
        | CqlType::SmallInt
        | CqlType::TinyInt
        | CqlType::Varint
        | CqlType::Counter => match rules.thousands_separator {
            Some(_) => separated(plain(), rules),
            None => plain(),
        },
        CqlType::Timestamp => match bytes.first_chunk::<8>() {
            Some(bytes) => rules.timestamp.print(i64::from_be_bytes(*bytes)),
            None => plain(),
        },
        CqlType::Inet => address(bytes).map_or_else(plain, |address| address.to_string()),
        CqlType::Date if rules.reads_back => plain(),
        CqlType::Date => date(plain(), bytes),
        CqlType::Duration if rules.reads_back && Duration::from_bytes(bytes) == Some(Duration::default()) => {
            "0s".to_owned()
        }
        CqlType::Duration => Duration::from_bytes(bytes).map_or_else(plain, duration),
        _ => plain(),
    }
}

/// An address of four or sixteen bytes. IPv6 is shortened (RFC 5952), as in the Python driver but not in Java.
pub(super) fn address(bytes: &[u8]) -> Option<IpAddr> {
    match <[u8; 4]>::try_from(bytes) {
        Ok(short) => Some(short.into()),
        Err(_) => <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from),
    }
}

/// A number with the user's separators.
fn separated(number: String, rules: &ValueRules) -> String {
    if rules.decimal_separator.is_none() && rules.thousands_separator.is_none() || number.contains(['N', 'I'])
    {
        return number;
    }
    let (whole, fraction) = number.split_once('.').map_or((number.as_str(), None), |(a, b)| (a, Some(b)));
    let mut out = String::new();
    match rules.thousands_separator {
        Some(separator) if whole.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-') => {
            let digits = whole.trim_start_matches('-');
            out.push_str(whole.get(..whole.len() - digits.len()).unwrap_or_default());
            for (at, digit) in digits.chars().enumerate() {
                if at > 0 && (digits.len() - at).is_multiple_of(3) {
                    out.push(separator);
                }
                out.push(digit);
            }
        }
        _ => out.push_str(whole),
    }
    if let Some(fraction) = fraction {
        out.push(rules.decimal_separator.unwrap_or('.'));
        out.push_str(fraction);
    }
    out
}

/// A date of the years 1 to 9999. Other dates are printed as days since 1970, as by the Python driver.
fn date(text: String, bytes: &[u8]) -> String {
    let plain = text.len() == 10 && !text.starts_with(['-', '+']) && !text.starts_with("0000");
    match bytes.first_chunk::<4>() {
        Some(days) if !plain => (i64::from(u32::from_be_bytes(*days)) - (1 << 31)).to_string(),
        _ => text,
    }
}

/// All units that are not zero, with `us` for microseconds; an empty text for a duration of zero.
fn duration(value: Duration) -> String {
    let mut out = String::new();
    if value.months < 0 || value.days < 0 || value.nanoseconds < 0 {
        out.push('-');
    }
    let mut put = |rest: u64, units: &[(u64, &str)]| {
        let mut rest = rest;
        for (size, unit) in units {
            if rest >= *size {
                _ = write!(out, "{}{unit}", rest / size);
                rest %= size;
            }
        }
    };
    put(u64::from(value.months.unsigned_abs()), &[(12, "y"), (1, "mo")]);
    put(u64::from(value.days.unsigned_abs()), &[(1, "d")]);
    put(
        value.nanoseconds.unsigned_abs(),
        &[
            (3_600_000_000_000, "h"),
            (60_000_000_000, "m"),
            (1_000_000_000, "s"),
            (1_000_000, "ms"),
            (1_000, "us"),
            (1, "ns"),
        ],
    );
    out
}

/// The colour of brackets and separators of collections.
pub(super) const BRACKETS: &str = BLUE;

#[cfg(test)]
mod tests;
