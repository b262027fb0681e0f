//! Hints to where in memory the blocks of one file are, by their numbers.
//!
//! The block cache looks a block up in a table of all blocks. If there are many, each step of the lookup is a cache
//! miss. A read that found a block there stores a hint of four bytes. The next read goes directly to that block and
//! checks that it is still the right one.

#![deny(clippy::indexing_slicing)]

use helenus_host::{Block, BlockHint, BlockPool};
use std::num::NonZeroU32;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// Number of hints that are allocated together, when the first of them is stored: 4 KiB.
const GROUP: usize = 1024;
/// Bits of a block's name that contain its number in the file. The other bits contain the file number.
const NUMBER_BITS: u32 = 36;

/// A hint for each of `GROUP` blocks; 0 for no hint.
type Group = [AtomicU32; GROUP];

/// The hints of a file.
pub(crate) struct BlockHints {
    /// The pool of the block cache; `None` if blocks cannot be found by hints.
    pool: Option<BlockPool>,
    file: u64,
    groups: Box<[OnceLock<Box<Group>>]>,
}

impl BlockHints {
    /// For a file with `blocks` blocks, whose number is unique in the process.
    pub(crate) fn new(pool: Option<BlockPool>, file: u64, blocks: u64) -> BlockHints {
        let has_names = (1..=u64::MAX >> NUMBER_BITS).contains(&file);
        let pool = pool.filter(|_| has_names);
        let groups = if pool.is_some() { blocks.min(1 << NUMBER_BITS).div_ceil(GROUP as u64) } else { 0 };
        BlockHints { pool, file, groups: (0..groups).map(|_| OnceLock::new()).collect() }
    }

    /// For the same file, with another number of blocks.
    pub(crate) fn for_blocks(self, blocks: u64) -> BlockHints {
        BlockHints::new(self.pool, self.file, blocks)
    }

    /// The block with this number, if it is still where its hint points. `from` is the byte at which the caller will
    /// begin to read it (`usize::MAX` if unknown).
    #[inline]
    pub(crate) fn find(&self, number: u64, from: usize) -> Option<Block> {
        let group = self.groups.get(number as usize / GROUP)?.get()?;
        let hint = NonZeroU32::new(group.get(number as usize % GROUP)?.load(Ordering::Relaxed))?;
        self.pool.as_ref()?.find(BlockHint::from(hint), self.name(number), from)
    }

    /// Stores a hint to a block that was found, and that has its name.
    pub(crate) fn set_hint(&self, number: u64, block: &Block) {
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

    /// Sets the name by which `find` recognises a block. It must be called before the block is shared.
    pub(crate) fn set_name(&self, number: u64, block: &Block) {
        if !self.groups.is_empty() {
            block.set_tag(self.name(number));
        }
    }

    /// The name of a block. It is not 0, because the numbers of files with hints begin at 1.
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
            one.set_hint(number, block);
            other.set_hint(number, block);
            assert_eq!(one.find(number, 0).as_deref(), Some(&**block));
            assert!(other.find(number, 0).is_none(), "another file's");
        }
        assert!(one.find(1, 0).is_none() && one.find(5_120, 0).is_none() && one.find(u64::MAX, 0).is_none());
        one.set_hint(1, &first);
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
            hints.set_hint(3, &block);
            assert_eq!(hints.groups.is_empty(), file != u64::MAX >> NUMBER_BITS);
            assert!(hints.find(3, 0).is_none(), "another pool's block");
        }
    }
}
