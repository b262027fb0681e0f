//! `ascii`, `text`, `blob` and `boolean`.
//!
//! The first three are ordered by their bytes and have no meaningless empty value.

use std::cmp::Ordering;

use super::TypeError;
use super::error::quoted;

pub(super) fn validate_ascii(bytes: &[u8]) -> Result<(), TypeError> {
    match bytes.iter().find(|byte| !byte.is_ascii()) {
        None => Ok(()),
        Some(byte) => Err(TypeError::NotAscii { byte: *byte as i8 }),
    }
}

/// Checks for strict UTF-8. Cassandra's state machine also accepts sequences that Java's decoder then replaces (0xC080,
/// surrogates); they are refused here, because no client can have intended them.
pub(super) fn validate_text(bytes: &[u8]) -> Result<(), TypeError> {
    simdutf8::basic::from_utf8(bytes).map(|_| ()).map_err(|_| TypeError::NotUtf8)
}

pub(super) fn parse_ascii(text: &str) -> Result<Vec<u8>, TypeError> {
    match text.chars().find(|character| !character.is_ascii()) {
        None => Ok(text.as_bytes().to_vec()),
        Some(character) => Err(TypeError::AsciiText { length: character.len_utf16() }),
    }
}

/// Parses hexadecimal digits without a prefix.
pub(super) fn parse_blob(text: &str) -> Result<Vec<u8>, TypeError> {
    hex_bytes(text).ok_or_else(|| TypeError::Text {
        before: "cannot parse",
        text: quoted(text),
        after: " as hex bytes",
    })
}

/// Parses an even number of hexadecimal digits in upper or lower case.
pub(super) fn hex_bytes(text: &str) -> Option<Vec<u8>> {
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return None };
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let mut bytes = Vec::with_capacity(pairs.len());
    for [high, low] in pairs {
        bytes.push((digit(*high)? << 4 | digit(*low)?) as u8);
    }
    Some(bytes)
}

/// Number of bytes that are converted to digits together.
const HEX_RUN: usize = 32;

/// Appends two lower-case hexadecimal digits for each byte.
pub(super) fn write_hex(bytes: &[u8], out: &mut String) {
    each_hex_run(bytes, |digits| push_ascii(digits, out));
}

/// As `write_hex`, to a byte buffer.
pub(super) fn append_hex(bytes: &[u8], out: &mut Vec<u8>) {
    each_hex_run(bytes, |digits| out.extend_from_slice(digits));
}

#[inline]
fn each_hex_run(bytes: &[u8], mut each: impl FnMut(&[u8])) {
    let (runs, rest) = bytes.as_chunks::<HEX_RUN>();
    for run in runs {
        each(hex_digits(run).as_flattened());
    }
    if !rest.is_empty() {
        let mut run = [0; HEX_RUN];
        run[..rest.len()].copy_from_slice(rest);
        each(&hex_digits(&run).as_flattened()[..rest.len() * 2]);
    }
}

/// Converts each byte to a 16-bit number of two digits, without a table or early exit, so that compilers vectorise the
/// loop.
fn hex_digits(run: &[u8; HEX_RUN]) -> [[u8; 2]; HEX_RUN] {
    const LETTERS: u16 = (b'a' - b'0' - 10) as u16;
    let mut digits = [[0; 2]; HEX_RUN];
    for (pair, byte) in digits.iter_mut().zip(run) {
        let halves = u16::from(byte >> 4) | u16::from(byte & 15) << 8;
        // 1 in each half greater than 9.
        let letters = (halves + 0x0606) >> 4 & 0x0101;
        *pair = (halves + 0x3030 + letters * LETTERS).to_le_bytes();
    }
    digits
}

fn push_ascii(digits: &[u8], out: &mut String) {
    out.push_str(simdutf8::basic::from_utf8(digits).unwrap_or_default());
}

/// Order of booleans: empty, false, true. Every byte except 0 is true.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_two_digits_wherever_it_stands_in_a_run() {
        for length in 0..3 * HEX_RUN {
            let bytes: Vec<u8> = (0..=255_u8).cycle().skip(length * 37).take(length).collect();
            let mut digits = String::from("0x");
            write_hex(&bytes, &mut digits);
            let expected: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(digits, format!("0x{expected}"));
            assert_eq!(hex_bytes(&digits[2..]), Some(bytes));
        }
    }
}
