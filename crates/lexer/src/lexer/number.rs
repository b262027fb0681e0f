//! Tokens that begin with a digit, and numbers that look like a name or an operator: UUIDs that begin with a letter,
//! ISO 8601 durations, negative numbers.
//!
//! The order of the checks follows what ANTLR's automaton decides, as observed in Cassandra: the recorded answers are
//! in `crates/cql/src/syntax/tests/lexed.txt`.

use super::{Lexed, Trouble, fail};
use crate::token::Kind;

/// The number of digits in each group of a UUID; dashes separate the groups.
const UUID_GROUPS: [usize; 5] = [8, 4, 4, 4, 12];

/// Whether all of `bytes` are hexadecimal digits.
pub(super) fn is_hex(bytes: &[u8]) -> bool {
    bytes.iter().all(u8::is_ascii_hexdigit)
}

fn run(bytes: &[u8], at: usize, class: fn(&u8) -> bool) -> usize {
    bytes.get(at..).unwrap_or_default().iter().take_while(|byte| class(byte)).count()
}

fn digits(bytes: &[u8], at: usize) -> usize {
    run(bytes, at, u8::is_ascii_digit)
}

/// Lexes a token that begins with a digit at `start`.
pub(super) fn number(text: &str, start: usize) -> Lexed {
    let bytes = text.as_bytes();
    if bytes[start] == b'0' && matches!(bytes.get(start + 1), Some(b'x' | b'X')) {
        return Ok((Kind::Hex, start + 2 + run(bytes, start + 2, u8::is_ascii_hexdigit)));
    }
    let end = start + digits(bytes, start);
    let next = bytes.get(end).copied();
    if next == Some(b'-') || next.is_some_and(|byte| byte.is_ascii_hexdigit()) {
        let hex = run(bytes, start, u8::is_ascii_hexdigit);
        if hex == 8 && bytes.get(start + 8) == Some(&b'-') {
            return uuid(text, start);
        }
        if only_a_uuid_begins_so(&bytes[start..start + hex.min(8)], end - start) {
            return uuid(text, start);
        }
    }
    behind_digits(text, end)
}

/// Whether no integer, float or duration can begin with these (up to eight) hexadecimal digits. The first `lead` are
/// decimal.
fn only_a_uuid_begins_so(hex: &[u8], lead: usize) -> bool {
    let Some((letter, rest)) = hex.get(lead..).and_then(<[u8]>::split_first) else { return false };
    let decimal = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let next = rest.get(decimal);
    match letter.to_ascii_lowercase() {
        b'e' => decimal > 0 && next.is_some(),
        b'd' if decimal == 0 => next.is_some(),
        b'd' => next.is_some_and(|byte| !byte.eq_ignore_ascii_case(&b'd')),
        _ => true,
    }
}

/// Lexes a `-` at `start` that is followed by a digit.
pub(super) fn negative(text: &str, start: usize) -> Lexed {
    behind_digits(text, start + 1 + digits(text.as_bytes(), start + 1))
}

/// Lexes an integer, a float or a duration whose first digits end at `end`.
fn behind_digits(text: &str, end: usize) -> Lexed {
    let bytes = text.as_bytes();
    match bytes.get(end) {
        Some(b'.') => match (bytes.get(end + 1), bytes.get(end + 2)) {
            // `1..2` is a range between integers; `1...2` begins with the float `1.`.
            (Some(b'.'), Some(b'.')) => Ok((Kind::FloatNumber, end + 1)),
            (Some(b'.'), _) => Ok((Kind::Integer, end)),
            _ => {
                let end = end + 1 + digits(bytes, end + 1);
                match bytes.get(end) {
                    Some(b'e' | b'E') => exponent(bytes, end, end),
                    _ => Ok((Kind::FloatNumber, end)),
                }
            }
        },
        Some(b'e' | b'E') => match bytes.get(end + 1) {
            Some(b'+' | b'-' | b'0'..=b'9') => exponent(bytes, end, end),
            _ => fail(end + 1, Trouble::NoViable),
        },
        Some(_) => duration(text, end),
        None => Ok((Kind::Integer, end)),
    }
}

/// Lexes a float with an `e` at `at`; `without` is the float's end if that `e` begins a word instead.
fn exponent(bytes: &[u8], at: usize, without: usize) -> Lexed {
    let sign = usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
    match digits(bytes, at + 1 + sign) {
        0 if sign == 0 => Ok((Kind::FloatNumber, without)),
        0 => fail(at + 1 + sign, Trouble::EmptyLoop),
        count => Ok((Kind::FloatNumber, at + 1 + sign + count)),
    }
}

/// The length in bytes of the unit of time at `at`; 0 if there is none.
fn unit(text: &str, at: usize) -> Result<usize, usize> {
    let bytes = text.as_bytes();
    let second = bytes.get(at + 1).map(u8::to_ascii_lowercase);
    match bytes.get(at).map(u8::to_ascii_lowercase) {
        Some(b'y' | b'w' | b'd' | b'h' | b's') => Ok(1),
        Some(b'm') => Ok(if matches!(second, Some(b'o' | b's')) { 2 } else { 1 }),
        Some(b'u' | b'n') if second == Some(b's') => Ok(2),
        Some(b'u' | b'n') => Err(at + 1),
        Some(0xC2) if second == Some(0xB5) => match bytes.get(at + 2) {
            Some(b's' | b'S') => Ok(3),
            _ => Err(at + 2),
        },
        _ => Ok(0),
    }
}

/// Lexes a duration with units whose first digits end at `end`; an integer if no unit follows.
fn duration(text: &str, mut end: usize) -> Lexed {
    let mut kind = Kind::Integer;
    loop {
        match unit(text, end) {
            Err(at) => return fail(at, Trouble::ExpectedSet),
            Ok(0) if kind == Kind::Integer => return Ok((kind, end)),
            Ok(0) => return fail(end, Trouble::NoViable),
            Ok(length) => end += length,
        }
        kind = Kind::DurationLiteral;
        match digits(text.as_bytes(), end) {
            0 => return Ok((kind, end)),
            count => end += count,
        }
    }
}

/// Lexes a UUID at `start`; any other token is impossible there.
pub(super) fn uuid(text: &str, start: usize) -> Lexed {
    let bytes = text.as_bytes();
    let mut at = start;
    for (group, length) in UUID_GROUPS.into_iter().enumerate() {
        if group > 0 {
            if bytes.get(at) != Some(&b'-') {
                return fail(at, Trouble::Expected('-'));
            }
            at += 1;
        }
        for _ in 0..length {
            if !bytes.get(at).is_some_and(u8::is_ascii_hexdigit) {
                return fail(at, Trouble::ExpectedSet);
            }
            at += 1;
        }
    }
    Ok((Kind::UuidLiteral, at))
}

/// The duration, if any, that begins with a word with `P` at `start`; `end` is where the word ends.
///
/// A word that only begins like a duration is a name, unless it begins like `P0001-`.
pub(super) fn duration_word(text: &str, start: usize, end: usize) -> Option<Lexed> {
    let bytes = text.as_bytes();
    if end - start == 5 && digits(bytes, start + 1) == 4 && bytes.get(end) == Some(&b'-') {
        return Some(alternative(bytes, start));
    }
    match designators(bytes, start + 1) {
        Ok(found) if found == end => Some(Ok((Kind::DurationLiteral, found))),
        _ => None,
    }
}

/// Lexes `-P...` at `start`, which must be a duration.
pub(super) fn negative_duration(text: &str, start: usize) -> Lexed {
    let bytes = text.as_bytes();
    if digits(bytes, start + 2) == 4 && bytes.get(start + 6) == Some(&b'-') {
        return alternative(bytes, start + 1);
    }
    match designators(bytes, start + 2) {
        Ok(end) => Ok((Kind::DurationLiteral, end)),
        Err(at) => fail(at, Trouble::NoViable),
    }
}

/// Lexes a duration like `P0001-02-03T04:05:06` with its `P` at `start`.
fn alternative(bytes: &[u8], start: usize) -> Lexed {
    for (index, wanted) in b"Pdddd-dd-ddTdd:dd:dd".iter().enumerate() {
        let here = bytes.get(start + index);
        match wanted {
            b'd' if !here.is_some_and(u8::is_ascii_digit) => {
                return fail(start + index, Trouble::ExpectedSet);
            }
            b'd' => {}
            mark if here != Some(mark) => return fail(start + index, Trouble::Expected(char::from(*mark))),
            _ => {}
        }
    }
    Ok((Kind::DurationLiteral, start + 20))
}

/// The end of the designators (`1Y2M3DT4H5M6S`, `T1M`, `2W`) that begin at `at`, or the position where they break off.
fn designators(bytes: &[u8], at: usize) -> Result<usize, usize> {
    let mut end = at;
    let week = at + digits(bytes, at);
    if week > at && bytes.get(week) == Some(&b'W') {
        return Ok(week + 1);
    }
    let date = ordered(bytes, &mut end, b"YMD")?;
    if bytes.get(end) == Some(&b'T') {
        end += 1;
        if !ordered(bytes, &mut end, b"HMS")? {
            return Err(end);
        }
    } else if !date {
        return Err(end);
    }
    Ok(end)
}

/// Reads numbers that are followed by the letters of `units`, in their order, each at most once; returns whether there
/// was one.
fn ordered(bytes: &[u8], end: &mut usize, units: &[u8]) -> Result<bool, usize> {
    let mut left = units;
    let mut any = false;
    loop {
        let letter = *end + digits(bytes, *end);
        if letter == *end {
            return Ok(any);
        }
        let Some(index) = bytes.get(letter).and_then(|byte| left.iter().position(|unit| unit == byte)) else {
            return Err(letter);
        };
        left = left.get(index + 1..).unwrap_or_default();
        *end = letter + 1;
        any = true;
    }
}
