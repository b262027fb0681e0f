//! The paging state: where a page ended, as it goes to the client and comes back.
//!
//! Version (1 byte), fingerprint of the statement (8), rows given of the whole limit and of the partition (vint each),
//! length of the key (vint) and the key, a byte that says whether a clustering follows, the clustering to the end but
//! for a checksum (4). Clients keep states for as long as they like and send back whatever they like.

use crate::error::{Result, bad_paging_state};
use helenus_engine::read::Resume;
use helenus_model::vint;

const VERSION: u8 = 1;
const CHECKSUM_BYTES: usize = 4;

/// FNV-1a, 64 bits.
pub(super) fn hash(parts: &[&[u8]]) -> u64 {
    let bytes = parts.iter().flat_map(|part| part.iter());
    bytes.fold(0xCBF2_9CE4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3))
}

/// Writes a state.
pub(super) fn encode(resume: &Resume, fingerprint: u64) -> Vec<u8> {
    let clustering = resume.clustering.as_deref();
    let mut out = Vec::with_capacity(32 + resume.key.len() + clustering.map_or(0, <[u8]>::len));
    out.push(VERSION);
    out.extend_from_slice(&fingerprint.to_be_bytes());
    vint::write_unsigned(resume.rows, &mut out);
    vint::write_unsigned(resume.rows_in_partition, &mut out);
    vint::write_unsigned(resume.key.len() as u64, &mut out);
    out.extend_from_slice(&resume.key);
    out.push(u8::from(clustering.is_some()));
    out.extend_from_slice(clustering.unwrap_or_default());
    let checksum = hash(&[&out]) as u32;
    out.extend_from_slice(&checksum.to_be_bytes());
    out
}

/// Reads a state.
///
/// # Errors
/// It is not one that this statement gave.
pub(super) fn decode(state: &[u8], fingerprint: u64) -> Result<Resume> {
    parse(state, fingerprint).ok_or_else(bad_paging_state)
}

/// Whether a state was given by some SELECT.
pub(crate) fn is_paging_state(state: &[u8]) -> bool {
    content(state).is_some()
}

fn content(state: &[u8]) -> Option<&[u8]> {
    let (content, checksum) = state.split_at_checked(state.len().checked_sub(CHECKSUM_BYTES)?)?;
    let is_ours = content.first() == Some(&VERSION) && checksum == (hash(&[content]) as u32).to_be_bytes();
    is_ours.then_some(content)
}

fn parse(state: &[u8], fingerprint: u64) -> Option<Resume> {
    let content = content(state)?;
    let (_, rest) = content.split_first()?;
    let (of, mut rest) = rest.split_first_chunk::<8>()?;
    if u64::from_be_bytes(*of) != fingerprint {
        return None;
    }
    let mut number = || {
        let (value, length) = vint::read_unsigned(rest)?;
        rest = rest.get(length..)?;
        Some(value)
    };
    let (rows, rows_in_partition) = (number()?, number()?);
    let key_length = usize::try_from(number()?).ok()?;
    let (key, rest) = rest.split_at_checked(key_length)?;
    let (has_clustering, clustering) = rest.split_first()?;
    let clustering = match has_clustering {
        0 if clustering.is_empty() => None,
        1 => Some(clustering.to_vec()),
        _ => return None,
    };
    Some(Resume { key: key.to_vec(), clustering, rows, rows_in_partition })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn states() -> Vec<Resume> {
        let long = vec![7; 300];
        vec![
            Resume { key: b"k".to_vec(), clustering: None, rows: 0, rows_in_partition: 0 },
            Resume { key: long, clustering: Some(vec![]), rows: 1 << 40, rows_in_partition: 3 },
            Resume { key: vec![0], clustering: Some(vec![1, 2, 3]), rows: 200, rows_in_partition: 200 },
        ]
    }

    #[test]
    fn a_state_comes_back_as_it_went() {
        for state in states() {
            assert_eq!(decode(&encode(&state, 9), 9).unwrap(), state);
        }
    }

    #[test]
    fn a_state_of_another_statement_or_damaged_anywhere_is_a_protocol_error() {
        for state in states() {
            let bytes = encode(&state, 9);
            let refused = decode(&bytes, 8).unwrap_err();
            assert!(matches!(refused, crate::CqlError::Protocol(_)));
            assert_eq!(refused.to_string(), "Invalid value for the paging state");
            for length in 0..bytes.len() {
                assert!(decode(&bytes[..length], 9).is_err());
                let mut damaged = bytes.clone();
                damaged[length] ^= 0x10;
                assert!(decode(&damaged, 9).is_err());
            }
        }
    }
}
