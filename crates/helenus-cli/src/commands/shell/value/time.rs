//! Formats and parses timestamps by a `strftime` format, as cqlsh and COPY do, in UTC or at a fixed offset from it.
//!
//! `helenus_model` formats and parses the date as a whole; this file handles its parts.

use helenus_model::types::{CqlType, parse_text, write_text};

/// cqlsh's `%Y-%m-%d %H:%M:%S.%f%z`.
pub const DEFAULT_TIMESTAMP: &str = "%Y-%m-%d %H:%M:%S.%f%z";

/// The years 1 to 9999, the range of Python's datetime. Other timestamps print as milliseconds, as in cqlsh.
const HELD_MS: std::ops::RangeInclusive<i64> = -62_135_596_800_000..=253_402_300_799_999;

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
/// 1970-01-01 was a Thursday.
const DAYS: [&str; 7] = ["Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday"];

/// A format of timestamps.
#[derive(Clone, Debug)]
pub struct TimeFormat {
    pattern: String,
    /// Whether fractions have three digits instead of six, as COPY TO writes them.
    pub milliseconds: bool,
    /// The time zone for printing, and for texts without a zone: minutes east of UTC.
    pub offset_minutes: i32,
}

impl TimeFormat {
    /// A format; unknown letters are printed as they are.
    pub fn new(pattern: &str) -> TimeFormat {
        TimeFormat { pattern: pattern.to_owned(), milliseconds: false, offset_minutes: 0 }
    }

    /// Formats milliseconds since the epoch.
    pub fn print(&self, ms: i64) -> String {
        let local = ms.checked_add(i64::from(self.offset_minutes) * 60_000);
        let Some(parts) = local.and_then(Parts::of) else { return ms.to_string() };
        let mut out = String::new();
        let mut letters = self.pattern.chars();
        while let Some(next) = letters.next() {
            if next != '%' {
                out.push(next);
                continue;
            }
            match letters.next() {
                Some(letter) => self.put(letter, &parts, &mut out),
                None => out.push('%'),
            }
        }
        out
    }

    fn put(&self, letter: char, parts: &Parts, out: &mut String) {
        let month = MONTHS.get(parts.month.saturating_sub(1)).copied().unwrap_or_default();
        let weekday = DAYS.get(parts.weekday).copied().unwrap_or_default();
        let twelve = if parts.hour.is_multiple_of(12) { 12 } else { parts.hour % 12 };
        let text = match letter {
            'Y' => parts.year.to_string(),
            'y' => format!("{:02}", parts.year % 100),
            'm' => format!("{:02}", parts.month),
            'd' => format!("{:02}", parts.day),
            'e' => format!("{:2}", parts.day),
            'H' => format!("{:02}", parts.hour),
            'I' => format!("{twelve:02}"),
            'M' => format!("{:02}", parts.minute),
            'S' => format!("{:02}", parts.second),
            'f' if self.milliseconds => format!("{:03}", parts.ms),
            'f' => format!("{:03}000", parts.ms),
            'p' => if parts.hour < 12 { "AM" } else { "PM" }.to_owned(),
            'z' => self.zone(""),
            'Z' if self.offset_minutes == 0 => "UTC".to_owned(),
            'Z' => format!("UTC{}", self.zone(":")),
            'B' => month.to_owned(),
            'b' | 'h' => month.chars().take(3).collect(),
            'A' => weekday.to_owned(),
            'a' => weekday.chars().take(3).collect(),
            'F' => format!("{}-{:02}-{:02}", parts.year, parts.month, parts.day),
            'T' => format!("{:02}:{:02}:{:02}", parts.hour, parts.minute, parts.second),
            's' => (parts.seconds - i64::from(self.offset_minutes) * 60).to_string(),
            '%' => "%".to_owned(),
            other => format!("%{other}"),
        };
        out.push_str(&text);
    }

    /// The offset as hours and minutes east of UTC.
    fn zone(&self, between: &str) -> String {
        let minutes = self.offset_minutes.unsigned_abs();
        let sign = if self.offset_minutes < 0 { '-' } else { '+' };
        format!("{sign}{:02}{between}{:02}", minutes / 60, minutes % 60)
    }

    /// Parses a text in this format; `None` if it does not match.
    pub fn parse(&self, text: &str) -> Option<i64> {
        let mut read = ReadParts::default();
        let mut rest = text;
        let mut letters = self.pattern.chars();
        while let Some(next) = letters.next() {
            rest = match next {
                '%' => read.take(letters.next()?, rest)?,
                other => rest.strip_prefix(other)?,
            };
        }
        if !rest.is_empty() {
            return None;
        }
        if read.zone.is_empty() && !self.pattern.contains("%Z") {
            read.zone = self.zone(":");
        }
        read.milliseconds()
    }
}

/// The parts of a timestamp.
struct Parts {
    year: u32,
    month: usize,
    day: u32,
    weekday: usize,
    hour: u32,
    minute: u32,
    second: u32,
    ms: u32,
    seconds: i64,
}

impl Parts {
    fn of(ms: i64) -> Option<Parts> {
        if !HELD_MS.contains(&ms) {
            return None;
        }
        let mut text = String::new();
        write_text(&CqlType::Timestamp, &ms.to_be_bytes(), &mut text);
        let mut numbers = text.split(|letter: char| !letter.is_ascii_digit()).map(|part| part.parse().ok());
        let mut next = || numbers.next().flatten();
        Some(Parts {
            year: next()?,
            month: usize::try_from(next()?).ok()?,
            day: next()?,
            weekday: usize::try_from(ms.div_euclid(86_400_000).rem_euclid(7)).ok()?,
            hour: next()?,
            minute: next()?,
            second: next()?,
            ms: next()?,
            seconds: ms.div_euclid(1_000),
        })
    }
}

/// The parts of a timestamp that a text has given so far.
#[derive(Default)]
struct ReadParts {
    year: Option<u32>,
    month: u32,
    day: u32,
    hour: u32,
    minute: u32,
    second: u32,
    ms: u32,
    afternoon: Option<bool>,
    zone: String,
}

impl ReadParts {
    /// Parses the part that a format letter stands for, and returns the rest of the text.
    fn take<'t>(&mut self, letter: char, text: &'t str) -> Option<&'t str> {
        let number = |most: usize| {
            let digits = text.bytes().take(most).take_while(u8::is_ascii_digit).count();
            let (digits, rest) = text.split_at_checked(digits)?;
            Some((digits.parse::<u32>().ok()?, rest))
        };
        let (field, (value, rest)) = match letter {
            'Y' => {
                let (year, rest) = number(4)?;
                self.year = Some(year);
                return Some(rest);
            }
            'm' => (&mut self.month, number(2)?),
            'd' | 'e' => (&mut self.day, number(2)?),
            'H' | 'I' => (&mut self.hour, number(2)?),
            'M' => (&mut self.minute, number(2)?),
            'S' => (&mut self.second, number(2)?),
            'f' => {
                let digits = text.bytes().take(6).take_while(u8::is_ascii_digit).count();
                let (digits, rest) =
                    text.split_at_checked(digits).filter(|(digits, _)| !digits.is_empty())?;
                self.ms = format!("{digits:0<3}").get(..3)?.parse().ok()?;
                return Some(rest);
            }
            'p' => {
                let (half, rest) = text.split_at_checked(2)?;
                self.afternoon = Some(half.eq_ignore_ascii_case("pm"));
                return Some(rest);
            }
            'b' | 'B' => {
                let found = MONTHS.iter().position(|month| {
                    text.get(..3)
                        .is_some_and(|start| month.get(..3).is_some_and(|m| m.eq_ignore_ascii_case(start)))
                })?;
                self.month = u32::try_from(found).ok()? + 1;
                let long = MONTHS.get(found).filter(|month| letter == 'B' && text.starts_with(**month));
                return text.get(long.map_or(3, |month| month.len())..);
            }
            'z' => {
                let end =
                    text.bytes().take_while(|byte| byte.is_ascii_digit() || b"+-:Z".contains(byte)).count();
                let (zone, rest) = text.split_at_checked(end)?;
                self.zone = zone.to_owned();
                return Some(rest);
            }
            'Z' => return text.strip_prefix("UTC").or_else(|| text.strip_prefix("GMT")),
            '%' => return text.strip_prefix('%'),
            _ => return None,
        };
        *field = value;
        Some(rest)
    }

    fn milliseconds(&self) -> Option<i64> {
        let hour = match self.afternoon {
            Some(afternoon) => self.hour % 12 + if afternoon { 12 } else { 0 },
            None => self.hour,
        };
        let text = format!(
            "{:04}-{:02}-{:02}T{hour:02}:{:02}:{:02}.{:03}{}",
            self.year?,
            self.month.max(1),
            self.day.max(1),
            self.minute,
            self.second,
            self.ms,
            if self.zone.is_empty() { "Z" } else { &self.zone }
        );
        let bytes = parse_text(&CqlType::Timestamp, &text).ok()?;
        Some(i64::from_be_bytes(bytes.try_into().ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_cqlshs_and_is_read_back() {
        let format = TimeFormat::new(DEFAULT_TIMESTAMP);
        assert_eq!(format.print(1_795_253_400_123), "2026-11-21 09:30:00.123000+0000");
        assert_eq!(format.parse("2026-11-21 09:30:00.123000+0000"), Some(1_795_253_400_123));
        assert_eq!(format.parse("2026-11-21 10:30:00.123+0100"), Some(1_795_253_400_123));
        assert_eq!(format.print(i64::MAX), i64::MAX.to_string());
        assert_eq!(format.print(-62_135_596_800_000), "1-01-01 00:00:00.000000+0000");
        assert_eq!(format.parse("21.11.2026"), None);
    }

    #[test]
    fn other_letters_are_known() {
        let format = TimeFormat::new("%a %d %b %Y, %I:%M %p 100%%");
        assert_eq!(format.print(1_795_253_400_123), "Sat 21 Nov 2026, 09:30 AM 100%");
        let format = TimeFormat::new("%d.%m.%Y %I:%M %p");
        assert_eq!(format.parse("21.11.2026 09:30 PM"), Some(1_795_296_600_000));
    }

    #[test]
    fn another_zone_is_shown_and_meant() {
        let mut format = TimeFormat::new(DEFAULT_TIMESTAMP);
        format.offset_minutes = -210;
        assert_eq!(format.print(1_795_253_400_123), "2026-11-21 06:00:00.123000-0330");
        assert_eq!(format.parse("2026-11-21 06:00:00.123000-0330"), Some(1_795_253_400_123));
        assert_eq!(format.parse("2026-11-21 09:30:00.123000+0000"), Some(1_795_253_400_123));
        let mut format = TimeFormat::new("%F %T %Z");
        format.offset_minutes = 60;
        assert_eq!(format.print(0), "1970-01-01 01:00:00 UTC+01:00");
        let mut format = TimeFormat::new("%d.%m.%Y %H:%M");
        format.offset_minutes = 60;
        assert_eq!(format.parse("21.11.2026 10:30"), Some(1_795_253_400_000));
    }
}
