//! `timestamp`: milliseconds since 1970-01-01T00:00Z, an i64; the empty value is allowed and sorts first.
//!
//! The text formats are those of `TimestampSerializer`. Text without a zone is UTC (Cassandra uses its machine's zone).
//! Zones are offsets, `Z`, `UTC`, `GMT`, `UT`, these three with an offset, and the names of `zone.rs`.

use super::TypeError;
use super::civil::CivilDate;
use super::date::{is_number, read_iso_date, read_number};
use super::digits::{pair, push, write_padded};
use super::zone::Zone;

const MS_PER_DAY: i64 = 86_400_000;

/// Prints `yyyy-MM-dd`, `separator`, `HH:mm:ss.SSSZ`; the separator is `T` in CQL and a space in JSON. Java's pattern
/// uses years of an era, so years before 1 are printed without their sign.
pub(super) fn write(bytes: [u8; 8], separator: char, out: &mut String) {
    let (date, of_day) = parts(bytes);
    let year = if date.year > 0 { date.year } else { 1 - date.year };
    if year > 9999 {
        out.push('+');
    }
    write_padded(year.unsigned_abs(), 4, out);
    date.write_month_and_day(out);
    out.push(separator);
    let mut text = *b"00:00:00.000Z";
    for (at, part) in [(0, of_day / 3_600_000), (3, of_day / 60_000 % 60), (6, of_day / 1_000 % 60)] {
        text[at..at + 2].copy_from_slice(&pair(part));
    }
    text[9] = b'0' + (of_day / 100 % 10) as u8;
    text[10..12].copy_from_slice(&pair(of_day));
    push(&text, out);
}

/// The date, and the milliseconds since its midnight.
pub(super) fn parts(bytes: [u8; 8]) -> (CivilDate, u32) {
    let ms = i64::from_be_bytes(bytes);
    (CivilDate::from_epoch_day(ms.div_euclid(MS_PER_DAY)), ms.rem_euclid(MS_PER_DAY).unsigned_abs() as u32)
}

pub(super) fn parse(text: &str) -> Result<Vec<u8>, TypeError> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    if text.eq_ignore_ascii_case("now") {
        return Err(TypeError::Now);
    }
    let ms = if is_number(text) {
        text.parse::<i64>().map_err(|_| TypeError::text("Unable to make long (for date) from:", text))?
    } else {
        read(text).ok_or_else(|| TypeError::text("Unable to parse a date/time from", text))?
    };
    Ok(ms.to_be_bytes().to_vec())
}

fn read(text: &str) -> Option<i64> {
    if let Some((date, rest)) = read_date_of_time(text)
        && let Some(rest) = rest.strip_prefix(['T', ' '])
        && let Some((of_day, rest)) = read_time_of_day(rest)
        && let Some(place) = ZoneOrOffset::read(rest)
    {
        return at(date, of_day, place);
    }
    let (date, zone) = read_iso_date(text)?;
    // Dates before year 1 match another pattern, without zone names.
    let place = if date.year > 0 { ZoneOrOffset::read(zone) } else { None };
    at(date, 0, place.or_else(|| iso_offset(zone))?)
}

/// Milliseconds since the epoch of `date` at `of_day` milliseconds after midnight in a zone. A day after the end of its
/// month becomes the month's last day, as in Java's smart resolver.
fn at(date: CivilDate, of_day: i64, place: ZoneOrOffset) -> Option<i64> {
    let date = CivilDate { day: date.day.min(date.month_length()), ..date };
    let day = date.to_epoch_day()?;
    let offset_s = match place {
        ZoneOrOffset::Offset(seconds) => seconds,
        ZoneOrOffset::Zone(zone) => {
            zone.offset_at(day.checked_mul(MS_PER_DAY / 1_000)?.checked_add(of_day / 1_000)?)
        }
    };
    day.checked_mul(MS_PER_DAY)?.checked_add(of_day)?.checked_sub(offset_s * 1_000)
}

/// The pattern `y-M-d`: any number of digits each; the year is from 1 on.
fn read_date_of_time(text: &str) -> Option<(CivilDate, &str)> {
    let (year, _, rest) = read_number(text, 1, 18)?;
    let (month, _, rest) = read_number(rest.strip_prefix('-')?, 1, 18)?;
    let (day, _, rest) = read_number(rest.strip_prefix('-')?, 1, 18)?;
    let valid = (1..=999_999_999).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    valid.then_some((CivilDate { year, month: month as u8, day: day as u8 }, rest))
}

/// The pattern `H:m[:s][.fraction]`. The fraction requires the seconds and has up to nine digits, of which three count.
/// 24:00 is the end of the day.
fn read_time_of_day(text: &str) -> Option<(i64, &str)> {
    let (hour, _, rest) = read_number(text, 1, 18)?;
    let (minute, _, rest) = read_number(rest.strip_prefix(':')?, 1, 18)?;
    let (mut second, mut ms, mut rest) = (0, 0, rest);
    if let Some((value, _, after)) = rest.strip_prefix(':').and_then(|rest| read_number(rest, 1, 18)) {
        (second, rest) = (value, after);
        if let Some(fraction) = rest.strip_prefix('.') {
            let (value, digits, after) = read_number(fraction, 1, 9).unwrap_or((0, 1, fraction));
            ms = value * 1_000 / 10_i64.pow(digits as u32);
            rest = after;
        }
    }
    if minute > 59 || second > 59 || hour > 24 || (hour == 24 && (minute, second, ms) != (0, 0, 0)) {
        return None;
    }
    Some(((hour * 3_600 + minute * 60 + second) * 1_000 + ms, rest))
}

/// The offset or zone of a local time.
enum ZoneOrOffset {
    /// Seconds east of UTC.
    Offset(i64),
    Zone(Zone),
}

impl ZoneOrOffset {
    /// Parses nothing, `Z`, `+hh`, `+hhmm` or `+hh:mm`; after a space also a zone name, or an offset with seconds after
    /// a colon. These are the patterns `X` with one to three letters, ` X`, ` z` and ` zzzz`.
    fn read(text: &str) -> Option<ZoneOrOffset> {
        let Some(zone) = text.strip_prefix(' ') else {
            return if text.is_empty() {
                Some(ZoneOrOffset::Offset(0))
            } else {
                short_offset(text).or_else(|| long_offset(text, false))
            };
        };
        match ["UTC", "UT", "GMT"].into_iter().find_map(|name| zone.strip_prefix(name)) {
            Some("") => Some(ZoneOrOffset::Offset(0)),
            Some("0") if zone.starts_with("GMT") => Some(ZoneOrOffset::Offset(0)),
            Some(offset) => long_offset(offset, true),
            None => short_offset(zone)
                .or_else(|| long_offset(zone, true))
                .or_else(|| Zone::named(zone).map(ZoneOrOffset::Zone)),
        }
    }
}

/// Parses the offsets that are allowed after any ISO 8601 date.
fn iso_offset(text: &str) -> Option<ZoneOrOffset> {
    match text {
        "" | "Z" => Some(ZoneOrOffset::Offset(0)),
        offset => long_offset(offset, true),
    }
}

/// `Z`, `+hh` or `+hhmm`.
fn short_offset(text: &str) -> Option<ZoneOrOffset> {
    if text == "Z" {
        return Some(ZoneOrOffset::Offset(0));
    }
    let (sign, digits) = read_sign(text)?;
    let (hours, _, rest) = read_number(digits, 2, 2)?;
    let (minutes, _, rest) = if rest.is_empty() { (0, 0, rest) } else { read_number(rest, 2, 2)? };
    offset(sign, (hours, minutes, 0), rest)
}

/// `+hh:mm`, or `+hh:mm:ss`.
fn long_offset(text: &str, with_seconds: bool) -> Option<ZoneOrOffset> {
    let (sign, digits) = read_sign(text)?;
    let (hours, _, rest) = read_number(digits, 2, 2)?;
    let (minutes, _, rest) = read_number(rest.strip_prefix(':')?, 2, 2)?;
    let (seconds, _, rest) = match rest.strip_prefix(':') {
        Some(rest) if with_seconds => read_number(rest, 2, 2)?,
        _ => (0, 0, rest),
    };
    offset(sign, (hours, minutes, seconds), rest)
}

fn read_sign(text: &str) -> Option<(i64, &str)> {
    let plus = text.strip_prefix('+').map(|digits| (1, digits));
    plus.or_else(|| text.strip_prefix('-').map(|digits| (-1, digits)))
}

fn offset(sign: i64, (hours, minutes, seconds): (i64, i64, i64), rest: &str) -> Option<ZoneOrOffset> {
    // Java's ZoneOffset ends at 18 hours.
    let offset = hours * 3_600 + minutes * 60 + seconds;
    let is_valid = rest.is_empty() && minutes < 60 && seconds < 60 && offset <= 18 * 3_600;
    is_valid.then_some(ZoneOrOffset::Offset(sign * offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(text: &str) -> Result<String, String> {
        let bytes = parse(text).map_err(|error| error.to_string())?;
        let mut out = String::new();
        write(bytes.try_into().unwrap(), 'T', &mut out);
        Ok(out)
    }

    #[test]
    fn every_format_is_read() {
        for (text, expected) in [
            ("0", "1970-01-01T00:00:00.000Z"),
            ("-1", "1969-12-31T23:59:59.999Z"),
            ("2011-02-03 04:05+0000", "2011-02-03T04:05:00.000Z"),
            ("2011-02-03 04:05:00+0130", "2011-02-03T02:35:00.000Z"),
            ("2011-02-03 04:05:00.123456-08", "2011-02-03T12:05:00.123Z"),
            ("2011-2-3T4:5:6.7Z", "2011-02-03T04:05:06.700Z"),
            ("2011-02-03T04:05:00+01:00", "2011-02-03T03:05:00.000Z"),
            ("2011-02-03 04:05:00 UTC", "2011-02-03T04:05:00.000Z"),
            ("2011-02-03 04:05:00 GMT+02:00", "2011-02-03T02:05:00.000Z"),
            ("2011-02-03", "2011-02-03T00:00:00.000Z"),
            ("2011-02-03+0100", "2011-02-02T23:00:00.000Z"),
            ("2011-02-03 24:00", "2011-02-04T00:00:00.000Z"),
            ("2011-02-31 10:00", "2011-02-28T10:00:00.000Z"),
            ("10000-01-01 00:00", "+10000-01-01T00:00:00.000Z"),
            ("2011-02-03+01:30:20", "2011-02-02T22:29:40.000Z"),
            ("2011-02-03 04:05 CET", "2011-02-03T03:05:00.000Z"),
            ("2011-07-03 04:05 CET", "2011-07-03T02:05:00.000Z"),
            // A summer-time name does not force summer time.
            ("2011-02-03 04:05 CEST", "2011-02-03T03:05:00.000Z"),
            ("2011-02-03 04:05 America/New_York", "2011-02-03T09:05:00.000Z"),
            ("2011-02-03 04:05:00.5 Pacific Standard Time", "2011-02-03T12:05:00.500Z"),
            ("2011-02-03 Asia/Kolkata", "2011-02-02T18:30:00.000Z"),
            // Times that the clocks skip and show twice.
            ("2011-03-27 02:30 CET", "2011-03-27T01:30:00.000Z"),
            ("2011-10-30 02:30 CET", "2011-10-30T00:30:00.000Z"),
            ("2500-07-01 00:00 CET", "2500-06-30T22:00:00.000Z"),
            ("2011-02-03 04:05 GMT0", "2011-02-03T04:05:00.000Z"),
        ] {
            assert_eq!(printed(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn other_text_is_refused() {
        for text in [
            "2011",
            "x",
            "2011-02-03 04",
            "2011-02-03 04:05 UTC+01",
            "2011-02-03 04:05CET",
            "2011-02-03 04:05 cet",
            "0000-01-01 UTC",
            "-0001-01-01 +0100",
            "-0000-01-01",
            "2011-02-03 04:05 +0130:20",
            "2011-02-03 04:05 Etc/GMT+5",
            "2011-13-01",
            "2011-02-03 04:05.5",
            "2011-02-03 25:00",
            "2011-2-3",
        ] {
            if !is_number(text) {
                assert_eq!(printed(text).unwrap_err(), format!("Unable to parse a date/time from '{text}'"));
            }
        }
        assert_eq!(
            printed("99999999999999999999").unwrap_err(),
            "Unable to make long (for date) from: '99999999999999999999'"
        );
        assert_eq!(parse("NOW"), Err(TypeError::Now));
    }

    #[test]
    fn the_far_ends_print() {
        let mut out = String::new();
        write(i64::MIN.to_be_bytes(), ' ', &mut out);
        out.push('|');
        write(i64::MAX.to_be_bytes(), ' ', &mut out);
        assert_eq!(out, "+292275056-05-16 16:47:04.192Z|+292278994-08-17 07:12:55.807Z");
    }
}
