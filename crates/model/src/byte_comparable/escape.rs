//! Byte strings with escaped zeros: the end of a string is written as a zero and so sorts before every longer string.
//!
//! A sequence of n zeros becomes 00, n - 1 times FE, FF; at the end of the string it becomes 00 and n times FE. Without
//! trailing zeros the string ends with 00. The separator after a string is between 10 and EF, so FE and FF after a zero
//! are always escapes.

use super::source::Source;
use crate::types::TypeError;

const ESCAPE: u8 = 0x00;
const ESCAPED_0_CONT: u8 = 0xFE;
const ESCAPED_0_DONE: u8 = 0xFF;

/// Appends `bytes` with escapes and the end mark.
pub(super) fn encode(bytes: &[u8], out: &mut Vec<u8>) {
    out.reserve(bytes.len() + 1);
    if !bytes.contains(&0) {
        // `contains` scans whole words; the loop below does not.
        out.extend_from_slice(bytes);
        out.push(ESCAPE);
        return;
    }
    let mut rest = bytes;
    while let Some(zero) = rest.iter().position(|byte| *byte == 0) {
        let (plain, from_zero) = rest.split_at(zero);
        out.extend_from_slice(plain);
        let zeros = from_zero.iter().position(|byte| *byte != 0).unwrap_or(from_zero.len());
        rest = from_zero.split_at(zeros).1;
        out.push(ESCAPE);
        if rest.is_empty() {
            out.resize(out.len() + zeros, ESCAPED_0_CONT);
            return;
        }
        out.resize(out.len() + zeros - 1, ESCAPED_0_CONT);
        out.push(ESCAPED_0_DONE);
    }
    out.extend_from_slice(rest);
    out.push(ESCAPE);
}

/// Appends the string at `source` to `out`. The separator after the string is not consumed.
pub(super) fn decode(source: &mut Source<'_>, out: &mut Vec<u8>) -> Result<(), TypeError> {
    loop {
        match source.next()? {
            ESCAPE => {}
            byte => {
                out.push(byte);
                continue;
            }
        }
        loop {
            match source.peek() {
                Some(ESCAPED_0_CONT) => {
                    source.skip();
                    out.push(0);
                }
                Some(ESCAPED_0_DONE) => {
                    source.skip();
                    out.push(0);
                    break;
                }
                Some(0x10..=0xEF) | None => return Ok(()),
                Some(_) => return Err(source.error("neither an escape nor a separator")),
            }
        }
    }
}
