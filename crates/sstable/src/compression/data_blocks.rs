//! The blocks of a data file, whether compressed or not.

use super::blocks::CompressedBlocks;
use super::plain::PlainBlocks;
use crate::block::{Block, BlockFile, ReadContext};
use crate::error::Result;
use std::ops::Range;

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

    /// The block with this number, from the cache or the file, which is read from where `wanted` begins: at least up
    /// to where that ends (`usize::MAX` for all of it). `WouldBlock` when the read may not wait and would, `Corrupt` when a checksum or a length is wrong or there is no such block.
    pub fn block(&self, number: u64, wanted: Range<usize>, cx: &mut ReadContext) -> Result<Block> {
        match self {
            DataBlocks::Compressed(blocks) => blocks.block(number, wanted, cx),
            DataBlocks::Plain(blocks) => blocks.block(number, wanted.start, cx),
        }
    }

    /// Tells that the first `bytes` of a block, which were asked for as all that is wanted of it, did not do.
    pub fn fell_short(&self, number: u64, bytes: usize) {
        match self {
            DataBlocks::Compressed(blocks) => blocks.fell_short(number, bytes),
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
