//! Sizes and durations as a person writes them: `512M`, `1g`, `64KiB`, `1.5GB`, `90s`, `2m`.
//!
//! Every flag that takes a size or a duration is parsed here, and the keys of the configuration that are Helenus's own.
//! Cassandra's keys keep Cassandra's units (`config::value`). Units are those of GNU's tools: `K` and `KiB` are 1024 bytes,
//! `KB` is 1000.

use std::time::Duration;

/// What a size may look like, for help and errors.
pub const SIZE_FORMS: &str = "a size such as 512M, 1g or 64KiB";
/// What a duration may look like.
pub const DURATION_FORMS: &str = "a duration such as 90s, 500ms or 2m";

const SIZES: [(&str, u64); 15] = [
    ("", 1),
    ("b", 1),
    ("k", 1 << 10),
    ("kib", 1 << 10),
    ("kb", 1_000),
    ("m", 1 << 20),
    ("mib", 1 << 20),
    ("mb", 1_000_000),
    ("g", 1 << 30),
    ("gib", 1 << 30),
    ("gb", 1_000_000_000),
    ("t", 1 << 40),
    ("tib", 1 << 40),
    ("tb", 1_000_000_000_000),
    ("bytes", 1),
];

/// Units of durations in nanoseconds.
const DURATIONS: [(&str, u64); 11] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("sec", 1_000_000_000),
    ("m", 60_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
    ("w", 604_800_000_000_000),
];

/// Parses a size; the result is in bytes. A number without a unit is bytes.
///
/// # Errors
/// What is wrong with the text, and what is allowed.
pub fn parse_size(text: &str) -> Result<u64, String> {
    quantity(text, &SIZES).map_err(|problem| format!("{problem}; give {SIZE_FORMS}"))
}

/// Parses a duration. A number needs a unit, but for 0.
///
/// # Errors
/// What is wrong with the text, and what is allowed.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    if text.trim() == "0" {
        return Ok(Duration::ZERO);
    }
    let ns = quantity(text, &DURATIONS).map_err(|problem| format!("{problem}; give {DURATION_FORMS}"))?;
    Ok(Duration::from_nanos(ns))
}

/// Parses a duration, or a number of seconds.
///
/// # Errors
/// What is wrong with the text, and what is allowed.
pub fn parse_seconds(text: &str) -> Result<Duration, String> {
    let is_number = text.trim().ends_with(|last: char| last.is_ascii_digit());
    parse_duration(&if is_number { format!("{}s", text.trim()) } else { text.to_owned() })
}

/// Parses a size, or a number of MiB.
///
/// # Errors
/// What is wrong with the text, and what is allowed.
pub fn parse_mebibytes(text: &str) -> Result<u64, String> {
    let is_number = text.trim().ends_with(|last: char| last.is_ascii_digit());
    parse_size(&if is_number { format!("{}MiB", text.trim()) } else { text.to_owned() })
}

/// A decimal number and a unit, whose case does not matter.
fn quantity(text: &str, units: &[(&str, u64)]) -> Result<u64, String> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit = unit.trim_start().to_lowercase();
    let Some((_, factor)) = units.iter().find(|(known, _)| *known == unit) else {
        return Err(match unit.as_str() {
            "" => format!("{text:?} has no unit"),
            _ if number.is_empty() => format!("{text:?} begins with no number"),
            _ => format!("{text:?}: {unit} is no unit"),
        });
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let are_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || number.ends_with('.') || !are_digits(fraction) {
        return Err(format!("{text:?} begins with no number"));
    }
    let too_large = || format!("{text:?} is too large");
    let whole: u64 = whole.parse().map_err(|_| too_large())?;
    let whole = whole.checked_mul(*factor).ok_or_else(too_large)?;
    let share: f64 = format!("0.{fraction}0").parse().unwrap_or_default();
    // Below the factor, and so below 2^50: exact enough, and no overflow.
    whole.checked_add((share * *factor as f64).round() as u64).ok_or_else(too_large)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_size_is_its_number_times_its_unit(number in 0u64..1 << 20, unit in 0usize..SIZES.len(), upper: bool, space: bool) {
            let (unit, factor) = SIZES[unit];
            let unit = if upper { unit.to_uppercase() } else { unit.to_owned() };
            let text = format!("{number}{}{unit}", if space { " " } else { "" });
            prop_assert_eq!(parse_size(&text), Ok(number * factor));
        }

        #[test]
        fn a_duration_is_its_number_times_its_unit(number in 0u64..1 << 10, unit in 0usize..DURATIONS.len()) {
            let (unit, factor) = DURATIONS[unit];
            prop_assert_eq!(parse_duration(&format!("{number}{unit}")), Ok(Duration::from_nanos(number * factor)));
        }

        #[test]
        fn any_text_is_a_quantity_or_an_error_that_says_what_is(text in "\\PC{0,12}") {
            if let Err(error) = parse_size(&text) {
                prop_assert!(error.ends_with(SIZE_FORMS));
            }
            if let Err(error) = parse_seconds(&text) {
                prop_assert!(error.ends_with(DURATION_FORMS));
            }
        }
    }

    #[test]
    fn fractions_and_the_units_of_people_are_read() {
        assert_eq!(parse_size("512M"), Ok(512 << 20));
        assert_eq!(parse_size("1g"), Ok(1 << 30));
        assert_eq!(parse_size("0.1GB"), Ok(100_000_000));
        assert_eq!(parse_size("1.5GiB"), Ok(3 << 29));
        assert_eq!(parse_duration("0.5s"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_duration("0"), Ok(Duration::ZERO));
        assert_eq!(parse_seconds("30"), Ok(Duration::from_secs(30)));
        assert_eq!(parse_seconds("2m"), Ok(Duration::from_secs(120)));
        assert_eq!((parse_mebibytes("5"), parse_mebibytes("1g")), (Ok(5 << 20), Ok(1 << 30)));
    }

    #[test]
    fn what_is_no_quantity_is_told_why() {
        for text in ["", "M", "-1M", "1.M", ".5M", "1..2M", "1e9", "1XB", "99999999999999T", "1_000"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
        assert_eq!(parse_duration("10").unwrap_err(), format!("\"10\" has no unit; give {DURATION_FORMS}"));
        assert_eq!(parse_size("1XB").unwrap_err(), format!("\"1XB\": xb is no unit; give {SIZE_FORMS}"));
    }
}
