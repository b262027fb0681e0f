//! `uuid`, `timeuuid`, and the old comparator `LexicalUUIDType`: 16 bytes, or empty, which sorts first.
//!
//! Each has its own order. `uuid` sorts by version, then (version 1) by time, then unsigned; `timeuuid` by time, then
//! the last eight bytes as *signed* bytes (`AbstractTimeUUIDType.compareCustom`); `LexicalUUIDType` as two signed longs
//! (`java.util.UUID.compareTo`).

use std::cmp::Ordering;

use super::TypeError;
use super::error::quoted;

/// Flips the sign bit of each of eight bytes, so that unsigned order becomes signed order byte by byte.
pub(crate) const SIGNED_BYTES: u64 = 0x8080_8080_8080_8080;

/// The two halves of a value of 16 bytes.
pub(crate) fn halves(bytes: &[u8]) -> Option<(u64, u64)> {
    let value = u128::from_be_bytes(bytes.try_into().ok()?);
    Some(((value >> 64) as u64, value as u64))
}

/// Rearranges the time of a version 1 UUID by significance: high (with the version on top), middle, low.
pub(crate) fn time_first(high: u64) -> u64 {
    high << 48 | (high << 16 & 0xFFFF_0000_0000) | high >> 32
}

/// Undoes [`time_first`].
pub(crate) fn time_back(ordered: u64) -> u64 {
    ordered << 32 | (ordered >> 16 & 0xFFFF_0000) | ordered >> 48
}

/// The version nibble of a UUID's first half.
pub(crate) fn version(high: u64) -> u64 {
    high >> 12 & 0xF
}

pub(super) fn validate(bytes: &[u8]) -> Result<(), TypeError> {
    match bytes.len() {
        0 | 16 => Ok(()),
        length_bytes => Err(TypeError::Length { expected: "UUID should be 16 or 0 bytes", length_bytes }),
    }
}

pub(super) fn validate_time(bytes: &[u8]) -> Result<(), TypeError> {
    validate(bytes)?;
    match halves(bytes) {
        Some((high, _)) if version(high) != 1 => {
            Err(TypeError::TimeUuidVersion { nibble: (high >> 60) as u8 })
        }
        _ => Ok(()),
    }
}

pub(super) fn compare(a: &[u8], b: &[u8]) -> Ordering {
    let (Some(a), Some(b)) = (halves(a), halves(b)) else { return a.len().cmp(&b.len()) };
    let key = |(high, low): (u64, u64)| {
        let version = version(high);
        (version, if version == 1 { time_first(high) } else { high }, low)
    };
    key(a).cmp(&key(b))
}

pub(super) fn compare_time(a: &[u8], b: &[u8]) -> Ordering {
    let (Some(a), Some(b)) = (halves(a), halves(b)) else { return a.len().cmp(&b.len()) };
    let key = |(high, low): (u64, u64)| (time_first(high), low ^ SIGNED_BYTES);
    key(a).cmp(&key(b))
}

pub(super) fn compare_lexical(a: &[u8], b: &[u8]) -> Ordering {
    let (Some(a), Some(b)) = (halves(a), halves(b)) else { return a.len().cmp(&b.len()) };
    let key = |(high, low): (u64, u64)| (high as i64, low as i64);
    key(a).cmp(&key(b))
}

pub(super) fn write(bytes: &[u8; 16], out: &mut String) {
    let mut buffer = [0; uuid::fmt::Hyphenated::LENGTH];
    out.push_str(uuid::Uuid::from_bytes(*bytes).hyphenated().encode_lower(&mut buffer));
}

pub(super) fn parse(text: &str) -> Result<Vec<u8>, TypeError> {
    parse_any(text).ok_or_else(|| TypeError::text("Unable to make UUID from", text))
}

pub(super) fn parse_lexical(text: &str) -> Result<Vec<u8>, TypeError> {
    parse_any(text).ok_or_else(|| TypeError::text("unable to make UUID from", text))
}

pub(super) fn parse_time(text: &str) -> Result<Vec<u8>, TypeError> {
    let bytes = parse_any(text).ok_or_else(|| TypeError::TimeUuidText { text: quoted(text) })?;
    match halves(&bytes) {
        Some((high, _)) if version(high) != 1 => Err(TypeError::TimeUuidConstant),
        _ => Ok(bytes),
    }
}

/// Parses the hyphenated form only, as `UUIDType.parse`; empty text is the empty value.
fn parse_any(text: &str) -> Option<Vec<u8>> {
    if text.is_empty() {
        return Some(Vec::new());
    }
    if text.len() != 36 {
        return None;
    }
    uuid::Uuid::try_parse(text).ok().map(|uuid| uuid.as_bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_survive_being_put_in_order() {
        for high in [0, 1, u64::MAX, 0x0123_4567_89ab_1def] {
            assert_eq!(time_back(time_first(high)), high);
        }
    }

    #[test]
    fn only_version_1_is_a_timeuuid() {
        let random = "f47ac10b-58cc-4372-a567-0e02b2c3d479";
        let time = "50554d6e-29bb-11e5-b345-feff819cdc9f";
        assert_eq!(parse_time(random).unwrap_err().to_string(), "TimeUUID supports only version 1 UUIDs");
        assert!(validate_time(&parse(random).unwrap()).is_err());
        assert!(validate_time(&parse_time(time).unwrap()).is_ok());
        assert_eq!(parse("x").unwrap_err().to_string(), "Unable to make UUID from 'x'");
        assert_eq!(parse_time("x").unwrap_err().to_string(), "Unknown timeuuid representation: x");
        assert!(parse("f47ac10b58cc4372a5670e02b2c3d479").is_err());
    }
}
