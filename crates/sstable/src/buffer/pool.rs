//! The buffer pool: frames, the choice of those that are kept, and the shares of other caches.

use super::budget::Budget;
use super::eviction::Eviction;
use super::frames::{BlockMut, FramePool};
use std::sync::Arc;

/// Bytes of a pool for callers that open a few tables and read them once: offline tools, and the check of an import.
const OFFLINE_BYTES: u64 = 16 << 20;

/// The buffer pool of many files. Cloning shares it.
#[derive(Clone)]
pub struct BufferPool(pub(super) Arc<Inner>);

pub(super) struct Inner {
    pub(super) frames: FramePool,
    pub(super) eviction: Eviction,
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
