//! Instants as ISO 8601 text, like Java's `Instant.toString`: the fraction of the second has zero, three, six or nine
//! digits.

use super::civil::CivilDate;
use super::digits::{pair, push, write_padded};

const SECONDS_A_DAY: i64 = 86_400;

/// Appends the instant `seconds` and `nanoseconds` after 1970-01-01T00:00Z.
pub fn write_instant(seconds: i64, nanoseconds: u32, out: &mut String) {
    let date = CivilDate::from_epoch_day(seconds.div_euclid(SECONDS_A_DAY));
    let of_day = seconds.rem_euclid(SECONDS_A_DAY) as u32;
    match date.year {
        0..=9999 => {}
        10_000.. => out.push('+'),
        _ => out.push('-'),
    }
    write_padded(date.year.unsigned_abs(), 4, out);
    let mut text = *b"-00-00T00:00:00";
    let parts = [date.month.into(), date.day.into(), of_day / 3600, of_day / 60 % 60, of_day % 60];
    for (part, place) in parts.into_iter().zip(text.chunks_exact_mut(3)) {
        place[1..].copy_from_slice(&pair(part));
    }
    push(&text, out);
    fraction(nanoseconds, out);
    out.push('Z');
}

fn fraction(nanoseconds: u32, out: &mut String) {
    if nanoseconds == 0 {
        return;
    }
    out.push('.');
    let (mut digits, mut width) = (nanoseconds, 9);
    while digits % 1_000 == 0 {
        digits /= 1_000;
        width -= 3;
    }
    write_padded(digits.into(), width, out);
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
