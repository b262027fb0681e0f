//! The blocks of a data file, whether compressed or not.

use super::blocks::CompressedBlocks;
use super::plain::PlainBlocks;
use crate::block::{Block, BlockFile, ReadContext};
use crate::error::Result;
use std::ops::Range;

/// The whole of a file is foreseen.
pub const EVERYTHING: Range<u64> = 0..u64::MAX;

/// A data file as its reader sees it: `data_length` bytes in blocks of `block_bytes`, the last one shorter.
pub enum DataBlocks {
    /// Compressed chunks.
    Compressed(CompressedBlocks),
    /// Blocks of an uncompressed file.
    Plain(PlainBlocks),
}

impl DataBlocks {
    /// Bytes of a block.
    pub fn block_bytes(&self) -> usize {
        match self {
            DataBlocks::Compressed(blocks) => blocks.info().chunk_bytes as usize,
            DataBlocks::Plain(blocks) => blocks.block_bytes(),
        }
    }

    /// Bytes of the data, before compression.
    pub fn data_length(&self) -> u64 {
        match self {
            DataBlocks::Compressed(blocks) => blocks.info().data_length,
            DataBlocks::Plain(blocks) => blocks.file().size(),
        }
    }

    /// The block that holds a position, from the cache or the file, or a part of it that has all that is `foreseen` of it; with where in
    /// the data it begins. `WouldBlock` when the read may not wait and would, `Corrupt` when a checksum or a length is wrong or there is no such block.
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

    /// Tells that the first `bytes` of a block, which were asked for as all that is wanted of it, did not do.
    /// In the same read, or where another begins: a part of a chunk was no use then only in the first case, a front in both.
    pub fn fell_short(&self, number: u64, bytes: usize, in_same_read: bool) {
        match self {
            DataBlocks::Compressed(blocks) => blocks.fell_short(number, bytes, in_same_read),
            DataBlocks::Plain(_) => {}
        }
    }

    /// The file, for its path, number and errors. Offsets of errors about content are positions in the data.
    pub fn file(&self) -> &BlockFile {
        match self {
            DataBlocks::Compressed(blocks) => blocks.file(),
            DataBlocks::Plain(blocks) => blocks.file(),
        }
    }
}
