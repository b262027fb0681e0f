//! Values as JSON in byte buffers, for printing millions of them: `helenus sstable dump`.
//!
//! The text is that of `json` and `plain_text`. Appending digits to a `String` checks for UTF-8 every time, which was a
//! tenth of a dump's time; bytes need no check. The most common types are printed here, all others by those modules.

use super::digits::pair;
use super::integer::to_i64;
use super::json::{write_json, write_json_string};
use super::plain_text::write_text;
use super::text::append_hex;
use super::{CqlType, float, timestamp};

/// Appends the result of [`to_json`](super::to_json) for a value that is not null.
pub fn append_json(ty: &CqlType, bytes: &[u8], out: &mut Vec<u8>) {
    let is_written = match ty {
        CqlType::Text | CqlType::Ascii => append_quoted(bytes, out),
        CqlType::Blob => {
            out.extend_from_slice(b"\"0x");
            append_hex(bytes, out);
            out.push(b'"');
            true
        }
        CqlType::Uuid | CqlType::TimeUuid | CqlType::Timestamp => append_between_quotes(ty, bytes, b' ', out),
        _ => append_digits(ty, bytes, b' ', out),
    };
    if !is_written {
        let mut text = String::new();
        write_json(ty, Some(bytes), &mut text);
        out.extend_from_slice(text.as_bytes());
    }
}

/// Appends the text of [`write_text`] as a JSON string.
pub fn append_json_text(ty: &CqlType, bytes: &[u8], out: &mut Vec<u8>) {
    let is_written = match ty {
        CqlType::Text | CqlType::Ascii => append_quoted(bytes, out),
        _ => append_between_quotes(ty, bytes, b'T', out),
    };
    if !is_written {
        let (mut text, mut quoted) = (String::new(), String::new());
        write_text(ty, bytes, &mut text);
        write_json_string(&text, &mut quoted);
        out.extend_from_slice(quoted.as_bytes());
    }
}

/// Appends a number in decimal digits.
#[inline]
pub fn append_integer(value: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Appends text in quotes if nothing in it needs an escape; otherwise appends nothing and returns `false`.
#[inline]
fn append_quoted(text: &[u8], out: &mut Vec<u8>) -> bool {
    if !is_plain(text) {
        return false;
    }
    out.reserve(text.len() + 2);
    out.push(b'"');
    out.extend_from_slice(text);
    out.push(b'"');
    true
}

#[inline(always)]
fn append_between_quotes(ty: &CqlType, bytes: &[u8], separator: u8, out: &mut Vec<u8>) -> bool {
    out.push(b'"');
    let is_written = append_digits(ty, bytes, separator, out);
    if is_written {
        out.push(b'"');
    } else {
        out.pop();
    }
    is_written
}

/// Appends a value of a common type as `literal::write_plain` does; for others appends nothing and returns `false`.
#[inline(always)]
fn append_digits(ty: &CqlType, bytes: &[u8], separator: u8, out: &mut Vec<u8>) -> bool {
    match (ty, bytes.len()) {
        (CqlType::Int, 4) | (CqlType::BigInt, 8) | (CqlType::SmallInt, 2) | (CqlType::TinyInt, 1) => {
            append_integer(to_i64(bytes).unwrap_or_default(), out);
        }
        (CqlType::Boolean, 1) => {
            out.extend_from_slice(if bytes == [0] { b"false" } else { b"true" });
        }
        (CqlType::Double, 8) => return append_double(bytes, out),
        (CqlType::Timestamp, 8) => return append_timestamp(bytes, separator, out),
        (CqlType::Uuid, 16) => return append_uuid(bytes, out),
        (CqlType::TimeUuid, 16) if bytes[6] >> 4 == 1 => return append_uuid(bytes, out),
        _ => return false,
    }
    true
}

fn append_double(bytes: &[u8], out: &mut Vec<u8>) -> bool {
    let value = bytes.try_into().map(f64::from_be_bytes).unwrap_or(f64::NAN);
    let Some(short) = float::short(value) else { return false };
    if short.is_negative {
        out.push(b'-');
    }
    append_integer(short.whole as i64, out);
    let mut digits = *b".000000";
    let mut left = short.fraction;
    for digit in digits[1..=short.digits].iter_mut().rev() {
        *digit = b'0' + (left % 10) as u8;
        left /= 10;
    }
    out.extend_from_slice(&digits[..=short.digits]);
    true
}

/// Appends a timestamp in the years 1 to 9999; for others appends nothing and returns `false`.
fn append_timestamp(bytes: &[u8], separator: u8, out: &mut Vec<u8>) -> bool {
    let Some((date, of_day)) = bytes.try_into().ok().map(timestamp::parts) else { return false };
    if !(1..=9999).contains(&date.year) {
        return false;
    }
    let year = date.year as u32;
    let mut text = *b"0000-00-00 00:00:00.000Z";
    let parts = [
        (0, year / 100),
        (2, year),
        (5, date.month.into()),
        (8, date.day.into()),
        (11, of_day / 3_600_000),
        (14, of_day / 60_000 % 60),
        (17, of_day / 1_000 % 60),
        (21, of_day),
    ];
    for (at, part) in parts {
        text[at..at + 2].copy_from_slice(&pair(part));
    }
    text[10] = separator;
    text[20] = b'0' + (of_day / 100 % 10) as u8;
    out.extend_from_slice(&text);
    true
}

fn append_uuid(bytes: &[u8], out: &mut Vec<u8>) -> bool {
    let (Some(high), Some(low)) = (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) else { return false };
    let (high, low) = (u64::from_be_bytes(*high), u64::from_be_bytes(*low));
    let mut text = [b'-'; 36];
    text[..8].copy_from_slice(&hex_of((high >> 32) as u32));
    let middle = hex_of(high as u32);
    text[9..13].copy_from_slice(&middle[..4]);
    text[14..18].copy_from_slice(&middle[4..]);
    let node = hex_of((low >> 32) as u32);
    text[19..23].copy_from_slice(&node[..4]);
    text[24..28].copy_from_slice(&node[4..]);
    text[28..].copy_from_slice(&hex_of(low as u32));
    out.extend_from_slice(&text);
    true
}

/// Eight hexadecimal digits, computed together in one number with a byte for each digit.
#[inline]
fn hex_of(number: u32) -> [u8; 8] {
    const ONES: u64 = u64::MAX / 255;
    let wide = u64::from(number);
    let halves = wide & 0xFFFF | (wide & 0xFFFF_0000) << 16;
    let bytes = (halves | halves << 8) & 0x00FF_00FF_00FF_00FF;
    let digits = (bytes | bytes << 4) & 0x0F0F_0F0F_0F0F_0F0F;
    // 1 in each digit greater than 9.
    let letters = (digits + ONES * 6) >> 4 & ONES;
    (digits + ONES * u64::from(b'0') + letters * u64::from(b'a' - b'0' - 10)).to_be_bytes()
}

/// Whether the bytes are ASCII and none needs an escape in JSON. Eight are tested together.
#[inline]
fn is_plain(text: &[u8]) -> bool {
    if let Some(last) = text.last_chunk::<8>() {
        let (words, _) = text.as_chunks::<8>();
        return words.iter().fold(not_plain(*last), |any, word| any | not_plain(*word)) == 0;
    }
    if let (Some([a, b, c, d]), Some([e, f, g, h])) = (text.first_chunk::<4>(), text.last_chunk::<4>()) {
        return not_plain([*a, *b, *c, *d, *e, *f, *g, *h]) == 0;
    }
    text.iter().all(|byte| not_plain([*byte; 8]) == 0)
}

/// Not zero if one of the eight bytes is below a space, a quote, a backslash or not ASCII.
#[inline]
fn not_plain(bytes: [u8; 8]) -> u64 {
    const ONES: u64 = u64::MAX / 255;
    const HIGH_BITS: u64 = ONES * 0x80;
    let word = u64::from_le_bytes(bytes);
    // The high bit is right for the lowest byte that borrows. It may be wrong for higher bytes, but then the result is
    // already not zero.
    let below = |word: u64, limit: u8| word.wrapping_sub(ONES * u64::from(limit)) & !word;
    let equals = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    (word | below(word, b' ') | equals(b'"') | equals(b'\\')) & HIGH_BITS
}

#[cfg(test)]
mod tests {
    use super::super::to_json;
    use super::*;

    fn both_ways(ty: &CqlType, bytes: &[u8]) {
        let (mut json, mut path) = (b"x".to_vec(), b"x".to_vec());
        append_json(ty, bytes, &mut json);
        assert_eq!(String::from_utf8(json).unwrap(), format!("x{}", to_json(ty, Some(bytes))), "{ty}");
        append_json_text(ty, bytes, &mut path);
        let (mut text, mut quoted) = (String::new(), "x".to_owned());
        write_text(ty, bytes, &mut text);
        write_json_string(&text, &mut quoted);
        assert_eq!(String::from_utf8(path).unwrap(), quoted, "{ty}");
    }

    fn types() -> Vec<CqlType> {
        use CqlType::*;
        let simple =
            [Ascii, BigInt, Blob, Boolean, Counter, Date, Decimal, Double, Duration, Float, Inet, Int];
        let others = [SmallInt, Text, Time, Timestamp, TimeUuid, TinyInt, Uuid, Varint];
        let tuple = Tuple([Text, Int].into());
        simple.into_iter().chain(others).chain([tuple]).collect()
    }

    #[test]
    fn bytes_and_strings_say_the_same() {
        let mut state = 7_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 16
        };
        for ty in types() {
            for round in 0..3_000_u64 {
                let length = [0, 1, 2, 4, 8, 16, next() % 40][(round % 7) as usize];
                let kept = if round % 2 == 0 { 0xFF } else { 0x7F };
                let mut bytes: Vec<u8> = (0..length).map(|_| next() as u8 & kept).collect();
                if round % 3 == 0 {
                    // Small numbers, recent timestamps, text without control characters.
                    let zeroes = bytes.len() / 3;
                    bytes.iter_mut().take(zeroes).for_each(|byte| *byte = 0);
                    bytes.iter_mut().skip(zeroes).for_each(|byte| *byte |= 0x20);
                }
                both_ways(&ty, &bytes);
            }
        }
    }

    #[test]
    fn numbers_and_moments_of_every_size_are_the_same_in_bytes() {
        for power in 0..63 {
            for value in [1_i64 << power, -(1_i64 << power), (1_i64 << power) - 1, 10_i64.pow(power % 19)] {
                for ty in [CqlType::BigInt, CqlType::Timestamp] {
                    both_ways(&ty, &value.to_be_bytes());
                }
                for divisor in [1.0, 10.0, 1e3, 1e6, 1e9] {
                    both_ways(&CqlType::Double, &(value as f64 / divisor).to_be_bytes());
                }
            }
        }
        let time =
            [0x50, 0x55, 0x4D, 0x6E, 0x29, 0xBB, 0x11, 0xE5, 0xB3, 0x45, 0xFE, 0xFF, 0x81, 0x9C, 0xDC, 0x9F];
        both_ways(&CqlType::TimeUuid, &time);
    }

    #[test]
    fn every_byte_at_every_place_of_a_text_is_seen() {
        for length in 1..20 {
            for at in 0..length {
                for byte in 0..=255 {
                    let mut text = vec![b'a'; length];
                    text[at] = byte;
                    let plain = (b' '..0x80).contains(&byte) && byte != b'"' && byte != b'\\';
                    assert_eq!(is_plain(&text), plain, "{text:?}");
                }
            }
        }
        both_ways(&CqlType::Text, "naïve \"quotes\"\n".as_bytes());
    }
}
