//! `date` (days, with 2^31 for 1970-01-01) and `time` (nanoseconds since midnight).
//!
//! Both have a fixed length, no empty value, and the order of their bytes (`SimpleDateType`, `TimeType`).

use super::TypeError;
use super::civil::CivilDate;
use super::digits::write_padded;
use super::error::quoted;

const NANOS_PER_SECOND: i64 = 1_000_000_000;
const NANOS_PER_DAY: i64 = 86_400 * NANOS_PER_SECOND;

/// Prints a date as `yyyy-MM-dd`; years after 9999 have a plus sign.
pub(super) fn write_date(bytes: [u8; 4], out: &mut String) {
    let date = CivilDate::from_epoch_day(i64::from(u32::from_be_bytes(bytes)) - (1 << 31));
    write_iso_year(date.year, out);
    date.write_month_and_day(out);
}

/// Prints at least four digits; with a sign before year 0 and from year 10000 on.
fn write_iso_year(year: i64, out: &mut String) {
    let sign = match year {
        ..0 => "-",
        0..=9999 => "",
        _ => "+",
    };
    out.push_str(sign);
    write_padded(year.unsigned_abs(), 4, out);
}

/// Parses a plain unsigned number of days, or `yyyy-MM-dd`.
pub(super) fn parse_date(text: &str) -> Result<Vec<u8>, TypeError> {
    if is_number(text) {
        return text
            .parse::<u32>()
            .map(|days| days.to_be_bytes().to_vec())
            .map_err(|_| TypeError::text("Unable to make unsigned int (for date) from:", text));
    }
    let unreadable = || TypeError::Text {
        before: "Unable to coerce",
        text: quoted(text),
        after: " to a formatted date (long)",
    };
    let (date, rest) = read_iso_date(text).ok_or_else(unreadable)?;
    if !rest.is_empty() || date.day > date.month_length() {
        return Err(unreadable());
    }
    let epoch_day = date.to_epoch_day().ok_or_else(unreadable)?;
    if epoch_day.checked_mul(86_400_000).is_none() {
        return Err(unreadable()); // Java's milliseconds overflow first
    }
    let out_of_range = |direction, limit| TypeError::DateRange { text: quoted(text), direction, limit };
    if epoch_day < i64::from(i32::MIN) {
        return Err(out_of_range("less than min", "-5877641-06-23T00:00Z"));
    }
    if epoch_day > i64::from(i32::MAX) {
        return Err(out_of_range("greater than max", "+5881580-07-11T00:00Z"));
    }
    Ok(((epoch_day + (1 << 31)) as u32).to_be_bytes().to_vec())
}

/// Parses `yyyy-MM-dd` from the front: four digits of the year, more only after a sign. Month and day are in range, but
/// the day may be too large for its month. Returns the rest of the text.
pub(super) fn read_iso_date(text: &str) -> Option<(CivilDate, &str)> {
    let (sign, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let (year, year_digits, rest) = read_number(unsigned, 4, 10)?;
    let plus = sign == 1 && unsigned.len() < text.len();
    if plus == (year_digits == 4) && sign == 1 {
        return None; // a plus sign if and only if there are more than four digits
    }
    if sign < 0 && year == 0 {
        return None; // Java has no year -0
    }
    let (month, _, rest) = read_number(rest.strip_prefix('-')?, 2, 2)?;
    let (day, _, rest) = read_number(rest.strip_prefix('-')?, 2, 2)?;
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || year > 999_999_999 {
        return None;
    }
    Some((CivilDate { year: sign * year, month: month as u8, day: day as u8 }, rest))
}

/// Parses digits from the front, `least` to `most` of them. Returns the number, the number of digits, and the rest.
pub(super) fn read_number(text: &str, least: usize, most: usize) -> Option<(i64, usize, &str)> {
    let count = text.bytes().take(most).take_while(u8::is_ascii_digit).count();
    if count < least {
        return None;
    }
    let (digits, rest) = text.split_at_checked(count)?;
    Some((digits.parse().ok()?, count, rest))
}

/// Whether the text is digits, optionally after a minus sign.
pub(super) fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Prints a time of day with all nine digits of its fraction.
pub(super) fn write_time(bytes: [u8; 8], out: &mut String) {
    // No valid time of day is negative.
    let nanos = i64::from_be_bytes(bytes).unsigned_abs();
    let seconds = nanos / NANOS_PER_SECOND.unsigned_abs();
    for (part, before) in [(seconds / 3_600 % 24, ""), (seconds / 60 % 60, ":"), (seconds % 60, ":")] {
        out.push_str(before);
        write_padded(part, 2, out);
    }
    out.push('.');
    write_padded(nanos % NANOS_PER_SECOND.unsigned_abs(), 9, out);
}

/// Parses a plain number of nanoseconds, or `hh:mm:ss[.fffffffff]`.
pub(super) fn parse_time(text: &str) -> Result<Vec<u8>, TypeError> {
    let nanos = if is_number(text) {
        text.parse::<i64>()
            .ok()
            .filter(|nanos| (0..NANOS_PER_DAY).contains(nanos))
            .ok_or_else(|| TypeError::text("Unable to make long (for time) from:", text))?
    } else {
        read_time(text.trim()).ok_or_else(|| TypeError::Text {
            before: "(TimeType) Unable to coerce",
            text: quoted(text),
            after: " to a formatted time (long)",
        })?
    };
    Ok(nanos.to_be_bytes().to_vec())
}

fn read_time(text: &str) -> Option<i64> {
    let (hour, rest) = text.split_once(':')?;
    let (minute, rest) = rest.split_once(':')?;
    let (second, fraction) = match rest.split_once('.') {
        Some((second, fraction)) => (second, Some(fraction)),
        None => (rest, None),
    };
    let part = |text: &str, limit: i64| text.parse::<i64>().ok().filter(|value| (0..limit).contains(value));
    let seconds = part(hour, 24)? * 3_600 + part(minute, 60)? * 60 + part(second, 60)?;
    let nanos = match fraction {
        None => 0,
        Some(digits)
            if (1..=9).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            digits.parse::<i64>().ok()? * 10_i64.pow(9 - digits.len() as u32)
        }
        Some(_) => return None,
    };
    Some(seconds * NANOS_PER_SECOND + nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn date(text: &str) -> Result<String, String> {
        let bytes = parse_date(text).map_err(|error| error.to_string())?;
        let mut out = String::new();
        write_date(bytes.try_into().unwrap(), &mut out);
        Ok(out)
    }

    #[test]
    fn dates_read_and_print() {
        for text in [
            "1970-01-01",
            "2024-02-29",
            "-0001-12-31",
            "0000-01-01",
            "+12345-06-07",
            "-5877641-06-23",
            "+5881580-07-11",
        ] {
            assert_eq!(date(text).unwrap(), text);
        }
        assert_eq!(date("2147483648").unwrap(), "1970-01-01");
        assert_eq!(
            date("2023-02-29").unwrap_err(),
            "Unable to coerce '2023-02-29' to a formatted date (long)"
        );
        assert_eq!(
            date("12345-01-01").unwrap_err(),
            "Unable to coerce '12345-01-01' to a formatted date (long)"
        );
        assert!(date("-0000-01-01").is_err());
        assert_eq!(date("-1").unwrap_err(), "Unable to make unsigned int (for date) from: '-1'");
        assert_eq!(
            date("+5881580-07-12").unwrap_err(),
            "Input date +5881580-07-12 is greater than max supported date +5881580-07-11T00:00Z"
        );
    }

    #[test]
    fn times_read_and_print() {
        let time = |text: &str| {
            let mut out = String::new();
            parse_time(text).map(|bytes| write_time(bytes.try_into().unwrap(), &mut out)).map(|()| out)
        };
        assert_eq!(time("23:59:59.999999999").unwrap(), "23:59:59.999999999");
        assert_eq!(time(" 1:2:3.5 ").unwrap(), "01:02:03.500000000");
        assert_eq!(time("0").unwrap(), "00:00:00.000000000");
        assert_eq!(
            time("24:00:00").unwrap_err().to_string(),
            "(TimeType) Unable to coerce '24:00:00' to a formatted time (long)"
        );
        for text in ["1:2", "1:2:3.", "1:2:3.1234567890", "1:2:3.+1", "86400000000000", "-1"] {
            assert!(time(text).is_err(), "{text}");
        }
    }
}
