//! Moments as ISO 8601 text, as Java's `Instant.toString` prints them: as many digits of the second's fraction as there
//! are, in threes.

use super::civil::CivilDate;

const SECONDS_A_DAY: i64 = 86_400;

/// Appends the moment so many seconds, and nanoseconds after them, after 1970-01-01T00:00Z.
pub fn write_instant(seconds: i64, nanoseconds: u32, out: &mut String) {
    let date = CivilDate::from_epoch_day(seconds.div_euclid(SECONDS_A_DAY));
    let of_day = seconds.rem_euclid(SECONDS_A_DAY) as u32;
    match date.year {
        0..=9999 => {}
        10_000.. => out.push('+'),
        _ => out.push('-'),
    }
    let year = date.year.unsigned_abs();
    if year > 9999 {
        out.push_str(&year.to_string());
    } else {
        pair((year / 100) as u32, out);
        pair((year % 100) as u32, out);
    }
    out.push('-');
    pair(u32::from(date.month), out);
    out.push('-');
    pair(u32::from(date.day), out);
    out.push('T');
    pair(of_day / 3600, out);
    out.push(':');
    pair(of_day / 60 % 60, out);
    out.push(':');
    pair(of_day % 60, out);
    fraction(nanoseconds, out);
    out.push('Z');
}

fn fraction(nanoseconds: u32, out: &mut String) {
    if nanoseconds == 0 {
        return;
    }
    out.push('.');
    let thousands = [nanoseconds / 1_000_000, nanoseconds / 1_000 % 1_000, nanoseconds % 1_000];
    let used = match thousands {
        [_, 0, 0] => 1,
        [_, _, 0] => 2,
        _ => 3,
    };
    for part in thousands.iter().take(used) {
        out.push(digit(part / 100));
        pair(part % 100, out);
    }
}

fn pair(number: u32, out: &mut String) {
    out.push(digit(number / 10));
    out.push(digit(number % 10));
}

fn digit(number: u32) -> char {
    char::from(b'0' + (number % 10) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_print_as_java_prints_them() {
        // Java 17: Instant.ofEpochSecond(s, n).toString()
        for (seconds, nanoseconds, text) in [
            (0, 0, "1970-01-01T00:00:00Z"),
            (1_700_000_000, 123_000_000, "2023-11-14T22:13:20.123Z"),
            (1_700_000_000, 123_456_000, "2023-11-14T22:13:20.123456Z"),
            (1_700_000_000, 1, "2023-11-14T22:13:20.000000001Z"),
            (-1, 999_999_000, "1969-12-31T23:59:59.999999Z"),
            (253_402_300_800, 0, "+10000-01-01T00:00:00Z"),
            (-62_198_755_200, 0, "-0001-01-01T00:00:00Z"),
        ] {
            let mut out = String::new();
            write_instant(seconds, nanoseconds, &mut out);
            assert_eq!(out, text);
        }
    }
}
