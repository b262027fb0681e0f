//! The order of short byte strings, where a call would cost more than the comparison.

use std::cmp::Ordering;

/// As `one.cmp(other)`. Of two strings of one length, from 8 to 16 bytes, as most keys and names are, it is found without a call.
#[inline(always)]
pub fn compare(one: &[u8], other: &[u8]) -> Ordering {
    match (words(one), words(other)) {
        (Some(one_words), Some(other_words)) if one.len() == other.len() => one_words.cmp(&other_words),
        _ => one.cmp(other),
    }
}

/// The first and the last eight bytes, which overlap in a string of less than sixteen: among those of one length, they order
/// as the strings do.
#[inline(always)]
fn words(bytes: &[u8]) -> Option<(u64, u64)> {
    let (first, last) = (bytes.first_chunk::<8>()?, bytes.last_chunk::<8>()?);
    (bytes.len() <= 16).then(|| (u64::from_be_bytes(*first), u64::from_be_bytes(*last)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_of_every_length_sort_as_slices_do() {
        let mut strings = Vec::new();
        for len in 0..20 {
            let base: Vec<u8> = (0..len).map(|at| at as u8 * 7).collect();
            for at in 0..len {
                for byte in [0, 1, 0x7F, 0x80, 0xFF] {
                    let mut other = base.clone();
                    other[at] = byte;
                    strings.push(other);
                }
            }
            strings.push(base);
        }
        for one in &strings {
            for other in &strings {
                assert_eq!(compare(one, other), one.cmp(other), "{one:?} {other:?}");
            }
        }
    }
}
