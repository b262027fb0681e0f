//! `duration`: months, days and nanoseconds as three zigzag vints of one sign; ordered by bytes, never a key.
//!
//! The units are kept apart because months and days differ in length. Limits and messages are those of Cassandra's
//! `Duration` and its builder.

use std::fmt::Write as _;

use super::TypeError;
use crate::vint;

/// A decoded duration. All parts have the same sign or are zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Duration {
    /// Months; a year is twelve.
    pub months: i32,
    /// Days; a week is seven.
    pub days: i32,
    /// Nanoseconds.
    pub nanoseconds: i64,
}

/// Why a text is not a duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DurationTextError {
    /// It matches none of the forms. The text is without its minus sign.
    #[error("Unable to convert '{0}' to a duration")]
    Unreadable(String),
    /// A unit that occurs twice.
    #[error("Invalid duration. The {0} are specified multiple times")]
    Repeated(&'static str),
    /// A unit after a smaller one.
    #[error("Invalid duration. The {smaller} should be after {larger}")]
    Order {
        /// The unit that came first.
        smaller: &'static str,
        /// The unit that came after it.
        larger: &'static str,
    },
    /// A part that is too large. Cassandra prints the 32-bit limit even for nanoseconds.
    #[error("Invalid duration. The total number of {0} must be less or equal to 2147483647")]
    TooLarge(&'static str),
}

const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// The units, in the order in which they must occur: name, the part that they count towards, and their size in it.
const UNITS: [(&str, Part, i64); 10] = [
    ("years", Part::Months, 12),
    ("months", Part::Months, 1),
    ("weeks", Part::Days, 7),
    ("days", Part::Days, 1),
    ("hours", Part::Nanos, 3_600 * NANOS_PER_SECOND),
    ("minutes", Part::Nanos, 60 * NANOS_PER_SECOND),
    ("seconds", Part::Nanos, NANOS_PER_SECOND),
    ("milliseconds", Part::Nanos, 1_000_000),
    ("microseconds", Part::Nanos, 1_000),
    ("nanoseconds", Part::Nanos, 1),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Months,
    Days,
    Nanos,
}

impl Duration {
    /// Decodes a serialised value; `None` if it is invalid ([`CqlType::validate`](super::CqlType::validate) tells why).
    pub fn from_bytes(bytes: &[u8]) -> Option<Duration> {
        let (months, days, nanoseconds) = read(bytes)?;
        Some(Duration { months: months.try_into().ok()?, days: days.try_into().ok()?, nanoseconds })
    }

    /// The serialised value.
    pub fn to_bytes(self) -> Vec<u8> {
        let mut out = Vec::with_capacity(3 * vint::VINT_LENGTH_MAX);
        vint::write_signed(self.months.into(), &mut out);
        vint::write_signed(self.days.into(), &mut out);
        vint::write_signed(self.nanoseconds, &mut out);
        out
    }

    /// Parses any of the four forms `1y2mo3d`, `P1Y2M3DT4H`, `P4W`, `P0001-02-03T04:05:06`, each optionally after a
    /// minus.
    pub fn parse(text: &str) -> Result<Duration, DurationTextError> {
        let (negative, source) = match text.strip_prefix('-') {
            Some(source) => (true, source),
            None => (false, text),
        };
        let unreadable = || DurationTextError::Unreadable(source.to_owned());
        let mut builder = Builder::default();
        match source.strip_prefix('P') {
            None => parse_standard(source, &mut builder)?,
            Some(rest) => {
                let fields = match rest.strip_suffix('W') {
                    Some(weeks) => vec![(2, number(weeks).ok_or_else(unreadable)?)],
                    None if rest.contains('-') => iso_alternative(rest).ok_or_else(unreadable)?,
                    None => iso_units(rest).ok_or_else(unreadable)?,
                };
                for (unit, count) in fields {
                    builder.add(unit, count)?;
                }
            }
        }
        Ok(builder.build(negative))
    }
}

/// Reads three vints from the front of `bytes`; the bytes after them are ignored, as in Cassandra.
fn read(bytes: &[u8]) -> Option<(i64, i64, i64)> {
    let (months, first) = vint::read_signed(bytes)?;
    let rest = bytes.get(first..)?;
    let (days, second) = vint::read_signed(rest)?;
    let (nanoseconds, _) = vint::read_signed(rest.get(second..)?)?;
    Some((months, days, nanoseconds))
}

pub(super) fn validate(bytes: &[u8]) -> Result<(), TypeError> {
    let too_short =
        TypeError::Length { expected: "Expected at least 3 bytes for a duration", length_bytes: bytes.len() };
    if bytes.len() < 3 {
        return Err(too_short);
    }
    let (months, days, nanoseconds) = read(bytes).ok_or(too_short)?;
    let as_i32 = |part, value: i64| i32::try_from(value).map_err(|_| TypeError::DurationPart { part, value });
    let (months, days) = (as_i32("months", months)?, as_i32("days", days)?);
    let same_sign =
        (months >= 0 && days >= 0 && nanoseconds >= 0) || (months <= 0 && days <= 0 && nanoseconds <= 0);
    if same_sign { Ok(()) } else { Err(TypeError::DurationSigns { months, days, nanoseconds }) }
}

/// Prints the parts with their units; for zero nothing, as Cassandra.
pub(super) fn write(duration: Duration, out: &mut String) {
    if duration.months < 0 || duration.days < 0 || duration.nanoseconds < 0 {
        out.push('-');
    }
    let mut part = |mut rest: u64, units: &[(u64, &str)]| {
        for (size, symbol) in units {
            if rest >= *size {
                _ = write!(out, "{}{symbol}", rest / size);
                rest %= size;
            }
        }
    };
    part(duration.months.unsigned_abs().into(), &[(12, "y"), (1, "mo")]);
    part(duration.days.unsigned_abs().into(), &[(1, "d")]);
    part(
        duration.nanoseconds.unsigned_abs(),
        &[
            (3_600_000_000_000, "h"),
            (60_000_000_000, "m"),
            (1_000_000_000, "s"),
            (1_000_000, "ms"),
            (1_000, "us"),
            (1, "ns"),
        ],
    );
}

pub(super) fn parse(text: &str) -> Result<Vec<u8>, TypeError> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    Ok(Duration::parse(text)?.to_bytes())
}

/// The sums so far, which are not negative, and the last unit's index plus one.
#[derive(Default)]
struct Builder {
    months: i64,
    days: i64,
    nanoseconds: i64,
    next_unit: usize,
}

impl Builder {
    fn add(&mut self, unit: usize, count: i64) -> Result<(), DurationTextError> {
        let (name, part, size) = UNITS[unit];
        if unit + 1 == self.next_unit {
            return Err(DurationTextError::Repeated(name));
        }
        if unit < self.next_unit {
            return Err(DurationTextError::Order { smaller: UNITS[self.next_unit - 1].0, larger: name });
        }
        self.next_unit = unit + 1;
        let (sum, limit, what) = match part {
            Part::Months => (&mut self.months, i64::from(i32::MAX), "months"),
            Part::Days => (&mut self.days, i64::from(i32::MAX), "days"),
            Part::Nanos => (&mut self.nanoseconds, i64::MAX, "nanoseconds"),
        };
        if count > (limit - *sum) / size {
            return Err(DurationTextError::TooLarge(what));
        }
        *sum += count * size;
        Ok(())
    }

    /// The sums are within their types: `add` checks this.
    fn build(self, negative: bool) -> Duration {
        let sign = if negative { -1 } else { 1 };
        Duration {
            months: (self.months * sign) as i32,
            days: (self.days * sign) as i32,
            nanoseconds: self.nanoseconds * sign,
        }
    }
}

fn number(digits: &str) -> Option<i64> {
    let valid = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if valid { digits.parse().ok() } else { None }
}

/// Parses numbers, each followed by a unit in upper or lower case.
fn parse_standard(source: &str, builder: &mut Builder) -> Result<(), DurationTextError> {
    let unreadable = || DurationTextError::Unreadable(source.to_owned());
    let mut rest = source;
    loop {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (count, after) = rest.split_at_checked(digits).ok_or_else(unreadable)?;
        let symbol_end = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let (symbol, after) = after.split_at_checked(symbol_end).ok_or_else(unreadable)?;
        let unit = match symbol.to_ascii_lowercase().as_str() {
            "y" => 0,
            "mo" => 1,
            "w" => 2,
            "d" => 3,
            "h" => 4,
            "m" => 5,
            "s" => 6,
            "ms" => 7,
            "us" | "µs" => 8,
            "ns" => 9,
            _ => return Err(unreadable()),
        };
        builder.add(unit, number(count).ok_or_else(unreadable)?)?;
        if after.is_empty() {
            return Ok(());
        }
        rest = after;
    }
}

/// Parses `nYnMnDTnHnMnS` after the `P`, each part optional, in this order.
fn iso_units(text: &str) -> Option<Vec<(usize, i64)>> {
    let (date, time) = match text.split_once('T') {
        Some((date, time)) => (date, time),
        None => (text, ""),
    };
    let mut fields = Vec::new();
    for (mut rest, symbols) in
        [(date, [('Y', 0), ('M', 1), ('D', 3)]), (time, [('H', 4), ('M', 5), ('S', 6)])]
    {
        for (symbol, unit) in symbols {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let (count, after) = rest.split_at_checked(digits)?;
            if let Some(after) = after.strip_prefix(symbol) {
                fields.push((unit, number(count)?));
                rest = after;
            }
        }
        if !rest.is_empty() {
            return None;
        }
    }
    Some(fields)
}

/// Parses `yyyy-MM-ddTHH:mm:ss` after the `P`, with exactly these numbers of digits.
fn iso_alternative(text: &str) -> Option<Vec<(usize, i64)>> {
    let mut rest = text;
    let mut fields = Vec::with_capacity(6);
    for (unit, digits, separator) in
        [(0, 4, "-"), (1, 2, "-"), (3, 2, "T"), (4, 2, ":"), (5, 2, ":"), (6, 2, "")]
    {
        let (count, after) = rest.split_at_checked(digits)?;
        fields.push((unit, number(count)?));
        rest = after.strip_prefix(separator)?;
    }
    rest.is_empty().then_some(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(text: &str) -> Result<String, String> {
        let duration = Duration::parse(text).map_err(|error| error.to_string())?;
        assert_eq!(Duration::from_bytes(&duration.to_bytes()), Some(duration));
        assert_eq!(validate(&duration.to_bytes()), Ok(()));
        let mut out = String::new();
        write(duration, &mut out);
        Ok(out)
    }

    #[test]
    fn all_four_forms_read() {
        for (text, expected) in [
            ("1y2mo3w4d5h6m7s8ms9us10ns", "1y2mo25d5h6m7s8ms9us10ns"),
            ("-14MO", "-1y2mo"),
            ("5µs", "5us"),
            ("P1Y2M10DT2H30M", "1y2mo10d2h30m"),
            ("PT30M", "30m"),
            ("P2W", "14d"),
            ("-P0001-02-03T04:05:06", "-1y2mo3d4h5m6s"),
            ("0s", ""),
            ("P", ""),
        ] {
            assert_eq!(printed(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn mistakes_get_cassandras_words() {
        for (text, expected) in [
            ("1x", "Unable to convert '1x' to a duration"),
            ("-P1H", "Unable to convert 'P1H' to a duration"),
            ("1d1d", "Invalid duration. The days are specified multiple times"),
            ("1d1y", "Invalid duration. The days should be after years"),
            (
                "178956971y",
                "Invalid duration. The total number of months must be less or equal to 2147483647",
            ),
        ] {
            assert_eq!(printed(text).unwrap_err(), expected);
        }
        assert_eq!(
            validate(&[0, 0]).unwrap_err().to_string(),
            "Expected at least 3 bytes for a duration (2)"
        );
        assert_eq!(
            validate(&[2, 1, 0]).unwrap_err().to_string(),
            "The duration months, days and nanoseconds must be all of the same sign (1, -1, 0)"
        );
    }
}
