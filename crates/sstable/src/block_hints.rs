//! Where in memory the blocks of one file were last seen, by their numbers.
//!
//! The block cache finds a block by its file and number in a table of all blocks, at places that each have to come from memory
//! when there are many. A read that has found a block there leaves a hint of four bytes: the next one goes straight to the block
//! and looks whether it still is the one it wants.

#![deny(clippy::indexing_slicing)]

use helenus_host::{Block, BlockHint, BlockPool};
use std::num::NonZeroU32;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// Hints side by side, which come when the first of them does: 4 KiB.
const GROUP: usize = 1024;
/// Bits of a block's name that say which of its file's blocks it is.
const NUMBER_BITS: u32 = 36;

/// A hint for each block of a file; 0 where there is none.
type Group = [AtomicU32; GROUP];

/// The hints of a file.
pub(crate) struct BlockHints {
    /// The cache's; `None` where blocks cannot be found by hints.
    pool: Option<BlockPool>,
    file: u64,
    groups: Box<[OnceLock<Box<Group>>]>,
}

impl BlockHints {
    /// For a file that has a number of its own in the process, and so many blocks.
    pub(crate) fn new(pool: Option<BlockPool>, file: u64, blocks: u64) -> BlockHints {
        let has_names = (1..=u64::MAX >> NUMBER_BITS).contains(&file);
        let pool = pool.filter(|_| has_names);
        let groups = if pool.is_some() { blocks.min(1 << NUMBER_BITS).div_ceil(GROUP as u64) } else { 0 };
        BlockHints { pool, file, groups: (0..groups).map(|_| OnceLock::new()).collect() }
    }

    /// The same file's, which has so many blocks.
    pub(crate) fn for_blocks(self, blocks: u64) -> BlockHints {
        BlockHints::new(self.pool, self.file, blocks)
    }

    /// The block of a number, if it is where it was last seen. It is read from its byte `from` on (`usize::MAX` if that is not
    /// known).
    #[inline]
    pub(crate) fn find(&self, number: u64, from: usize) -> Option<Block> {
        let group = self.groups.get(number as usize / GROUP)?.get()?;
        let hint = NonZeroU32::new(group.get(number as usize % GROUP)?.load(Ordering::Relaxed))?;
        self.pool.as_ref()?.find(BlockHint::from(hint), self.name(number), from)
    }

    /// The block of a number was seen, and has its name.
    pub(crate) fn leave(&self, number: u64, block: &Block) {
        let hint = block.hint().map_or(0, |hint| hint.get().get());
        if hint > 0
            && let Some(group) = self.groups.get(number as usize / GROUP)
        {
            let empty = || Box::new([const { AtomicU32::new(0) }; GROUP]);
            if let Some(place) = group.get_or_init(empty).get(number as usize % GROUP) {
                place.store(hint, Ordering::Relaxed);
            }
        }
    }

    /// Gives a block its name, by which `find` knows it; before others come to see it.
    pub(crate) fn set_name(&self, number: u64, block: &Block) {
        if !self.groups.is_empty() {
            block.set_name(self.name(number));
        }
    }

    /// Not 0: files that have names are numbered from 1.
    fn name(&self, number: u64) -> u64 {
        self.file << NUMBER_BITS | number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_found_by_its_number_and_by_no_other_files() {
        let pool = BlockPool::new();
        let block = |byte: u8| {
            let mut block = pool.take(10);
            block.fill(byte);
            block.share()
        };
        let hints = |file, blocks| BlockHints::new(Some(pool.clone()), file, blocks);
        let (one, other) = (hints(1, 5_000), hints(2, 5_000));
        let (first, last) = (block(1), block(2));
        for (number, block) in [(0, &first), (4_999, &last)] {
            one.set_name(number, block);
            assert!(one.find(number, 0).is_none(), "nobody has seen it");
            one.leave(number, block);
            other.leave(number, block);
            assert_eq!(one.find(number, 0).as_deref(), Some(&**block));
            assert!(other.find(number, 0).is_none(), "another file's");
        }
        assert!(one.find(1, 0).is_none() && one.find(5_120, 0).is_none() && one.find(u64::MAX, 0).is_none());
        one.leave(1, &first);
        assert!(one.find(1, 0).is_none(), "another block of the file");
        drop(first);
        assert!(one.find(0, usize::MAX).is_none() && one.find(4_999, 5).is_some());
    }

    #[test]
    fn files_without_names_have_no_hints() {
        for file in [0, u64::MAX >> NUMBER_BITS, (u64::MAX >> NUMBER_BITS) + 1] {
            let hints = BlockHints::new(Some(BlockPool::new()), file, 10);
            let block = BlockPool::new().take(10).share();
            hints.set_name(3, &block);
            hints.leave(3, &block);
            assert_eq!(hints.groups.is_empty(), file != u64::MAX >> NUMBER_BITS);
            assert!(hints.find(3, 0).is_none(), "another pool's block");
        }
    }
}
