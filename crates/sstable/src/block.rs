//! Reads the blocks of one file of an SSTable through the buffer pool, and counts them in the read's `ReadContext`.
//!
//! Index files are read in pages of 4 KiB, Data.db in compression chunks or in blocks of 16 KiB. `BlockFile::block`
//! looks in the pool; if the block is not there, it reads the file and checks the block's CRC where the file has one.
//! It returns `WouldBlock` if the block must come from the disk and the read may not wait.

use crate::buffer::{Block, BufferPool, FileBlocks};
use crate::error::{Error, Result};
use crate::read_ahead::ReadAhead;
use crate::stopwatch::{Stage, Stopwatch};
use helenus_host::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What one read may do, and counters of what it has touched. They are plain counters, whose cost cannot be measured;
/// the clock is read only if there is a stopwatch.
#[derive(Debug, Default)]
pub struct ReadContext {
    /// Whether the read may wait for the disk.
    pub may_block: bool,
    /// Whether blocks that are read are kept in the buffer pool (false for scans and compaction).
    pub fill_cache: bool,
    /// Counters for EXPLAIN ANALYZE, tracing and metrics.
    pub touched: Touched,
    /// Measures the stages of a read that is traced; `None` for all others, which read no clock.
    pub stopwatch: Option<Box<Stopwatch>>,
    /// For reads of whole tables that may wait: files are read in large pieces past the system's page cache.
    pub ahead: Option<ReadAhead>,
}

impl ReadContext {
    /// Enters a stage. Pass the result to `leave`, which returns to the stage before.
    #[inline]
    pub fn enter(&mut self, stage: Stage) -> Option<Stage> {
        self.stopwatch.as_mut().map(|watch| watch.switch(stage))
    }

    /// Returns to the stage that `enter` returned.
    #[inline]
    pub fn leave(&mut self, before: Option<Stage>) {
        if let (Some(watch), Some(before)) = (&mut self.stopwatch, before) {
            watch.switch(before);
        }
    }
}

/// Counters of what a read touched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Touched {
    /// Trie nodes visited in Partitions.db and Rows.db; entries and blocks read in Index.db.
    pub index_nodes: u64,
    /// Partitions found in the key cache or the row index cache, so that the partition index was not asked.
    pub keys_cached: u64,
    /// Index blocks of wide partitions found in the row index cache, without a walk through the trie.
    pub index_blocks_cached: u64,
    /// Pages of index components found in the buffer pool.
    pub index_pages_cached: u64,
    /// Pages of index components read from a file.
    pub index_pages_read: u64,
    /// Blocks of Data.db found in the buffer pool.
    pub blocks_cached: u64,
    /// Blocks of Data.db read from a file.
    pub blocks_read: u64,
    /// Bytes of the blocks of Data.db that were used, after decompression, from memory or a file.
    pub block_bytes: u64,
    /// Blocks of Data.db decompressed.
    pub blocks_decompressed: u64,
    /// Bytes read from index and data files.
    pub bytes_read: u64,
    /// Bytes that decompression produced.
    pub bytes_decompressed: u64,
    /// Rows decoded from SSTables, static rows included.
    pub rows_decoded: u64,
    /// Cells decoded from SSTables.
    pub cells_decoded: u64,
    /// Range-tombstone markers, row and cell tombstones decoded from SSTables.
    pub tombstones: u64,
}

impl Touched {
    /// Adds what another read touched.
    pub fn add(&mut self, other: &Touched) {
        self.index_nodes += other.index_nodes;
        self.keys_cached += other.keys_cached;
        self.index_blocks_cached += other.index_blocks_cached;
        self.index_pages_cached += other.index_pages_cached;
        self.index_pages_read += other.index_pages_read;
        self.blocks_cached += other.blocks_cached;
        self.blocks_read += other.blocks_read;
        self.block_bytes += other.block_bytes;
        self.blocks_decompressed += other.blocks_decompressed;
        self.bytes_read += other.bytes_read;
        self.bytes_decompressed += other.bytes_decompressed;
        self.rows_decoded += other.rows_decoded;
        self.cells_decoded += other.cells_decoded;
        self.tombstones += other.tombstones;
    }
}

/// CRC32 of each 4 KiB page of a component, from our page-checksum component. Files of other programs have none.
pub type PageChecksums = Arc<[u32]>;

/// Size of an index page, and the unit of page checksums.
pub const PAGE_BYTES: usize = 4096;

/// A component read in blocks of equal size (the last may be shorter).
pub struct BlockFile {
    file: Arc<dyn File>,
    path: PathBuf,
    size: u64,
    block_bytes: usize,
    checksums: Option<PageChecksums>,
    blocks: FileBlocks,
}

impl BlockFile {
    /// Wraps an open file. `block_bytes` must be a multiple of `PAGE_BYTES` if there are checksums.
    pub fn new(
        file: Arc<dyn File>,
        path: &Path,
        block_bytes: usize,
        checksums: Option<PageChecksums>,
        buffers: BufferPool,
    ) -> Result<BlockFile> {
        let size = file.size().map_err(|source| Error::Io { file: path.to_owned(), source })?;
        let blocks = FileBlocks::new(buffers, size.div_ceil(block_bytes.max(1) as u64));
        Ok(BlockFile { file, path: path.to_owned(), size, block_bytes, checksums, blocks })
    }

    /// The same file with `count` blocks of another size than `block_bytes`.
    pub(crate) fn with_blocks(self, count: u64) -> BlockFile {
        BlockFile { blocks: self.blocks.with_count(count), ..self }
    }

    /// The component's path, for errors.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Length of the component in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Size of a block in bytes.
    pub fn block_bytes(&self) -> usize {
        self.block_bytes
    }

    /// An error that names this component.
    pub fn corrupt(&self, offset: u64, problem: impl Into<String>) -> Error {
        Error::Corrupt { file: self.path.clone(), offset, problem: problem.into() }
    }

    /// The index page with this number. (`compression` reads Data.db, with its own counters.)
    pub fn block(&self, number: u64, cx: &mut ReadContext) -> Result<Block> {
        if let Some(block) = self.find(number, usize::MAX) {
            cx.touched.index_pages_cached += 1;
            return Ok(block);
        }
        let offset = number.saturating_mul(self.block_bytes as u64);
        if offset >= self.size {
            return Err(self.corrupt(offset, "a position beyond the end of the file"));
        }
        let len = self.block_bytes.min((self.size - offset) as usize);
        let block = self.read(offset, len, cx)?;
        cx.touched.index_pages_read += 1;
        self.check_pages(offset, &block)?;
        if cx.fill_cache {
            self.put(number, block.clone());
        }
        Ok(block)
    }

    /// The block with this number, if it is in memory. `from` is the byte at which the caller will begin to read it
    /// (`usize::MAX` if unknown).
    #[inline]
    pub(crate) fn find(&self, number: u64, from: usize) -> Option<Block> {
        self.blocks.find(number, from)
    }

    /// Keeps a block in memory, which must not change any more.
    pub(crate) fn put(&self, number: u64, block: Block) {
        self.blocks.put(number, block);
    }

    /// Reads bytes past the buffer pool, for chunks that are kept after decompression.
    pub fn read(&self, offset: u64, len: usize, cx: &mut ReadContext) -> Result<Block> {
        let mut block = self.buffers().room(len);
        self.read_into(offset, &mut block, cx)?;
        Ok(block.share())
    }

    /// Fills `bytes` from `offset`, past the buffer pool and without page checks.
    pub fn read_into(&self, offset: u64, bytes: &mut [u8], cx: &mut ReadContext) -> Result<()> {
        let io = |source| Error::Io { file: self.path.clone(), source };
        if offset.checked_add(bytes.len() as u64).is_none_or(|end| end > self.size) {
            return Err(
                self.corrupt(offset, format!("{} bytes do not fit before the end of the file", bytes.len()))
            );
        }
        let before = cx.enter(Stage::Disk);
        if let Some(ahead) = &mut cx.ahead {
            ahead.read((&self.file, self.size), offset, bytes).map_err(io)?;
        } else if cx.may_block {
            self.file.read_exact_at(bytes, offset).map_err(io)?;
        } else if !self.file.try_read_exact_at(bytes, offset).map_err(io)? {
            return Err(Error::WouldBlock);
        }
        cx.leave(before);
        cx.touched.bytes_read += bytes.len() as u64;
        Ok(())
    }

    /// The pool of this file's blocks.
    pub fn buffers(&self) -> &BufferPool {
        self.blocks.pool()
    }

    fn check_pages(&self, offset: u64, block: &[u8]) -> Result<()> {
        let Some(checksums) = &self.checksums else { return Ok(()) };
        let first = (offset / PAGE_BYTES as u64) as usize;
        for (index, page) in block.chunks(PAGE_BYTES).enumerate() {
            let expected = checksums.get(first + index).copied();
            let found = crate::checksum::crc32(page);
            if expected != Some(found) {
                let at = offset + (index * PAGE_BYTES) as u64;
                return Err(self.corrupt(at, "the page's checksum does not match"));
            }
        }
        Ok(())
    }
}
