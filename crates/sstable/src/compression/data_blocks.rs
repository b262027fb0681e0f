//! Reads the blocks of a data file, compressed or not.

use super::blocks::CompressedBlocks;
use super::plain::PlainBlocks;
use crate::block::{BlockFile, ReadContext};
use crate::buffer::Block;
use crate::error::Result;
use helenus_model::schema::CompressionParams;
use std::collections::BTreeMap;
use std::ops::Range;

/// The range of a block for a read that may need all of it.
pub const WHOLE: Range<usize> = 0..usize::MAX;

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

    /// The parameters with which a file like this one is written.
    pub fn compression_params(&self) -> CompressionParams {
        match self {
            DataBlocks::Compressed(blocks) => blocks.info().params(),
            DataBlocks::Plain(_) => CompressionParams {
                class: None,
                chunk_bytes: self.block_bytes() as u32,
                max_compressed_bytes: i32::MAX as u32,
                options: BTreeMap::new(),
            },
        }
    }

    /// The block with this number, from the buffer pool or the file, at least up to the end of `wanted`, at whose start the
    /// caller begins to read it. Errors: `WouldBlock` if the read would wait and must not; `Corrupt` if a checksum or a
    /// length is wrong, or if there is no such block.
    pub fn block(&self, number: u64, wanted: Range<usize>, cx: &mut ReadContext) -> Result<Block> {
        match self {
            DataBlocks::Compressed(blocks) => blocks.block(number, wanted, cx),
            DataBlocks::Plain(blocks) => blocks.block(number, wanted.start, cx),
        }
    }

    /// Reports that the first `bytes` of a block were not enough.
    pub fn fell_short(&self, number: u64, bytes: usize) {
        match self {
            DataBlocks::Compressed(blocks) => blocks.fell_short(number, bytes),
            DataBlocks::Plain(_) => {}
        }
    }

    /// The file, for its path and errors. Errors about the content give positions in the uncompressed data.
    pub fn file(&self) -> &BlockFile {
        match self {
            DataBlocks::Compressed(blocks) => blocks.file(),
            DataBlocks::Plain(blocks) => blocks.file(),
        }
    }
}
