//! Reads what errors, checks and logins need of a certificate: when it is valid, for whom, and who signed it.

use std::net::IpAddr;

use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::ParsedCertificate;

use crate::der::{Elements, tag};

/// `2.5.4.3`, a common name.
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
/// `2.5.29.17`, the extension with further names.
const ALTERNATIVE_NAMES: &[u8] = &[0x55, 0x1D, 0x11];
/// `2.5.29.15`, the purposes of the key.
const KEY_USAGE: &[u8] = &[0x55, 0x1D, 0x0F];
/// `2.5.29.19`, whether the certificate is that of an authority.
const BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1D, 0x13];
/// `2.5.29.37`, the purposes of the certificate, and `2.5.29.37.0`, all of them.
const EXTENDED_KEY_USAGE: &[u8] = &[0x55, 0x1D, 0x25];
const ANY_PURPOSE: &[u8] = &[0x55, 0x1D, 0x25, 0x00];
/// The first bits of a key's purposes: digitalSignature; the sixth: keyCertSign.
const SIGNS: u8 = 0x80;
const SIGNS_CERTIFICATES: u8 = 0x04;
/// `[3]`, of other elements: the extensions of a certificate.
const EXTENSIONS: u8 = 0xA3;
/// `[6]`, in an alternative name: a URI.
const URI: u8 = 0x86;

/// What a certificate is shown for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    Server,
    Client,
}

impl Purpose {
    /// `1.3.6.1.5.5.7.3.1` and `1.3.6.1.5.5.7.3.2`.
    fn id(self) -> &'static [u8] {
        match self {
            Purpose::Server => &[0x2B, 6, 1, 5, 5, 7, 3, 1],
            Purpose::Client => &[0x2B, 6, 1, 5, 5, 7, 3, 2],
        }
    }
}

/// The parts of a certificate that are read here, each the contents of its element.
struct Fields<'a> {
    /// 1, 2 or 3.
    version: u32,
    serial: &'a [u8],
    issuer: &'a [u8],
    validity: Elements<'a>,
    subject: &'a [u8],
    /// What follows the subject.
    rest: Elements<'a>,
}

impl<'a> Fields<'a> {
    fn of(certificate: &'a [u8]) -> Option<Fields<'a>> {
        let mut fields = Elements::of(certificate).within(tag::SEQUENCE)?.within(tag::SEQUENCE)?;
        let version = match fields.within(tag::CONTEXT_0) {
            Some(mut version) => version.number()?.checked_add(1)?,
            None => 1,
        };
        let serial = fields.one(tag::INTEGER)?;
        fields.one(tag::SEQUENCE)?;
        let issuer = fields.one(tag::SEQUENCE)?;
        let validity = fields.within(tag::SEQUENCE)?;
        let subject = fields.one(tag::SEQUENCE)?;
        Some(Fields { version, serial, issuer, validity, subject, rest: fields })
    }

    /// The contents of an extension.
    fn extension(&self, id: &[u8]) -> Option<&'a [u8]> {
        let mut rest = self.rest;
        while rest.peek()? != EXTENSIONS {
            rest.any()?;
        }
        let mut extensions = rest.within(EXTENSIONS)?.within(tag::SEQUENCE)?;
        while let Some(mut extension) = extensions.within(tag::SEQUENCE) {
            if extension.one(tag::OBJECT_ID)? == id {
                extension.one(tag::BOOLEAN);
                return extension.one(tag::OCTETS);
            }
        }
        None
    }
}

impl Fields<'_> {
    /// Whether the key has a purpose of the first eight, which it has if none is named.
    fn key_is_for(&self, purpose: u8) -> bool {
        self.extension(KEY_USAGE).is_none_or(|bytes| {
            // The first byte counts unused bits of the last.
            let bits = Elements::of(bytes).one(tag::BITS).and_then(|bits| bits.get(1).copied());
            bits.is_some_and(|bits| bits & purpose != 0)
        })
    }
}

/// From when and until when a certificate is valid, in seconds since 1970; `None` if it is damaged.
pub fn validity(certificate: &[u8]) -> Option<(i64, i64)> {
    let mut times = Fields::of(certificate)?.validity;
    Some((time(times.any()?)?, time(times.any()?)?))
}

/// The names of who signed a certificate and of whom it is for, as they are encoded; `None` if it is damaged.
pub fn issuer_and_subject(certificate: &[u8]) -> Option<(&[u8], &[u8])> {
    let fields = Fields::of(certificate)?;
    Some((fields.issuer, fields.subject))
}

/// Whether a certificate of a trust store may sign those of others. The rules are Java's (`PKIXValidator.verifyTrustAnchor`): since
/// version 3 it must say that it is an authority's, and its key must be for that purpose if purposes are named. A verifier that takes
/// every trusted certificate for an authority would trust whatever the owner of a trusted server's key signs.
pub fn is_authority(certificate: &[u8]) -> bool {
    let Some(fields) = Fields::of(certificate) else { return false };
    if fields.version < 3 {
        return true;
    }
    let constraints = fields.extension(BASIC_CONSTRAINTS);
    let says_so = constraints.and_then(|bytes| Elements::of(bytes).within(tag::SEQUENCE)?.one(tag::BOOLEAN));
    says_so.is_some_and(|value| value != [0]) && fields.key_is_for(SIGNS_CERTIFICATES)
}

/// Whether a peer may show a certificate for this purpose, as Java decides (`EndEntityChecker`). A client's key must also be for
/// signatures, which prove that the client has it.
pub fn is_for(certificate: &[u8], purpose: Purpose) -> bool {
    let Some(fields) = Fields::of(certificate) else { return false };
    let has_purpose = fields.extension(EXTENDED_KEY_USAGE).is_none_or(|bytes| {
        let Some(mut ids) = Elements::of(bytes).within(tag::SEQUENCE) else { return false };
        std::iter::from_fn(|| ids.one(tag::OBJECT_ID)).any(|id| id == purpose.id() || id == ANY_PURPOSE)
    });
    has_purpose && (purpose == Purpose::Server || fields.key_is_for(SIGNS))
}

/// Whether a list of revoked certificates (RFC 5280, section 5) is of the certificate's issuer and has its number.
pub fn is_revoked(certificate: &[u8], list: &[u8]) -> bool {
    let Some(fields) = Fields::of(certificate) else { return false };
    revoked(list).is_some_and(|(issuer, mut entries)| {
        let mut numbers = std::iter::from_fn(|| entries.within(tag::SEQUENCE));
        issuer == fields.issuer && numbers.any(|mut entry| entry.one(tag::INTEGER) == Some(fields.serial))
    })
}

/// The issuer of a list of revoked certificates, and its entries.
fn revoked(list: &[u8]) -> Option<(&[u8], Elements<'_>)> {
    let mut fields = Elements::of(list).within(tag::SEQUENCE)?.within(tag::SEQUENCE)?;
    fields.one(tag::INTEGER);
    fields.one(tag::SEQUENCE)?;
    let issuer = fields.one(tag::SEQUENCE)?;
    // The times of this update and the next.
    while matches!(fields.peek(), Some(tag::UTC_TIME | tag::GENERALIZED_TIME)) {
        fields.any()?;
    }
    Some((issuer, fields.within(tag::SEQUENCE).unwrap_or(Elements::of(&[]))))
}

/// The URIs that a certificate is for, in its order.
pub fn uris(certificate: &[u8]) -> Vec<String> {
    let names = Fields::of(certificate).and_then(|fields| fields.extension(ALTERNATIVE_NAMES));
    let names = names.and_then(|names| Elements::of(names).within(tag::SEQUENCE));
    let mut found = Vec::new();
    let Some(mut names) = names else { return found };
    while let Some((kind, name)) = names.any() {
        if kind == URI
            && let Ok(text) = str::from_utf8(name)
        {
            found.push(text.to_owned());
        }
    }
    found
}

/// The common name of whom a certificate is for: the last one, which is the most specific.
pub fn common_name(certificate: &[u8]) -> Option<String> {
    let mut parts = Elements::of(Fields::of(certificate)?.subject);
    let mut found = None;
    while let Some(mut part) = parts.within(tag::SET) {
        while let Some(mut pair) = part.within(tag::SEQUENCE) {
            if pair.one(tag::OBJECT_ID)? == COMMON_NAME {
                found = text(pair.any()?);
            }
        }
    }
    found
}

/// A text of one of the kinds that names have.
fn text((kind, bytes): (u8, &[u8])) -> Option<String> {
    match kind {
        tag::BMP_TEXT => {
            let units: Vec<u16> =
                bytes.chunks_exact(2).map(|pair| u16::from(pair[0]) << 8 | u16::from(pair[1])).collect();
            (bytes.len() % 2 == 0).then(|| String::from_utf16(&units).ok()).flatten()
        }
        tag::UTF8_TEXT | tag::PRINTABLE_TEXT | tag::IA5_TEXT => String::from_utf8(bytes.to_vec()).ok(),
        // T61, which everybody reads as Latin-1.
        tag::T61_TEXT => Some(bytes.iter().map(|byte| char::from(*byte)).collect()),
        _ => None,
    }
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
