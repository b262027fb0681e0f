//! Checks that the row index of a wide partition leads to the right rows, as a part of `SsTable::verify`.
//!
//! The first and the last position of each block are looked up in both directions, like a read would. The positions in
//! between are then right too, because blocks ascend. The open range deletion that a block states must be the actual
//! one.

use super::index::{Blocks, BlocksMemory, Index, RowIndex};
use crate::block::ReadContext;
use crate::data::RowLayout;
use crate::error::{Error, Result};
use crate::index_bti::IndexBlock;
use helenus_model::deletion::DeletionTime;
use helenus_model::filter::AFTER_ALL;

/// Checks the blocks of the current partition along with its rows and markers.
pub(super) struct BlockCheck<'a> {
    index: &'a Index,
    layout: &'a RowLayout,
    start: u64,
    lookups: Blocks,
    /// The blocks in ascending order.
    blocks: Vec<IndexBlock>,
    /// Number of blocks that have begun.
    begun: usize,
    /// Ordered clustering positions of the first and the last row or marker of the block that began last.
    first: Vec<u8>,
    last: Vec<u8>,
}

impl<'a> BlockCheck<'a> {
    /// Reads all blocks of the partition that starts at `start` in the data.
    pub(super) fn new(
        (index, layout): (&'a Index, &'a RowLayout),
        (start, entry): (u64, &RowIndex),
        cx: &mut ReadContext,
    ) -> Result<BlockCheck<'a>> {
        let mut lookups = index.blocks(entry, &mut BlocksMemory::default(), cx)?;
        let mut blocks = Vec::new();
        let mut block = lookups.floor_reversed((index, layout), AFTER_ALL, cx)?;
        while let Some(now) = block {
            blocks.push(now);
            block = lookups.previous((index, layout), cx)?;
        }
        blocks.reverse();
        if blocks.is_empty() || !blocks.is_sorted_by(|a, b| a.end == b.offset) {
            return Err(index.corrupt(&format!("the blocks of the partition at byte {start} leave gaps")));
        }
        let (first, last) = (Vec::new(), Vec::new());
        Ok(BlockCheck { index, layout, start, lookups, blocks, begun: 0, first, last })
    }

    /// Takes the next row or marker: its start and end in the data, its ordered clustering position, and the range
    /// deletion that is open before it.
    pub(super) fn element(
        &mut self,
        (at, end): (u64, u64),
        key: &[u8],
        open: Option<DeletionTime>,
        cx: &mut ReadContext,
    ) -> Result<()> {
        let next = self.blocks.get(self.begun).map(|block| (self.start + block.offset, block.open));
        let begins = match next {
            Some((begin, _)) if begin == at => true,
            Some((begin, _)) if begin < at => return Err(self.wrong(begin, "begins where no row does")),
            Some((begin, _)) if begin < end => return Err(self.wrong(begin, "begins within a row")),
            _ if self.begun == 0 => return Err(self.wrong(at, "is not the first, and no other is before it")),
            _ => false,
        };
        if begins {
            self.end_block(cx)?;
            self.begun += 1;
            self.first.clear();
            self.first.extend_from_slice(key);
            if next.is_some_and(|(_, stated)| stated != open) {
                return Err(self.wrong(at, "says that another range deletion is open where it begins"));
            }
        }
        self.last.clear();
        self.last.extend_from_slice(key);
        Ok(())
    }

    /// Ends the partition.
    pub(super) fn finish(mut self, cx: &mut ReadContext) -> Result<()> {
        self.end_block(cx)?;
        if self.begun == self.blocks.len() {
            return Ok(());
        }
        Err(self.wrong(self.start, "begins behind the last row"))
    }

    /// Looks up both ends of the block that was begun last.
    fn end_block(&mut self, cx: &mut ReadContext) -> Result<()> {
        let Some(number) = self.begun.checked_sub(1) else { return Ok(()) };
        let Some(block) = self.blocks.get(number).copied() else { return Ok(()) };
        let at = self.start + block.offset;
        for bound in [&self.first, &self.last] {
            let found = self.lookups.floor_start((self.index, self.layout), bound, cx)?;
            if found != (block.offset, block.open) {
                return Err(self.wrong(at, "is not found by its rows"));
            }
        }
        let found = self.lookups.floor_reversed((self.index, self.layout), &self.last, cx)?;
        let is_only = self.first == self.last;
        let before = number.checked_sub(1).and_then(|before| self.blocks.get(before));
        let is_right = found == Some(block) || (is_only && found == before.copied());
        if is_right { Ok(()) } else { Err(self.wrong(at, "is not found backwards by its last row")) }
    }

    fn wrong(&self, at: u64, problem: &str) -> Error {
        let start = self.start;
        self.index.corrupt(&format!("of the partition at byte {start} the block at byte {at} {problem}"))
    }
}
