//! The buffer pool: the blocks of open files that are kept in memory, and the one way to find them.
//!
//! Each open file has a table of its blocks (`file_blocks`): a slot per block, with the number of the frame that holds
//! it. A read takes the number from the slot and pins the frame (`frames`), without a lock and without a search. If the
//! slot is empty, the caller reads the file into memory from `room` and puts the block into its slot. `eviction` keeps
//! the frames within the pool's bytes.
//!
//! The key cache and the row index cache of the tables have shares of the pool's bytes (`budget`).

mod budget;
mod eviction;
mod file_blocks;
mod frames;
mod key_cache;

pub(crate) use budget::Reserved;
pub use budget::{Budget, Share};
pub(crate) use file_blocks::FileBlocks;
pub use frames::{Block, BlockMut, FrameNumber, FramePool};
pub(crate) use key_cache::KeyCache;

use eviction::Eviction;
use std::sync::Arc;

/// Bytes of a pool for callers that open a few tables and read them once: offline tools, and the check of an import.
const OFFLINE_BYTES: u64 = 16 << 20;

/// The buffer pool of many files. Cloning shares it.
#[derive(Clone)]
pub struct BufferPool(Arc<Inner>);

struct Inner {
    frames: FramePool,
    eviction: Eviction,
    budget: Arc<Budget>,
}

impl BufferPool {
    /// A pool that keeps at most `bytes` bytes of blocks, keys and row indexes. With 0 it keeps nothing.
    pub fn new(bytes: u64) -> BufferPool {
        let (budget, left) = Budget::of(bytes);
        let (frames, eviction) = (FramePool::new(), Eviction::new(left));
        BufferPool(Arc::new(Inner { frames, eviction, budget: Arc::new(budget) }))
    }

    /// A pool that keeps nothing: each read goes to the file.
    pub fn none() -> BufferPool {
        BufferPool::new(0)
    }

    /// A small pool, for tools that open a few tables and read them once.
    pub fn offline() -> BufferPool {
        BufferPool::new(OFFLINE_BYTES)
    }

    /// Memory for a block of this many bytes, with unspecified content.
    pub fn room(&self, bytes: usize) -> BlockMut {
        self.0.frames.take(bytes)
    }

    /// The number of blocks that are kept.
    pub fn blocks(&self) -> u64 {
        self.0.eviction.blocks()
    }

    /// Bytes of the blocks that are kept.
    pub fn bytes(&self) -> u64 {
        self.0.eviction.bytes()
    }

    /// The shares of the key caches and row index caches.
    pub fn budget(&self) -> &Arc<Budget> {
        &self.0.budget
    }
}
