//! Reads the blocks of a data file, compressed or not.

use super::blocks::CompressedBlocks;
use super::plain::PlainBlocks;
use crate::block::{Block, BlockFile, ReadContext};
use crate::error::Result;
use std::ops::Range;

/// The read extent of a read that may go through the whole file.
pub const EVERYTHING: Range<u64> = 0..u64::MAX;

/// A data file as its reader sees it: `data_length` bytes in blocks of `block_bytes`. The last block may be shorter.
pub enum DataBlocks {
    /// Compressed chunks.
    Compressed(CompressedBlocks),
    /// Blocks of an uncompressed file.
    Plain(PlainBlocks),
}

impl DataBlocks {
    /// Size of a block in bytes, before compression.
    pub fn block_bytes(&self) -> usize {
        match self {
            DataBlocks::Compressed(blocks) => blocks.info().chunk_bytes as usize,
            DataBlocks::Plain(blocks) => blocks.block_bytes(),
        }
    }

    /// Size of the data in bytes, before compression.
    pub fn data_length(&self) -> u64 {
        match self {
            DataBlocks::Compressed(blocks) => blocks.info().data_length,
            DataBlocks::Plain(blocks) => blocks.file().size(),
        }
    }

    /// The block that holds `position`, from the cache or the file, and the position at which it begins. It may be only
    /// a part of the block, which covers the part of the read extent `foreseen` that lies in the block. Errors:
    /// `WouldBlock` if the read would wait and must not; `Corrupt` if a checksum or a length is wrong, or if there is
    /// no such block.
    pub fn block(&self, position: u64, foreseen: &Range<u64>, cx: &mut ReadContext) -> Result<(Block, u64)> {
        match self {
            DataBlocks::Compressed(blocks) => blocks.block(position, foreseen, cx),
            DataBlocks::Plain(blocks) => {
                let block_bytes = blocks.block_bytes() as u64;
                let (number, from) = (position / block_bytes, position % block_bytes);
                Ok((blocks.block(number, from as usize, cx)?, position - from))
            }
        }
    }

    /// Reports that a read extent was too short: the first `bytes` of a block were not enough. `in_same_read` is true
    /// if the same read needs more, false if another read does. A part of a chunk was useless only if the same read
    /// needs more; a front (a part from the chunk's start) in both cases.
    pub fn fell_short(&self, number: u64, bytes: usize, in_same_read: bool) {
        match self {
            DataBlocks::Compressed(blocks) => blocks.fell_short(number, bytes, in_same_read),
            DataBlocks::Plain(_) => {}
        }
    }

    /// The file, for its path, number and errors. Errors about the content give positions in the uncompressed data.
    pub fn file(&self) -> &BlockFile {
        match self {
            DataBlocks::Compressed(blocks) => blocks.file(),
            DataBlocks::Plain(blocks) => blocks.file(),
        }
    }
}
