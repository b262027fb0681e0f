//! Reads Data.db chunk by chunk: the cache, else the file, the CRC, the decompression.

use super::info::{CHUNK_CRC_BYTES, CompressionInfo};
use crate::block::{Block, BlockFile, ReadContext};
use crate::checksum::crc32;
use crate::error::Result;
use crate::stopwatch::Stage;
use std::cell::RefCell;
use std::sync::Arc;

thread_local! {
    // The stored bytes of one chunk; reused, so that a read allocates only the block it returns.
    static STORED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A compressed data file. The cache holds decompressed chunks under the file's number and the chunk's.
pub struct CompressedBlocks {
    file: BlockFile,
    info: CompressionInfo,
}

impl CompressedBlocks {
    /// Puts an open Data.db and its CompressionInfo together.
    pub fn new(file: BlockFile, info: CompressionInfo) -> CompressedBlocks {
        CompressedBlocks { file, info }
    }

    /// The file.
    pub fn file(&self) -> &BlockFile {
        &self.file
    }

    /// Its chunks.
    pub fn info(&self) -> &CompressionInfo {
        &self.info
    }

    /// The decompressed chunk with this number. `WouldBlock` when it is not in memory and the read may not wait;
    /// `Corrupt` with the chunk's place when its CRC or its length is wrong.
    pub fn block(&self, number: u64, cx: &mut ReadContext) -> Result<Block> {
        let cache = self.file.cache();
        if let Some(block) = cache.get(self.file.number(), number) {
            cx.touched.blocks_cached += 1;
            cx.touched.block_bytes += block.len() as u64;
            return Ok(block);
        }
        let block = STORED.with_borrow_mut(|stored| self.load(number, stored, cx))?;
        if cx.fill_cache {
            cache.put(self.file.number(), number, block.clone());
        }
        Ok(block)
    }

    fn load(&self, number: u64, stored: &mut Vec<u8>, cx: &mut ReadContext) -> Result<Block> {
        let Some(chunk) = self.info.chunk(number) else {
            let offset = number.saturating_mul(u64::from(self.info.chunk_bytes));
            return Err(self.file.corrupt(offset, format!("there is no chunk {number}")));
        };
        let with_crc = chunk.stored_bytes + CHUNK_CRC_BYTES as usize;
        if stored.len() < with_crc {
            stored.resize(with_crc, 0);
        }
        let buffer = stored.get_mut(..with_crc).unwrap_or_default();
        self.file.read_into(chunk.offset, buffer, cx)?;
        cx.touched.blocks_read += 1;
        let before = cx.enter(Stage::Decompress);
        let (content, crc) = buffer.split_at(chunk.stored_bytes);
        if crc != crc32(content).to_be_bytes() {
            return Err(self.file.corrupt(chunk.offset, "the chunk's checksum does not match"));
        }
        let mut block: Block = std::iter::repeat_n(0, chunk.data_bytes).collect();
        let Some(out) = Arc::get_mut(&mut block) else { return Ok(block) };
        if self.info.is_stored_plain(chunk.stored_bytes) {
            let Some(plain) = content.get(..out.len()) else {
                return Err(self.file.corrupt(chunk.offset, "the chunk is shorter than its content"));
            };
            out.copy_from_slice(plain);
        } else {
            self.info
                .compressor
                .decompress(content, out)
                .map_err(|source| self.file.corrupt(chunk.offset, source.to_string()))?;
            cx.touched.blocks_decompressed += 1;
            cx.touched.bytes_decompressed += out.len() as u64;
        }
        cx.touched.block_bytes += block.len() as u64;
        cx.leave(before);
        Ok(block)
    }
}
