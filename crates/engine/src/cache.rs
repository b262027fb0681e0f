//! The block cache: blocks of all SSTables, bounded by bytes, scan resistant.

use helenus_sstable::block::{Block, BlockCache};
use quick_cache::Weighter;
use quick_cache::sync::Cache;

/// Blocks by file number and block number.
pub struct SharedCache {
    blocks: Cache<(u64, u64), Block, Bytes>,
}

#[derive(Clone)]
struct Bytes;

/// What a block costs besides its bytes: its entry, its reference count, its allocation.
const OVERHEAD_BYTES: u64 = 96;

impl Weighter<(u64, u64), Block> for Bytes {
    fn weight(&self, _key: &(u64, u64), block: &Block) -> u64 {
        block.len() as u64 + OVERHEAD_BYTES
    }
}

impl SharedCache {
    /// A cache of at most `bytes`.
    pub fn new(bytes: u64) -> SharedCache {
        // The estimate only sizes the first tables, which grow; a small one keeps an idle server small.
        const ITEMS_ESTIMATE: usize = 256;
        SharedCache { blocks: Cache::with_weighter(ITEMS_ESTIMATE, bytes, Bytes) }
    }

    /// Bytes in use.
    pub fn bytes(&self) -> u64 {
        self.blocks.weight()
    }
}

impl BlockCache for SharedCache {
    fn get(&self, file: u64, block: u64) -> Option<Block> {
        self.blocks.get(&(file, block))
    }

    fn put(&self, file: u64, block: u64, bytes: Block) {
        self.blocks.insert((file, block), bytes);
    }

    fn forget(&self, files: &[u64]) {
        self.blocks.retain(|(file, _), _| !files.contains(file));
    }
}
