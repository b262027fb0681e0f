//! Variable-length integers: `bigint` and `varint`.
//!
//! Up to nine bytes: the inverted sign bit, then one copy of it for each further byte, then the number. A `varint` of
//! more than 55 bits is 00 or FF, the length, and the bytes (`ByteSource.VariableLengthInteger`, `IntegerType`).

use super::source::Source;
use crate::types::TypeError;

/// A `varint` of this many bytes or more, without sign bytes, is written with a length.
const FULL_FORM_THRESHOLD: usize = 7;

/// Appends `value` in one to nine bytes.
#[inline]
pub(super) fn encode_i64(value: i64, out: &mut Vec<u8>) {
    // A negative number is encoded as the complement of the encoding of its complement.
    let complement = (value >> 63) as u64;
    let positive = value as u64 ^ complement;
    let bits = 64 - (positive | 1).leading_zeros() as usize;
    let length = bits / 7 + 1;
    if length >= 9 {
        out.push(0xFF ^ complement as u8);
        let marked = positive | 1 << 63; // the eighth length bit
        out.extend_from_slice(&(marked ^ complement).to_be_bytes());
        return;
    }
    let header = !(0xFF_u64 >> length) & 0xFF; // `length` ones
    let marked = (positive | header << (8 * (length - 1))) ^ complement;
    out.extend_from_slice(&marked.to_be_bytes()[8 - length..]);
}

/// Reads what [`encode_i64`] wrote.
pub(super) fn decode_i64(source: &mut Source<'_>) -> Result<i64, TypeError> {
    let first = source.next()?;
    let complement = if first < 0x80 { 0xFF } else { 0 };
    let first = first ^ complement;
    let ones = first.leading_ones();
    let mut value = u64::from(first) & 0xFF >> ones;
    let mut left = ones - 1;
    if first == 0xFF && source.peek().is_some_and(|second| (second ^ complement) & 0x80 != 0) {
        left = 8;
    }
    for _ in 0..left {
        value = value << 8 | u64::from(source.next()? ^ complement);
    }
    if left == 8 {
        value &= !(1 << 63);
    }
    Ok(value as i64 ^ i64::from(complement as i8))
}

/// Appends a `varint` of at least one byte.
pub(super) fn encode_varint(bytes: &[u8], out: &mut Vec<u8>) {
    let negative = bytes.first().is_some_and(|first| *first >= 0x80);
    let sign = if negative { 0xFF } else { 0 };
    let skip = bytes.iter().position(|byte| *byte != sign).unwrap_or(bytes.len());
    let significant = bytes.get(skip..).unwrap_or_default();
    if significant.len() < FULL_FORM_THRESHOLD {
        let start = i64::from(sign as i8);
        encode_i64(significant.iter().fold(start, |value, byte| value << 8 | i64::from(*byte)), out);
        return;
    }
    out.push(!sign);
    let header = out.len();
    encode_length((significant.len() - FULL_FORM_THRESHOLD) as u64, out);
    for byte in out.iter_mut().skip(header) {
        *byte ^= sign;
    }
    out.extend_from_slice(significant);
}

/// Like [`encode_i64`] without a sign: the number of leading ones is the number of further bytes.
fn encode_length(value: u64, out: &mut Vec<u8>) {
    let further = (63 - (value | 1).leading_zeros() as usize) / 7;
    let marked = value | (!(0xFF_u64 >> further) & 0xFF) << (8 * further);
    out.extend_from_slice(&marked.to_be_bytes()[7 - further..]);
}

/// Appends the shortest bytes of the `varint` at `source`.
pub(super) fn decode_varint(source: &mut Source<'_>, out: &mut Vec<u8>) -> Result<(), TypeError> {
    let sign = match source.peek() {
        Some(0x00) => 0xFF_u8,
        Some(0xFF) => 0x00,
        _ => {
            let value = decode_i64(source)?;
            let significant = 64 - (value ^ (value >> 63)).leading_zeros() as usize;
            out.extend_from_slice(&value.to_be_bytes()[8 - (significant / 8 + 1)..]);
            return Ok(());
        }
    };
    source.skip();
    let first = source.next()? ^ sign;
    let further = first.leading_ones();
    // No value is 2^49 bytes long.
    if further > 6 {
        return Err(source.error("length of a varint out of range"));
    }
    let mut length = u64::from(first & 0xFF >> further);
    for _ in 0..further {
        length = length << 8 | u64::from(source.next()? ^ sign);
    }
    let needs_sign_byte = source.peek().is_some_and(|byte| (byte ^ sign) & 0x80 != 0);
    if needs_sign_byte {
        out.push(sign);
    }
    source.copy(length as usize + FULL_FORM_THRESHOLD, out)
}
