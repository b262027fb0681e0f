//! Reads what errors and checks need of a certificate: when it is valid, and for whom.

use std::net::IpAddr;

use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::ParsedCertificate;

use crate::der::{Elements, tag};

/// From when and until when a certificate is valid, in seconds since 1970; `None` if it is damaged.
pub fn validity(certificate: &[u8]) -> Option<(i64, i64)> {
    let mut fields = Elements::of(certificate).within(tag::SEQUENCE)?.within(tag::SEQUENCE)?;
    if fields.peek()? == tag::CONTEXT_0 {
        fields.any()?;
    }
    fields.one(tag::INTEGER)?;
    fields.one(tag::SEQUENCE)?;
    fields.one(tag::SEQUENCE)?;
    let mut times = fields.within(tag::SEQUENCE)?;
    Some((time(times.any()?)?, time(times.any()?)?))
}

/// Whether a certificate names the address, as Java's endpoint identification asks.
pub fn is_for_address(certificate: &CertificateDer<'_>, address: IpAddr) -> bool {
    let name = ServerName::IpAddress(address.into());
    ParsedCertificate::try_from(certificate)
        .is_ok_and(|parsed| rustls::client::verify_server_name(&parsed, &name).is_ok())
}

/// Reads `YYMMDDHHMMSSZ` or `YYYYMMDDHHMMSSZ`.
fn time((kind, text): (u8, &[u8])) -> Option<i64> {
    let digits = text.strip_suffix(b"Z")?;
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = |digits: &[u8]| digits.iter().fold(0_i64, |sum, digit| sum * 10 + i64::from(digit - b'0'));
    let (year, rest) = match kind {
        tag::UTC_TIME => {
            let (year, rest) = digits.split_at_checked(2)?;
            let year = number(year);
            // Before 50 means the years from 2000 on (RFC 5280).
            (if year < 50 { 2000 + year } else { 1900 + year }, rest)
        }
        tag::GENERALIZED_TIME => {
            let (year, rest) = digits.split_at_checked(4)?;
            (number(year), rest)
        }
        _ => return None,
    };
    let rest: &[u8; 10] = rest.try_into().ok()?;
    let part = |at: usize| rest.get(at..at + 2).map(number);
    let (month, day) = (part(0)?, part(2)?);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    Some(days_to(year, month, day) * 86_400 + part(4)? * 3600 + part(6)? * 60 + part(8)?)
}

/// The days from 1970-01-01 to a date of the Gregorian calendar, counted in years that begin in March.
fn days_to(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    // 719,468 days lie between 0000-03-01 and 1970-01-01.
    year * 365 + leap_days + of_year - 719_468
}

/// The date of a time in seconds since 1970: year, month and day.
pub fn date(seconds: i64) -> (i64, u8, u8) {
    let days = seconds.div_euclid(86_400);
    // The year is found by trying, as it is near the guess.
    let guess = 1970 + days.div_euclid(366);
    let year = (guess..).find(|year| days_to(year + 1, 1, 1) > days).unwrap_or(guess);
    let month = (1..=12).rev().find(|month| days_to(year, *month, 1) <= days).unwrap_or(1);
    let day = days - days_to(year, month, 1) + 1;
    (year, u8::try_from(month).unwrap_or(1), u8::try_from(day).unwrap_or(1))
}

/// A date as text.
pub fn date_text(seconds: i64) -> String {
    let (year, month, day) = date(seconds);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_both_kinds_are_read_and_dates_are_written_back() {
        assert_eq!(time((tag::UTC_TIME, b"700101000000Z")), Some(0));
        assert_eq!(time((tag::UTC_TIME, b"491231235959Z")), Some(2_524_607_999));
        assert_eq!(time((tag::GENERALIZED_TIME, b"20240229120000Z")), Some(1_709_208_000));
        for text in
            [&b"2024022912000Z"[..], b"20241329120000Z", b"20240229120000", b"Z", b"", b"2024022912000aZ"]
        {
            assert_eq!(time((tag::GENERALIZED_TIME, text)), None, "{text:?}");
        }
        for text in
            ["1970-01-01", "1999-12-31", "2000-02-29", "2024-02-29", "2026-11-27", "2100-03-01", "2127-01-01"]
        {
            let digits: Vec<i64> = text.split('-').map(|part| part.parse().unwrap()).collect();
            assert_eq!(date_text(days_to(digits[0], digits[1], digits[2]) * 86_400 + 86_399), text);
        }
    }
}
