//! `decimal`: sign, exponent and mantissa in base 100. Equal numbers have the same bytes, whatever their scale.
//!
//! - header: 40 (hexadecimal) plus the number of exponent bytes, or minus it if the exponent is negative; 80 is added
//!   if the number is not negative
//! - the exponent, negated for a negative number, without leading sign bytes
//! - a byte for each pair of digits of the mantissa 0.ddddd: 80 plus the pair. A negative mantissa is rounded down to
//!   the first pair, which is negated; the other pairs hold the positive remainder
//! - 00
//!
//! Zero is the single byte 80 (`DecimalType.asComparableBytes`).

use num_bigint::{BigInt, BigUint, Sign};

use super::source::Source;
use crate::types::{DecimalParts, TypeError};

const ZERO: u8 = 0x80;
const EXPONENT_HEADER: u8 = 0x40;

/// Appends a decimal; `None` if the bytes are too short for a scale.
pub(super) fn encode(bytes: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let parts = DecimalParts::read(bytes)?;
    let digits = parts.significant();
    if digits.is_empty() {
        out.push(ZERO);
        return Some(());
    }
    // The exponent is rounded up to an even number, so the mantissa has at most one zero after the point.
    let exponent = (parts.exponent() + 1) >> 1;
    let odd = parts.exponent() & 1 != 0;
    let signed_exponent = if parts.negative { -exponent } else { exponent } as i32;
    let length = 4 - signed_exponent.unsigned_abs().leading_zeros() as usize / 8;
    let header =
        if signed_exponent < 0 { EXPONENT_HEADER - length as u8 } else { EXPONENT_HEADER + length as u8 };
    out.push(if parts.negative { header } else { header | ZERO });
    out.extend_from_slice(&signed_exponent.to_be_bytes()[4 - length..]);
    encode_mantissa(digits, odd, parts.negative, out);
    out.push(0);
    Some(())
}

/// Encodes the mantissa `0.digits`, or `0.0digits` if `odd`.
fn encode_mantissa(digits: &[u8], odd: bool, negative: bool, out: &mut Vec<u8>) {
    let mut first = true;
    let mut rest = digits;
    while !rest.is_empty() {
        let pair = match rest {
            [low, tail @ ..] if first && odd => {
                rest = tail;
                *low
            }
            [high, low, tail @ ..] => {
                rest = tail;
                high * 10 + low
            }
            [high] => {
                rest = &[];
                high * 10
            }
            [] => break,
        };
        // The last pair of the complement of 0.xxyy is 100 - yy, the pairs before it are 99 - xx. The first pair takes
        // the carry.
        let borrowed = u8::from(!rest.is_empty());
        out.push(match (negative, first) {
            (false, _) => 0x80 + pair,
            (true, true) => 0x80 - pair - borrowed,
            (true, false) => 0x80 + (100 - pair - borrowed),
        });
        first = false;
    }
}

/// Appends a decimal that is equal to the one at `source`.
pub(super) fn decode(source: &mut Source<'_>, out: &mut Vec<u8>) -> Result<(), TypeError> {
    let header = source.next()?;
    if header == ZERO {
        out.extend_from_slice(&[0; 5]); // scale 0, number 0
        return Ok(());
    }
    let negative = header < ZERO;
    let length = i32::from(header & 0x7F) - i32::from(EXPONENT_HEADER);
    if length.abs() > 4 {
        return Err(source.error("exponent of a decimal out of range"));
    }
    let mut exponent: i64 = if length < 0 { -1 } else { 0 };
    for _ in 0..length.abs() {
        exponent = exponent << 8 | i64::from(source.next()?);
    }
    if negative {
        exponent = -exponent;
    }
    let mut pairs = Vec::new();
    loop {
        match source.next()? {
            0 => break,
            byte => pairs.push(i16::from(byte) - 0x80),
        }
    }
    exponent -= pairs.len() as i64;
    let mut unscaled =
        undo_rounding(pairs, negative).ok_or_else(|| source.error("a pair of digits out of range"))?;
    let mut power = 2 * exponent;
    if power < -i64::from(i32::MAX) {
        // The last digit is then a zero that only completed its pair. Cassandra's scale wraps around here.
        unscaled /= 10;
        power += 1;
    }
    if power > i64::from(i32::MAX) {
        // The scale cannot express the power, so the number gets trailing zeros. A valid encoding needs only a few.
        let zeros = power - i64::from(i32::MAX);
        if zeros > 16 {
            return Err(source.error("exponent of a decimal out of range"));
        }
        unscaled *= BigInt::from(10_u64.pow(zeros as u32));
        power = i64::from(i32::MAX);
    }
    let scale = i32::try_from(-power).map_err(|_| source.error("exponent of a decimal out of range"))?;
    out.extend_from_slice(&scale.to_be_bytes());
    out.extend_from_slice(&unscaled.to_signed_bytes_be());
    Ok(())
}

/// The number that these pairs represent. A negative number is -(first pair) plus the other pairs. It is first
/// rewritten as pairs of one sign, because `BigUint` parses many digits faster at once than pair by pair.
fn undo_rounding(pairs: Vec<i16>, negative: bool) -> Option<BigInt> {
    let mut digits = Vec::with_capacity(pairs.len());
    let last = pairs.len().checked_sub(1)?;
    for (i, pair) in pairs.iter().enumerate() {
        let borrowed = i16::from(i != last);
        let digit = match (negative, i) {
            (false, _) => *pair,
            (true, 0) => -pair - borrowed,
            (true, _) => 100 - pair - borrowed,
        };
        digits.push(u8::try_from(digit).ok()?);
    }
    // The last digit is 100 if the last pair is 00, which only invalid input has.
    let magnitude = BigUint::from_radix_be(&digits, 100)?;
    Some(BigInt::from_biguint(if negative { Sign::Minus } else { Sign::Plus }, magnitude))
}
