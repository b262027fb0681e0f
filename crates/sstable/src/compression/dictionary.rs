//! The dictionary that Cassandra 6.0 stores after the chunk offsets of CompressionInfo.db
//! (`CompressionDictionary.serialize`).
//!
//! Layout, big endian: kind (u8, 0 for zstd), id (i64), length (i32), the dictionary, CRC32C (i32) of the kind, of the
//! id in little endian (as Guava's hasher takes it) and of the dictionary. A file without a dictionary ends after the
//! offsets.

use super::compressor::CodecError;
use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;
use zstd::zstd_safe::{DCtx, DDict};

const ZSTD: u8 = 0;
/// Bytes before the dictionary.
const FRONT_BYTES: usize = 1 + 8 + 4;
const CHECKSUM_BYTES: usize = 4;
/// The largest dictionary accepted. Cassandra trains dictionaries of 64 KiB.
pub(super) const BYTES_MAX: u64 = 64 << 20;

thread_local! {
    // A context takes hundreds of KiB, so each thread keeps one.
    static CONTEXT: RefCell<Option<DCtx<'static>>> = const { RefCell::new(None) };
}

/// A parsed dictionary.
#[derive(Clone)]
pub struct Dictionary {
    id: i64,
    bytes: Arc<[u8]>,
    prepared: Arc<DDict<'static>>,
}

impl Dictionary {
    /// Parses the bytes after the offsets. The error describes what is wrong with them.
    pub(super) fn parse(stored: &[u8]) -> Result<Dictionary, String> {
        let Some((front, rest)) = stored.split_first_chunk::<FRONT_BYTES>() else {
            return Err(format!("{} bytes behind the chunk offsets are no dictionary", stored.len()));
        };
        let [kind, i0, i1, i2, i3, i4, i5, i6, i7, l0, l1, l2, l3] = *front;
        if kind != ZSTD {
            return Err(format!("a dictionary of unknown kind {kind}"));
        }
        let id = i64::from_be_bytes([i0, i1, i2, i3, i4, i5, i6, i7]);
        let length = u32::from_be_bytes([l0, l1, l2, l3]) as usize;
        let whole = rest.split_at_checked(length).filter(|(_, sum)| sum.len() == CHECKSUM_BYTES);
        let Some((bytes, sum)) = whole else {
            return Err(format!("a dictionary of {length} bytes does not end with the file"));
        };
        if sum != checksum(id, bytes).to_be_bytes() {
            return Err("the checksum of the dictionary does not match".to_owned());
        }
        let prepared = DDict::try_create(bytes).ok_or("zstd does not take the dictionary")?;
        Ok(Dictionary { id, bytes: bytes.into(), prepared: Arc::new(prepared) })
    }

    /// Decompresses a chunk that fills `out` exactly.
    pub(super) fn decompress(&self, input: &[u8], out: &mut [u8]) -> Result<(), CodecError> {
        let found = CONTEXT.with_borrow_mut(|kept| {
            if kept.is_none() {
                *kept = Some(DCtx::try_create().ok_or(CodecError::OutOfMemory)?);
            }
            let Some(context) = kept else { return Err(CodecError::OutOfMemory) };
            context.decompress_using_ddict(out, input, &self.prepared).map_err(|_| CodecError::Malformed)
        })?;
        if found == out.len() { Ok(()) } else { Err(CodecError::WrongLength { expected: out.len(), found }) }
    }

    /// Bytes of memory held.
    pub(super) fn memory_bytes(&self) -> usize {
        2 * self.bytes.len()
    }
}

impl PartialEq for Dictionary {
    fn eq(&self, other: &Dictionary) -> bool {
        self.id == other.id && self.bytes == other.bytes
    }
}

impl fmt::Debug for Dictionary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Dictionary {{ id: {}, {} bytes }}", self.id, self.bytes.len())
    }
}

fn checksum(id: i64, bytes: &[u8]) -> u32 {
    let front = [&[ZSTD][..], &id.to_le_bytes()].concat();
    let sum = front.iter().chain(bytes).fold(u32::MAX, |sum, byte| {
        // A dictionary is read once for each file, so working bit by bit is fast enough and needs no table.
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| match sum & 1 {
            1 => sum >> 1 ^ 0x82F6_3B78,
            _ => sum >> 1,
        })
    });
    !sum
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes that Cassandra would write for a dictionary.
    fn stored(id: i64, bytes: &[u8]) -> Vec<u8> {
        let length = (bytes.len() as u32).to_be_bytes();
        let sum = checksum(id, bytes).to_be_bytes();
        [&[ZSTD][..], &id.to_be_bytes(), &length, bytes, &sum].concat()
    }

    #[test]
    fn the_checksum_is_crc32c() {
        // The CRC32C of "123456789" is 0xE3069283. `checksum` puts nine bytes before the dictionary.
        let plain = |bytes: &[u8]| {
            !bytes.iter().fold(u32::MAX, |sum, byte| {
                (0..8).fold(sum ^ u32::from(*byte), |sum, _| {
                    if sum & 1 == 1 { sum >> 1 ^ 0x82F6_3B78 } else { sum >> 1 }
                })
            })
        };
        assert_eq!(plain(b"123456789"), 0xE306_9283);
        assert_eq!(checksum(0, b""), plain(&[0; 9]));
    }

    #[test]
    fn chunks_are_decompressed_with_it_and_without_it_they_are_not() {
        let dictionary: Vec<u8> =
            (0..200).flat_map(|n| format!("row number {n} of the table;").into_bytes()).collect();
        let read = Dictionary::parse(&stored(7, &dictionary)).unwrap();
        let content: Vec<u8> = b"row number 7 of the table;row number 99 of the table;".repeat(3);
        let mut compressor = zstd::bulk::Compressor::with_dictionary(3, &dictionary).unwrap();
        let chunk = compressor.compress(&content).unwrap();
        let mut out = vec![0; content.len()];
        read.decompress(&chunk, &mut out).unwrap();
        assert_eq!(out, content);
        let other = Dictionary::parse(&stored(7, b"something else entirely")).unwrap();
        assert!(other.decompress(&chunk, &mut out).is_err() || out != content);
    }

    #[test]
    fn damage_is_told() {
        let whole = stored(-3, b"some bytes");
        assert!(Dictionary::parse(&whole).is_ok());
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 1;
            assert!(Dictionary::parse(&changed).is_err(), "byte {at}");
            assert!(Dictionary::parse(&whole[..at]).is_err(), "cut at {at}");
        }
    }
}
