//! Reads a chunk of Data.db: from the buffer pool, or from the file with CRC check and decompression.
//!
//! If a read states how far it goes, only that much of the chunk is decompressed and kept (see `partial`).

use super::info::{CHUNK_CRC_BYTES, CompressionInfo};
use super::partial::PartialDecompression;
use crate::block::{BlockFile, ReadContext};
use crate::buffer::Block;
use crate::checksum::crc32;
use crate::error::Result;
use crate::stopwatch::Stage;
use std::cell::RefCell;
use std::ops::Range;

/// The largest buffer that is kept for the next read. Each thread has one.
const KEPT_BYTES_MAX: usize = 256 << 10;

thread_local! {
    // Memory for the stored bytes of one chunk. It is reused, so that a read allocates only the block that it returns.
    static STORED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A compressed data file. The buffer pool keeps decompressed chunks by their numbers.
pub struct CompressedBlocks {
    file: BlockFile,
    info: CompressionInfo,
    partial: PartialDecompression,
}

impl CompressedBlocks {
    /// Combines an open Data.db with its CompressionInfo.
    pub fn new(file: BlockFile, info: CompressionInfo) -> CompressedBlocks {
        let file = file.with_blocks(info.chunk_count());
        CompressedBlocks { file, info, partial: PartialDecompression::default() }
    }

    /// The file.
    pub fn file(&self) -> &BlockFile {
        &self.file
    }

    /// The chunks and how they are compressed.
    pub fn info(&self) -> &CompressionInfo {
        &self.info
    }

    /// See `DataBlocks::block`. `Corrupt` carries the chunk's offset in the file if its CRC or its length is wrong.
    pub fn block(&self, number: u64, wanted: Range<usize>, cx: &mut ReadContext) -> Result<Block> {
        let bytes = match self.file.find(number, wanted.start) {
            Some(block) if self.has(block.len(), number, wanted.end) => {
                cx.touched.blocks_cached += 1;
                cx.touched.block_bytes += block.len() as u64;
                return Ok(block);
            }
            Some(short) => {
                // A scan, which keeps no blocks, found the block here by chance.
                if cx.fill_cache {
                    self.partial.extent_too_short(short.len());
                }
                usize::MAX
            }
            None => wanted.end,
        };
        let block = STORED.with_borrow_mut(|stored| {
            let block = self.load(number, bytes, stored, cx);
            if stored.capacity() > KEPT_BYTES_MAX {
                *stored = Vec::new();
            }
            block
        })?;
        if cx.fill_cache {
            self.file.put(number, block.clone());
        }
        Ok(block)
    }

    /// See `DataBlocks::fell_short`. A block that is kept is counted when `block` finds it too short.
    pub(super) fn fell_short(&self, number: u64, bytes: usize) {
        if self.file.find(number, usize::MAX).is_none() {
            self.partial.extent_too_short(bytes);
        }
    }

    /// Whether the first `bytes` of a chunk include the `wanted` first bytes, or are the whole chunk.
    fn has(&self, bytes: usize, number: u64, wanted: usize) -> bool {
        bytes >= wanted.min(self.info.chunk_bytes as usize)
            || self.info.chunk(number).is_some_and(|chunk| bytes == chunk.data_bytes)
    }

    /// Reads a chunk from the file, checks it, and decompresses its first `wanted` bytes or all of it. `stored` is
    /// memory for its stored bytes.
    fn load(&self, number: u64, wanted: usize, stored: &mut Vec<u8>, cx: &mut ReadContext) -> Result<Block> {
        let Some(chunk) = self.info.chunk(number) else {
            let offset = number.saturating_mul(u64::from(self.info.chunk_bytes));
            return Err(self.file.corrupt(offset, format!("there is no chunk {number}")));
        };
        let with_crc = chunk.stored_bytes + CHUNK_CRC_BYTES as usize;
        if stored.len() < with_crc {
            stored.resize(with_crc, 0);
        }
        let stored = stored.get_mut(..with_crc).unwrap_or_default();
        self.file.read_into(chunk.offset, stored, cx)?;
        cx.touched.blocks_read += 1;
        let before = cx.enter(Stage::Decompress);
        let (content, crc) = stored.split_at(chunk.stored_bytes);
        if crc != crc32(content).to_be_bytes() {
            return Err(self.file.corrupt(chunk.offset, "the chunk's checksum does not match"));
        }
        let is_plain = self.info.is_stored_plain(chunk.stored_bytes);
        let has_front = !is_plain && self.info.compressor.decompresses_partially();
        let bytes = if has_front { self.partial.bytes(wanted, chunk.data_bytes) } else { chunk.data_bytes };
        let mut block = self.file.buffers().room(bytes);
        let out = &mut *block;
        if is_plain {
            let Some(plain) = content.get(..out.len()) else {
                return Err(self.file.corrupt(chunk.offset, "the chunk is shorter than its content"));
            };
            out.copy_from_slice(plain);
        } else {
            self.info
                .decompress_partial(content, chunk.data_bytes, out)
                .map_err(|source| self.file.corrupt(chunk.offset, source.to_string()))?;
            cx.touched.blocks_decompressed += 1;
            cx.touched.bytes_decompressed += out.len() as u64;
        }
        cx.touched.block_bytes += block.len() as u64;
        cx.leave(before);
        Ok(block.share())
    }
}
