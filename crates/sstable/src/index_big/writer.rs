//! Writes Index.db, one partition after another, and builds its summary.
//!
//! An entry contains its size before its blocks, so a partition's blocks are kept in memory until it ends: about forty
//! bytes for each `column_index_size` (64 KiB) of rows, as in Cassandra.

#![deny(clippy::indexing_slicing)]

use super::promoted::WIDTH_BASE;
use super::summary::SummaryBuilder;
use crate::deletion_time::DeletionTimeForm;
use crate::error::{Error, Result};
use crate::sequential_writer::{Finished, SequentialWriter};
use crate::version::Version;
use helenus_model::deletion::DeletionTime;
use helenus_model::vint::{unsigned_length, write_signed, write_unsigned};

/// What `finish_partition` stores about a partition.
#[derive(Clone, Copy, Debug)]
pub struct BigPartitionEnd<'a> {
    /// The serialised partition key.
    pub key: &'a [u8],
    /// The position in Data.db at which the partition begins (in bytes before compression).
    pub data_position: u64,
    /// Number of bytes before its first row or marker: key, deletion, static row.
    pub head_bytes: u64,
    /// The partition's deletion.
    pub deletion: DeletionTime,
}

/// A block of the current partition.
#[derive(Clone, Copy, Debug)]
pub struct BigBlock<'a> {
    /// Stored clustering position of its first row or marker.
    pub first: &'a [u8],
    /// Stored clustering position of its last row or marker.
    pub last: &'a [u8],
    /// Its offset from the partition's start.
    pub offset: u64,
    /// Its size in bytes. A last block that is not full includes the end-of-partition byte.
    pub width: u64,
    /// The range deletion that is open at its end.
    pub open_behind: Option<DeletionTime>,
}

/// Writes Index.db.
pub struct BigIndexWriter {
    out: SequentialWriter,
    form: DeletionTimeForm,
    summary: SummaryBuilder,
    blocks: Vec<u8>,
    offsets: Vec<u32>,
    entry: Vec<u8>,
}

impl BigIndexWriter {
    /// Writes into an empty component, for a table with this `min_index_interval`.
    pub fn new(out: SequentialWriter, version: Version, min_index_interval: u32) -> BigIndexWriter {
        BigIndexWriter {
            out,
            form: DeletionTimeForm::of(version),
            summary: SummaryBuilder::new(min_index_interval),
            blocks: Vec::new(),
            offsets: Vec::new(),
            entry: Vec::new(),
        }
    }

    /// Adds the next block of the current partition.
    pub fn add_block(&mut self, block: &BigBlock<'_>) -> Result<()> {
        let offset = u32::try_from(self.blocks.len()).ok().filter(|offset| *offset <= i32::MAX as u32);
        let Some(offset) = offset else {
            return Err(self.unsupported("a partition whose index would have more than 2 GiB".to_owned()));
        };
        self.offsets.push(offset);
        self.blocks.extend_from_slice(block.first);
        self.blocks.extend_from_slice(block.last);
        write_unsigned(block.offset, &mut self.blocks);
        write_signed(block.width as i64 - WIDTH_BASE, &mut self.blocks);
        let open = block.open_behind.filter(|open| !open.is_live());
        self.blocks.push(u8::from(open.is_some()));
        if let Some(open) = open {
            let open = self.encode(open)?;
            self.blocks.extend_from_slice(open.as_slice());
        }
        Ok(())
    }

    /// Writes the entry of the current partition. It has a promoted index if it has at least two blocks.
    pub fn finish_partition(&mut self, end: &BigPartitionEnd<'_>) -> Result<()> {
        let len = u16::try_from(end.key.len()).map_err(|_| {
            self.unsupported(format!("a partition key of {} bytes; the longest is 65535", end.key.len()))
        })?;
        self.summary.add(end.key, self.out.position());
        self.entry.clear();
        self.entry.extend_from_slice(&len.to_be_bytes());
        self.entry.extend_from_slice(end.key);
        write_unsigned(end.data_position, &mut self.entry);
        if self.offsets.len() < 2 {
            write_unsigned(0, &mut self.entry);
        } else {
            let deletion = self.encode(end.deletion)?;
            let head = unsigned_length(end.head_bytes)
                + deletion.as_slice().len()
                + unsigned_length(self.offsets.len() as u64);
            let size = head + self.blocks.len() + 4 * self.offsets.len();
            if size > i32::MAX as usize {
                return Err(self.unsupported("a partition whose index would have more than 2 GiB".to_owned()));
            }
            write_unsigned(size as u64, &mut self.entry);
            write_unsigned(end.head_bytes, &mut self.entry);
            self.entry.extend_from_slice(deletion.as_slice());
            write_unsigned(self.offsets.len() as u64, &mut self.entry);
            self.entry.extend_from_slice(&self.blocks);
            for offset in &self.offsets {
                self.entry.extend_from_slice(&offset.to_be_bytes());
            }
        }
        self.blocks.clear();
        self.offsets.clear();
        self.out.write(&self.entry)
    }

    /// Writes the rest and syncs. Returns size and checksums of Index.db, and the bytes of Summary.db.
    pub fn finish(self, first_key: &[u8], last_key: &[u8]) -> Result<(Finished, Vec<u8>)> {
        Ok((self.out.finish()?, self.summary.finish(first_key, last_key)))
    }

    /// Whether this version can store a range deletion that is open at the end of a block.
    pub fn has_form(&self, open: DeletionTime) -> bool {
        self.form.encode(open).is_some()
    }

    fn encode(&self, deletion: DeletionTime) -> Result<crate::deletion_time::DeletionTimeBytes> {
        self.form.encode(deletion).ok_or_else(|| {
            let DeletionTime { timestamp_us, local_s } = deletion;
            self.unsupported(format!("a deletion with timestamp {timestamp_us} us at {local_s} s"))
        })
    }

    fn unsupported(&self, what: String) -> Error {
        Error::Unsupported { file: self.out.path().to_owned(), what }
    }
}
