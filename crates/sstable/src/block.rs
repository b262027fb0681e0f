//! Reads the blocks of one file of an SSTable through the block cache, and counts them in the read's `ReadContext`.
//!
//! Index files are read in pages of 4 KiB, Data.db in compression chunks or in blocks of 16 KiB. `BlockFile::block`
//! looks in the cache; if the block is not there, it reads the file and checks the block's CRC where the file has one.
//! It returns `WouldBlock` if the block must come from the disk and the read may not wait.

use crate::block_hints::BlockHints;
use crate::error::{Error, Result};
use crate::read_ahead::ReadAhead;
use crate::stopwatch::{Stage, Stopwatch};
use helenus_host::{BlockMut, BlockPool, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use helenus_host::Block;

/// A cache for the blocks of many files. The engine implements it, with a bound.
pub trait BlockCache: Send + Sync {
    /// The block, if it is cached. `file` is a number unique in the process, `block` counts from 0.
    fn get(&self, file: u64, block: u64) -> Option<Block>;
    /// Caches a block, and drops others if necessary. Scans do not call it.
    fn put(&self, file: u64, block: u64, bytes: Block);
    /// Memory for a block of this many bytes, with unspecified content.
    fn room(&self, bytes: usize) -> BlockMut {
        BlockMut::unpooled(bytes)
    }
    /// The pool from which `room` takes memory, if cached blocks may also be found by hints (`block_hints`). Such hits
    /// are counted by `Block::take_found`, not by `get`.
    fn pool(&self) -> Option<&BlockPool> {
        None
    }
    /// Drops the blocks of files that are no longer read.
    fn forget(&self, _files: &[u64]) {}
    /// Reserves memory, in bytes, for a table's other caches; `false` if there is none left.
    fn reserve(&self, _beside: ReservedFor, _bytes: u64) -> bool {
        false
    }
    /// Releases memory that was reserved.
    fn release(&self, _beside: ReservedFor, _bytes: u64) {}
}

/// The caches of a table besides the block cache. Each has its own bound, so that none displaces another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReservedFor {
    /// The key cache: positions of partitions.
    Places,
    /// The row index cache.
    RowIndexes,
}

/// What one read may do, and counters of what it has touched. They are plain counters, whose cost cannot be measured;
/// the clock is read only if there is a stopwatch.
#[derive(Debug, Default)]
pub struct ReadContext {
    /// Whether the read may wait for the disk.
    pub may_block: bool,
    /// Whether blocks that are read go into the cache (false for scans and compaction).
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
    /// Partitions found in the key cache or the row index cache, so that neither filter nor partition index was asked.
    pub keys_cached: u64,
    /// Index blocks of wide partitions found in the row index cache, without a walk through the trie.
    pub index_blocks_cached: u64,
    /// Pages of index components found in the cache.
    pub index_pages_cached: u64,
    /// Pages of index components read from a file.
    pub index_pages_read: u64,
    /// Blocks of Data.db found in the cache.
    pub blocks_cached: u64,
    /// Blocks of Data.db read from a file.
    pub blocks_read: u64,
    /// Bytes of the blocks of Data.db that were used, after decompression, from the cache or a file.
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
    number: u64,
    size: u64,
    block_bytes: usize,
    checksums: Option<PageChecksums>,
    cache: Arc<dyn BlockCache>,
    hints: BlockHints,
}

impl BlockFile {
    /// Wraps an open file. `number` is unique in the process. `block_bytes` must be a multiple of `PAGE_BYTES` if there
    /// are checksums.
    pub fn new(
        file: Arc<dyn File>,
        path: &Path,
        (number, block_bytes): (u64, usize),
        checksums: Option<PageChecksums>,
        cache: Arc<dyn BlockCache>,
    ) -> Result<BlockFile> {
        let size = file.size().map_err(|source| Error::Io { file: path.to_owned(), source })?;
        let hints = BlockHints::new(cache.pool().cloned(), number, size.div_ceil(block_bytes.max(1) as u64));
        Ok(BlockFile { file, path: path.to_owned(), number, size, block_bytes, checksums, cache, hints })
    }

    /// The same file with `count` blocks of another size than `block_bytes`.
    pub(crate) fn with_blocks(self, count: u64) -> BlockFile {
        BlockFile { hints: self.hints.for_blocks(count), ..self }
    }

    /// The component's path, for errors.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Length of the component in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The number that identifies the file in the cache.
    pub fn number(&self) -> u64 {
        self.number
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
        if let Some(block) = self.kept(number, usize::MAX) {
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
            self.keep(number, block.clone());
        }
        Ok(block)
    }

    /// The block with this number, if it is in memory. `from` is the byte at which the caller will begin to read it
    /// (`usize::MAX` if unknown).
    #[inline]
    pub(crate) fn kept(&self, number: u64, from: usize) -> Option<Block> {
        // The first read after `keep` asks the cache, which so counts it and gives a hint for the reads after it.
        self.hints.find(number, from).or_else(|| self.kept_by_cache(number))
    }

    /// As `kept`, but without hints: the block of a hint may have been replaced by a longer front, and be kept alive by
    /// other readers.
    pub(crate) fn kept_by_cache(&self, number: u64) -> Option<Block> {
        let block = self.cache.get(self.number, number)?;
        self.hints.set_hint(number, &block);
        Some(block)
    }

    /// Caches a block, which must not change any more.
    pub(crate) fn keep(&self, number: u64, block: Block) {
        self.hints.set_name(number, &block);
        self.cache.put(self.number, number, block);
    }

    /// Reads bytes without the cache, for chunks that are cached after decompression.
    pub fn read(&self, offset: u64, len: usize, cx: &mut ReadContext) -> Result<Block> {
        let mut block = self.cache.room(len);
        self.read_into(offset, &mut block, cx)?;
        Ok(block.share())
    }

    /// Fills `bytes` from `offset`, without the cache and without page checks.
    pub fn read_into(&self, offset: u64, bytes: &mut [u8], cx: &mut ReadContext) -> Result<()> {
        let io = |source| Error::Io { file: self.path.clone(), source };
        if offset.checked_add(bytes.len() as u64).is_none_or(|end| end > self.size) {
            return Err(
                self.corrupt(offset, format!("{} bytes do not fit before the end of the file", bytes.len()))
            );
        }
        let before = cx.enter(Stage::Disk);
        if let Some(ahead) = &mut cx.ahead {
            ahead.read((&*self.file, self.number, self.size), offset, bytes).map_err(io)?;
        } else if cx.may_block {
            self.file.read_exact_at(bytes, offset).map_err(io)?;
        } else if !self.file.try_read_exact_at(bytes, offset).map_err(io)? {
            return Err(Error::WouldBlock);
        }
        cx.leave(before);
        cx.touched.bytes_read += bytes.len() as u64;
        Ok(())
    }

    /// The cache of this file's blocks.
    pub fn cache(&self) -> &Arc<dyn BlockCache> {
        &self.cache
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

/// A cache that keeps nothing.
pub struct NoCache;

impl BlockCache for NoCache {
    fn get(&self, _file: u64, _block: u64) -> Option<Block> {
        None
    }
    fn put(&self, _file: u64, _block: u64, _bytes: Block) {}
}
