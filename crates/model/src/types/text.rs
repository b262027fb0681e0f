//! `ascii`, `text`, `blob` and `boolean`: bytes that say themselves how they read.
//!
//! The first three are ordered by their bytes and have no meaningless empty value.

use std::cmp::Ordering;

use super::TypeError;

pub(super) fn validate_ascii(bytes: &[u8]) -> Result<(), TypeError> {
    match bytes.iter().find(|byte| !byte.is_ascii()) {
        None => Ok(()),
        Some(byte) => Err(TypeError::NotAscii { byte: *byte as i8 }),
    }
}

/// Strict UTF-8. Cassandra's own state machine also lets through what Java's decoder then replaces (0xC080,
/// surrogates); such values are refused here, since no client can have meant them.
pub(super) fn validate_text(bytes: &[u8]) -> Result<(), TypeError> {
    simdutf8::basic::from_utf8(bytes).map(|_| ()).map_err(|_| TypeError::NotUtf8)
}

pub(super) fn parse_ascii(text: &str) -> Result<Vec<u8>, TypeError> {
    match text.chars().find(|character| !character.is_ascii()) {
        None => Ok(text.as_bytes().to_vec()),
        Some(character) => Err(TypeError::AsciiText { length: character.len_utf16() }),
    }
}

/// Bytes from hexadecimal digits, without a prefix.
pub(super) fn parse_blob(text: &str) -> Result<Vec<u8>, TypeError> {
    hex_bytes(text).ok_or_else(|| TypeError::Text {
        before: "cannot parse",
        text: text.to_owned(),
        after: " as hex bytes",
    })
}

/// Bytes from an even number of hexadecimal digits of either case.
pub(super) fn hex_bytes(text: &str) -> Option<Vec<u8>> {
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return None };
    let digit = |byte: u8| char::from(byte).to_digit(16);
    pairs.iter().map(|[high, low]| Some((digit(*high)? << 4 | digit(*low)?) as u8)).collect()
}

/// Appends two lower-case digits a byte.
pub(super) fn write_hex(bytes: &[u8], out: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.reserve(bytes.len() * 2);
    for run in bytes.chunks(32) {
        let mut digits = [0; 64];
        for (pair, byte) in digits.chunks_exact_mut(2).zip(run) {
            pair[0] = DIGITS[usize::from(byte >> 4)];
            pair[1] = DIGITS[usize::from(byte & 15)];
        }
        out.push_str(std::str::from_utf8(&digits[..run.len() * 2]).unwrap_or_default());
    }
}

/// Order of booleans: empty, false, true; any byte but 0 is true.
pub(super) fn compare_boolean(a: &[u8], b: &[u8]) -> Ordering {
    let truth = |bytes: &[u8]| bytes.first().map(|byte| *byte != 0);
    truth(a).cmp(&truth(b))
}

pub(super) fn parse_boolean(text: &str) -> Result<Vec<u8>, TypeError> {
    if text.is_empty() || text.eq_ignore_ascii_case("false") {
        Ok(vec![0])
    } else if text.eq_ignore_ascii_case("true") {
        Ok(vec![1])
    } else {
        Err(TypeError::text("Unable to make boolean from", text))
    }
}
