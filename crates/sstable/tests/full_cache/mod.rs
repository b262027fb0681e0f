//! A cache without free memory, so that chunks are read in parts.

#![allow(dead_code, reason = "each test program uses a part of it")]

use helenus_sstable::block::{Beside, Block, BlockCache};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// A full cache, which drops blocks that are not asked for within some number of misses.
pub struct Full {
    kept: Mutex<HashMap<(u64, u64), Block>>,
    misses: AtomicU32,
    kept_for: u32,
    beside: AtomicU64,
}

impl Full {
    /// `kept_for` is that number of misses; `beside` is the number of bytes that can be reserved.
    pub fn new(kept_for: u32, beside: u64) -> Arc<Full> {
        Arc::new(Full {
            kept: Mutex::default(),
            misses: AtomicU32::new(0),
            kept_for,
            beside: AtomicU64::new(beside),
        })
    }
}

impl Full {
    /// Number of cached blocks.
    pub fn kept(&self) -> usize {
        self.kept.lock().unwrap().len()
    }

    /// Number of bytes that are not reserved.
    pub fn left(&self) -> u64 {
        self.beside.load(Ordering::Relaxed)
    }
}

impl BlockCache for Full {
    fn get(&self, file: u64, block: u64) -> Option<Block> {
        self.kept.lock().unwrap().get(&(file, block)).cloned()
    }
    fn put(&self, file: u64, block: u64, bytes: Block) {
        self.kept.lock().unwrap().insert((file, block), bytes);
    }
    fn count_miss(&self) -> u32 {
        self.misses.fetch_add(1, Ordering::Relaxed)
    }
    fn misses_between(&self) -> u32 {
        self.kept_for
    }
    fn has_room(&self) -> bool {
        false
    }
    fn reserve(&self, beside: Beside, bytes: u64) -> bool {
        if beside != Beside::Pieces {
            return false;
        }
        let take = |left: u64| left.checked_sub(bytes);
        self.beside.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }
    fn release(&self, _beside: Beside, bytes: u64) {
        self.beside.fetch_add(bytes, Ordering::Relaxed);
    }
}
