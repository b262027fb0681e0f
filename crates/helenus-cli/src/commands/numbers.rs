//! Numbers formatted for people, and quantiles.

use std::time::Duration;

/// A whole number with commas between the thousands.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// How often something happened: once, 2 times.
pub fn times(number: u64) -> String {
    if number == 1 { "once".to_owned() } else { format!("{} times", grouped(number)) }
}

/// A number with about three digits: 8.13, 65.4, 1,234.
pub fn figure(number: f64) -> String {
    match number.abs() {
        n if n >= 999.5 => grouped(number.round().max(0.0) as u64),
        n if n >= 99.95 => format!("{number:.0}"),
        n if n >= 9.995 => format!("{number:.1}"),
        _ => format!("{number:.2}"),
    }
}

/// A mean of counts: without decimals if it is whole, otherwise with one.
pub fn mean(number: f64) -> String {
    if number >= 999.5 || (number - number.round()).abs() < 0.005 {
        grouped(number.round().max(0.0) as u64)
    } else {
        format!("{number:.1}")
    }
}

/// A duration in a fitting unit.
pub fn seconds(span: Duration) -> String {
    match span.as_secs_f64() {
        s if s >= 3_600.0 => format!("{:.1} h", s / 3_600.0),
        s if s >= 100.0 => format!("{s:.0} s"),
        s if s >= 1.0 => format!("{s:.1} s"),
        s if s >= 1e-3 => format!("{:.1} ms", s * 1e3),
        s => format!("{:.0} us", s * 1e6),
    }
}

/// A point in time as date and minute. Source of the arithmetic: the proleptic Gregorian calendar in eras of 400 years,
/// which have 146,097 days, counted from 1 March so that the leap day is the last day of its year.
pub fn utc(epoch_s: u64) -> String {
    let (days, minute) = (epoch_s / 86_400 + 719_468, epoch_s % 86_400 / 60);
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let months = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * months + 2) / 5 + 1;
    let month = if months < 10 { months + 3 } else { months - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year}-{month:02}-{day:02} {:02}:{:02} UTC", minute / 60, minute % 60)
}

/// A quantile of sorted values, interpolated linearly between its two neighbours.
pub fn quantile(sorted: &[f64], quantile: f64) -> f64 {
    let place = sorted.len().saturating_sub(1) as f64 * quantile;
    let (below, above) = (place.floor() as usize, place.ceil() as usize);
    let at = |index: usize| sorted.get(index).copied().unwrap_or_default();
    at(below) + (at(above) - at(below)) * (place - place.floor())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_keep_about_three_digits() {
        assert_eq!([0.0, 8.127, 65.44, 999.0, 1_234.4].map(figure), ["0.00", "8.13", "65.4", "999", "1,234"]);
        assert_eq!([0.0, 1.0, 12.34, 4_096.5].map(mean), ["0", "1", "12.3", "4,097"]);
        assert_eq!(grouped(10_000_000), "10,000,000");
    }

    #[test]
    fn moments_are_dates() {
        assert_eq!(utc(0), "1970-01-01 00:00 UTC");
        assert_eq!(utc(1_709_251_140), "2024-02-29 23:59 UTC");
        assert_eq!(utc(1_709_251_200), "2024-03-01 00:00 UTC");
        assert_eq!(utc(4_102_444_799), "2099-12-31 23:59 UTC");
    }

    #[test]
    fn quantiles_lie_between_their_neighbours() {
        let ten: Vec<f64> = (1..=10).map(f64::from).collect();
        assert!((quantile(&ten, 0.8) - 8.2).abs() < 1e-9);
        assert_eq!([0.0, 0.5, 1.0].map(|q| quantile(&ten, q)), [1.0, 5.5, 10.0]);
        assert_eq!(quantile(&[3.0], 0.95), 3.0);
        assert_eq!(quantile(&[], 0.95), 0.0);
    }
}
