//! Reads and writes an uncompressed Data.db in blocks, which CRC.db has checksums of.
//!
//! CRC.db (Cassandra's `ChecksumWriter`, big endian): block length (i32), then the CRC32 of every block. We write
//! blocks of 16 KiB, and read blocks of the length that the file states.

use crate::block::{BlockFile, ReadContext};
use crate::buffer::Block;
use crate::checksum::{Crc32, crc32};
use crate::error::{Error, Result};
use crate::sequential_writer::SequentialWriter;
use crate::stopwatch::Stage;
use std::path::Path;

/// Size of a block in bytes, in files written here.
pub const PLAIN_BLOCK_BYTES: usize = 16 * 1024;

/// The largest block length accepted from a CRC.db.
const BLOCK_BYTES_MAX: u32 = 16 << 20;

/// CRC32 of no bytes.
const CRC_OF_NOTHING: u32 = 0;

/// Content of CRC.db.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockCrcs {
    /// Size of a block in bytes; the last may be shorter.
    pub block_bytes: usize,
    /// CRC32 of each block.
    pub crcs: Vec<u32>,
}

impl BlockCrcs {
    /// The component's bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(4 + self.crcs.len() * 4);
        out.extend_from_slice(&(self.block_bytes as u32).to_be_bytes());
        self.crcs.iter().for_each(|crc| out.extend_from_slice(&crc.to_be_bytes()));
        out
    }

    /// Parses the component for a Data.db of `data_length` bytes. Errors: `Corrupt`, which names `file`.
    pub fn parse(bytes: &[u8], data_length: u64, file: &Path) -> Result<BlockCrcs> {
        let corrupt = |problem: String| Error::Corrupt { file: file.to_owned(), offset: 0, problem };
        let (words, rest) = bytes.as_chunks::<4>();
        let mut words = words.iter().map(|word| u32::from_be_bytes(*word));
        let block_bytes = words.next().filter(|len| (1..=BLOCK_BYTES_MAX).contains(len));
        let block_bytes = block_bytes.ok_or_else(|| corrupt("no block length".into()))?;
        let crcs: Vec<u32> = words.collect();
        // There may be one more block, an empty one, as in compressed files.
        let blocks = usize::try_from(data_length.div_ceil(u64::from(block_bytes))).unwrap_or(usize::MAX);
        let fits = matches!(crcs.get(blocks..), Some([] | [CRC_OF_NOTHING]));
        if !rest.is_empty() || !fits {
            return Err(corrupt(format!("{} checksums for {data_length} bytes of data", crcs.len())));
        }
        Ok(BlockCrcs { block_bytes: block_bytes as usize, crcs })
    }
}

/// An uncompressed data file, read in blocks.
pub struct PlainBlocks {
    file: BlockFile,
    crcs: Option<BlockCrcs>,
}

impl PlainBlocks {
    /// Combines an open Data.db with its CRC.db. Without CRC.db nothing is checked.
    pub fn new(file: BlockFile, crcs: Option<BlockCrcs>) -> PlainBlocks {
        let block_bytes = crcs.as_ref().map_or(PLAIN_BLOCK_BYTES, |crcs| crcs.block_bytes);
        let count = file.size().div_ceil(block_bytes.max(1) as u64);
        PlainBlocks { file: file.with_blocks(count), crcs }
    }

    /// The file.
    pub fn file(&self) -> &BlockFile {
        &self.file
    }

    /// Whether there is a CRC.db.
    pub(crate) fn is_checksummed(&self) -> bool {
        self.crcs.is_some()
    }

    /// Size of a block in bytes.
    pub fn block_bytes(&self) -> usize {
        self.crcs.as_ref().map_or(PLAIN_BLOCK_BYTES, |crcs| crcs.block_bytes)
    }

    /// The block with this number. `from` is the byte at which the caller will begin to read it. Errors as for
    /// `DataBlocks::block`.
    pub fn block(&self, number: u64, from: usize, cx: &mut ReadContext) -> Result<Block> {
        if let Some(block) = self.file.find(number, from) {
            cx.touched.blocks_cached += 1;
            cx.touched.block_bytes += block.len() as u64;
            return Ok(block);
        }
        let offset = number.saturating_mul(self.block_bytes() as u64);
        let Some(left) = self.file.size().checked_sub(offset).filter(|left| *left > 0) else {
            return Err(self.file.corrupt(offset, "a position beyond the end of the file"));
        };
        let block = self.file.read(offset, left.min(self.block_bytes() as u64) as usize, cx)?;
        cx.touched.blocks_read += 1;
        cx.touched.block_bytes += block.len() as u64;
        let before = cx.enter(Stage::Decompress);
        if let Some(crcs) = &self.crcs {
            let expected = usize::try_from(number).ok().and_then(|number| crcs.crcs.get(number));
            if expected != Some(&crc32(&block)) {
                return Err(self.file.corrupt(offset, "the block's checksum does not match"));
            }
        }
        cx.leave(before);
        if cx.fill_cache {
            self.file.put(number, block.clone());
        }
        Ok(block)
    }
}

/// Writes an uncompressed data file and collects the checksums for CRC.db.
pub struct PlainWriter {
    out: SequentialWriter,
    crcs: BlockCrcs,
    block_crc: Crc32,
    block_len: usize,
}

/// What the other components of the table hold about a finished uncompressed file.
#[derive(Clone, Debug)]
pub struct PlainFile {
    /// Content of CRC.db.
    pub crcs: BlockCrcs,
    /// Content of Digest.crc32: CRC32 of every byte of Data.db.
    pub digest: u32,
    /// Size of Data.db in bytes.
    pub size: u64,
}

impl PlainWriter {
    /// Writes from the start of a file.
    pub fn new(out: SequentialWriter) -> PlainWriter {
        let crcs = BlockCrcs { block_bytes: PLAIN_BLOCK_BYTES, crcs: Vec::new() };
        PlainWriter { out, crcs, block_crc: Crc32::default(), block_len: 0 }
    }

    /// Bytes written so far.
    pub fn position(&self) -> u64 {
        self.out.position()
    }

    /// Appends bytes.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(PLAIN_BLOCK_BYTES - self.block_len));
            self.block_crc.update(now);
            self.block_len += now.len();
            rest = later;
            if self.block_len == PLAIN_BLOCK_BYTES {
                self.end_block();
            }
        }
        self.out.write(bytes)
    }

    /// Ends the last block and makes the file durable.
    pub fn finish(mut self) -> Result<PlainFile> {
        if self.block_len > 0 {
            self.end_block();
        }
        let finished = self.out.finish()?;
        Ok(PlainFile { crcs: self.crcs, digest: finished.crc32, size: finished.size })
    }

    fn end_block(&mut self) {
        self.crcs.crcs.push(std::mem::take(&mut self.block_crc).value());
        self.block_len = 0;
    }
}
