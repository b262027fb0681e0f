//! A small block cache for callers that open a few tables and read them once: offline tools, and the check of an
//! import.
//!
//! Each block has a slot, computed from its number, and the last block put there is kept. A read of a table in order
//! finds the upper index pages and the current block again.

use crate::block::{Block, BlockCache};
use std::sync::{Mutex, PoisonError};

/// Number of slots: 16 MiB with blocks of 16 KiB.
const PLACES: u64 = 1024;

/// The cache.
#[derive(Default)]
pub struct RecentBlocks {
    places: Mutex<Vec<Option<(u64, u64, Block)>>>,
}

fn place(file: u64, block: u64) -> usize {
    ((block ^ file.wrapping_mul(0x9E37_79B9_7F4A_7C15)) % PLACES) as usize
}

impl BlockCache for RecentBlocks {
    fn get(&self, file: u64, block: u64) -> Option<Block> {
        let places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let (of, number, bytes) = places.get(place(file, block))?.as_ref()?;
        (*of == file && *number == block).then(|| bytes.clone())
    }

    fn put(&self, file: u64, block: u64, bytes: Block) {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        if places.is_empty() {
            places.resize(PLACES as usize, None);
        }
        if let Some(slot) = places.get_mut(place(file, block)) {
            *slot = Some((file, block, bytes));
        }
    }

    fn forget(&self, files: &[u64]) {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        for slot in places.iter_mut() {
            if slot.as_ref().is_some_and(|(file, _, _)| files.contains(file)) {
                *slot = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_found_until_another_takes_its_place_or_its_file_is_forgotten() {
        let cache = RecentBlocks::default();
        let bytes = |byte: u8| Block::from([byte].as_slice());
        assert!(cache.get(1, 5).is_none());
        cache.put(1, 5, bytes(1));
        assert_eq!(cache.get(1, 5).unwrap()[0], 1);
        assert!(cache.get(1, 5 + PLACES).is_none(), "another block of the same place");
        cache.put(1, 5 + PLACES, bytes(2));
        assert!(cache.get(1, 5).is_none());
        cache.put(2, 9, bytes(3));
        cache.forget(&[1]);
        assert!(cache.get(1, 5 + PLACES).is_none() && cache.get(2, 9).is_some());
    }
}
