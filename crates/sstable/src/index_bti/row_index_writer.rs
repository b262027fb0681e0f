//! Writes Rows.db: for each partition of more than one index block a trie of separators, then its entry.
//!
//! A separator is greater than every position of the block before it and not greater than any of its own block. It
//! consists of the common prefix of the neighbouring keys and of the next byte of the lower key, plus one. The first
//! separator is empty. One more separator, after the last block, leads to the end of the rows. Tries follow each other
//! without alignment.
//!
//! An entry: the partition key (length in two bytes, bytes), the position in Data.db as unsigned vint, the root
//! relative to the end of the key as signed vint, the number of blocks as unsigned vint, the partition's deletion.
//! Source: Cassandra's `RowIndexWriter`, `RowIndexReader.getSerializer`, `TrieIndexEntry`,
//! `BtiTableWriter.IndexWriter`.

use super::{DeletionTimeBytes, IndexPosition};
use crate::error::{Error, Result};
use crate::sequential_writer::{Finished, SequentialWriter};
use crate::trie::{TriePayload, TrieWriter, signed_size, write_signed};
use helenus_model::deletion::DeletionTime;
use helenus_model::vint;

/// Payload flag: a deletion time follows the offset. The other three bits are the offset's length.
pub(super) const FLAG_OPEN: u8 = 8;

#[derive(Clone, Copy)]
struct Payload {
    offset: i64,
    open: Option<DeletionTimeBytes>,
}

impl TriePayload for Payload {
    fn size(&self) -> usize {
        signed_size(self.offset) + self.open.as_ref().map_or(0, |open| open.as_slice().len())
    }
    fn flags(&self) -> u8 {
        signed_size(self.offset) as u8 | if self.open.is_some() { FLAG_OPEN } else { 0 }
    }
    fn write(&self, out: &mut Vec<u8>) {
        write_signed(self.offset, signed_size(self.offset), out);
        if let Some(open) = &self.open {
            out.extend_from_slice(open.as_slice());
        }
    }
}

/// What `finish_partition` stores about a partition.
#[derive(Clone, Copy, Debug)]
pub struct PartitionEnd<'a> {
    /// The serialised partition key.
    pub key: &'a [u8],
    /// The position in Data.db at which the partition begins (in bytes before compression).
    pub data_position: u64,
    /// The partition's deletion.
    pub deletion: DeletionTime,
    /// The offset of the end-of-partition byte, from the partition's start.
    pub end_offset: u64,
}

/// Writes Rows.db, one partition after another. Memory does not grow with the partition.
pub struct RowIndexWriter {
    out: SequentialWriter,
    trie: TrieWriter<Payload>,
    last_separator: Vec<u8>,
    last_key: Vec<u8>,
    block_count: u64,
    scratch: Vec<u8>,
}

impl RowIndexWriter {
    /// Writes into an empty component.
    pub fn new(out: SequentialWriter) -> RowIndexWriter {
        RowIndexWriter {
            out,
            trie: TrieWriter::new(),
            last_separator: Vec::new(),
            last_key: Vec::new(),
            block_count: 0,
            scratch: Vec::new(),
        }
    }

    /// Number of blocks of the current partition so far.
    pub fn block_count(&self) -> u64 {
        self.block_count
    }

    /// Adds the next block of the current partition: the ordered encodings of its first and last clustering (or marker
    /// bound), its offset from the partition's start, and the range deletion that is open at its start.
    pub fn add_block(
        &mut self,
        first_key: &[u8],
        last_key: &[u8],
        offset: u64,
        open: Option<DeletionTime>,
    ) -> Result<()> {
        let open = match open.filter(|open| !open.is_live()) {
            Some(open) => Some(self.encode(open)?),
            None => None,
        };
        let payload = self.payload(offset, open)?;
        self.last_separator.clear();
        if self.block_count > 0 {
            let shared = common_prefix(&self.last_key, first_key);
            let byte = self.last_key.get(shared).copied();
            assert!(
                byte.is_some() && byte < first_key.get(shared).copied(),
                "blocks of a row index must ascend: {first_key:02x?} after {:02x?}",
                self.last_key
            );
            self.last_separator.extend_from_slice(&first_key[..shared]);
            self.last_separator.extend(byte.map(|byte| byte + 1));
        }
        self.trie.add(&self.last_separator, payload, &mut self.out)?;
        self.last_key.clear();
        self.last_key.extend_from_slice(last_key);
        self.block_count += 1;
        Ok(())
    }

    /// Ends the current partition and returns its position for Partitions.db: that of its entry here, or that in
    /// Data.db if it has fewer than two blocks.
    pub fn finish_partition(&mut self, end: &PartitionEnd<'_>) -> Result<IndexPosition> {
        if self.block_count < 2 {
            self.reset();
            return Ok(IndexPosition::Data(end.data_position));
        }
        let payload = self.payload(end.end_offset, None)?;
        let separator = self.end_separator();
        self.trie.add(&separator, payload, &mut self.out)?;
        let root = self.trie.finish(&mut self.out)?;

        let entry_at = self.out.position();
        let key_len = u16::try_from(end.key.len())
            .map_err(|_| self.unsupported(format!("a partition key of {} bytes", end.key.len())))?;
        let base = entry_at + 2 + u64::from(key_len);
        let deletion = self.encode(end.deletion)?;
        self.scratch.clear();
        self.scratch.extend_from_slice(&key_len.to_be_bytes());
        self.scratch.extend_from_slice(end.key);
        vint::write_unsigned(end.data_position, &mut self.scratch);
        vint::write_signed(root as i64 - base as i64, &mut self.scratch);
        vint::write_unsigned(self.block_count, &mut self.scratch);
        self.scratch.extend_from_slice(deletion.as_slice());
        self.out.write(&self.scratch)?;
        self.reset();
        Ok(IndexPosition::Rows(entry_at))
    }

    /// Writes the rest and syncs. Without wide partitions the component is empty.
    pub fn finish(self) -> Result<Finished> {
        self.out.finish()
    }

    fn reset(&mut self) {
        self.trie.reset();
        self.block_count = 0;
        self.last_key.clear();
        self.last_separator.clear();
    }

    /// A key greater than the last clustering. It is cut after the first byte in which that differs from the last
    /// separator (and that can be raised), so that searches beyond the end stop early (`RowIndexWriter.nudge`).
    fn end_separator(&self) -> Vec<u8> {
        let shared = common_prefix(&self.last_key, &self.last_separator);
        let mut separator = Vec::with_capacity(shared + 1);
        separator.extend_from_slice(&self.last_key[..shared]);
        for byte in &self.last_key[shared..] {
            separator.push(byte.saturating_add(1));
            if *byte < 0xFF {
                break;
            }
        }
        separator
    }

    fn payload(&self, offset: u64, open: Option<DeletionTimeBytes>) -> Result<Payload> {
        match i64::try_from(offset).ok().filter(|offset| signed_size(*offset) < 8) {
            Some(offset) => Ok(Payload { offset, open }),
            None => Err(self.unsupported("a partition of more than 32 PiB".to_owned())),
        }
    }

    fn encode(&self, deletion: DeletionTime) -> Result<DeletionTimeBytes> {
        DeletionTimeBytes::new(deletion).ok_or_else(|| {
            let DeletionTime { timestamp_us, local_s } = deletion;
            self.unsupported(format!("a deletion with timestamp {timestamp_us} us at {local_s} s"))
        })
    }

    fn unsupported(&self, what: String) -> Error {
        Error::Unsupported { file: self.out.path().to_owned(), what }
    }
}

fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}
