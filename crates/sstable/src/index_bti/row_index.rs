//! Reads Rows.db: the entry of a wide partition, and its blocks from a bound on, in either direction.
//!
//! A separator is greater than everything before its block and not greater than the block's first position. So the
//! block that may hold the first position at or after a bound is that of the last separator not greater than the bound.
//! The last separator marks the end of the rows and has no block. Layout: see `RowIndexWriter`. Source: Cassandra's
//! `RowIndexReader`, `RowIndexReverseIterator`, `TrieIndexEntry`.

#![deny(clippy::indexing_slicing)]

use super::row_index_writer::FLAG_OPEN;
use super::{PageCursor, read_deletion_time};
use crate::block::{BlockFile, ReadContext};
use crate::error::Result;
use crate::trie::{Backward, Forward, SearchPath, Walker, read_signed};
use helenus_model::deletion::DeletionTime;
use helenus_model::vint;
use std::ops::Deref;

/// The entry of a wide partition, without the key that it begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowIndexEntry {
    /// The position in Data.db at which the partition begins (in bytes before compression).
    pub data_position: u64,
    /// The root of its trie in Rows.db.
    pub root: u64,
    /// Its number of index blocks.
    pub block_count: u64,
    /// The partition's deletion.
    pub deletion: DeletionTime,
}

/// The most bytes of an entry after its key: three vints and a deletion.
const ENTRY_BYTES_MAX: usize = 3 * vint::VINT_LENGTH_MAX + super::DeletionTimeBytes::LENGTH_MAX;

impl RowIndexEntry {
    /// Reads the entry at a position from Partitions.db. Returns the serialised partition key too.
    pub fn read(file: &BlockFile, position: u64, cx: &mut ReadContext) -> Result<(Vec<u8>, RowIndexEntry)> {
        let mut cursor = PageCursor::new(file, position);
        let key = cursor.short_bytes(cx)?;
        let base = cursor.position();
        let data_position = cursor.unsigned_vint(cx)?;
        let to_root = cursor.signed_vint(cx)?;
        let block_count = cursor.unsigned_vint(cx)?;
        let deletion = cursor.deletion_time(cx)?;
        let root = root_of(file, (position, base), to_root)?;
        Ok((key, RowIndexEntry { data_position, root, block_count, deletion }))
    }

    /// Reads the entry at a position; `None` if it belongs to another key. An entry that lies in one page is decoded in
    /// place.
    pub fn read_of(
        file: &BlockFile,
        position: u64,
        key: &[u8],
        cx: &mut ReadContext,
    ) -> Result<Option<RowIndexEntry>> {
        let block_bytes = file.block_bytes().max(1) as u64;
        let page = file.block(position / block_bytes, cx)?;
        let rest = page.get((position % block_bytes) as usize..).unwrap_or_default();
        if rest.len() < 2 + key.len() + ENTRY_BYTES_MAX {
            let (found, entry) = RowIndexEntry::read(file, position, cx)?;
            return Ok((found == key).then_some(entry));
        }
        let is_same = rest.split_first_chunk::<2>().is_some_and(|(len, rest)| {
            usize::from(u16::from_be_bytes(*len)) == key.len() && rest.starts_with(key)
        });
        if !is_same {
            return Ok(None);
        }
        let base = position + 2 + key.len() as u64;
        match parse(rest.get(2 + key.len()..).unwrap_or_default()) {
            Some((entry, to_root)) => {
                let root = root_of(file, (position, base), to_root)?;
                Ok(Some(RowIndexEntry { root, ..entry }))
            }
            None => Err(file.corrupt(base, "no entry of a row index can be stored here")),
        }
    }
}

/// Parses an entry from the end of its key on. Returns it without its root, and the distance from there to the root.
fn parse(bytes: &[u8]) -> Option<(RowIndexEntry, i64)> {
    let (data_position, used) = vint::read_unsigned(bytes)?;
    let bytes = bytes.get(used..)?;
    let (to_root, used) = vint::read_signed(bytes)?;
    let bytes = bytes.get(used..)?;
    let (block_count, used) = vint::read_unsigned(bytes)?;
    let (deletion, _) = read_deletion_time(bytes.get(used..)?)?;
    Some((RowIndexEntry { data_position, root: 0, block_count, deletion }, to_root))
}

fn root_of(file: &BlockFile, (position, base): (u64, u64), to_root: i64) -> Result<u64> {
    let root = base.checked_add_signed(to_root);
    root.filter(|root| *root < position)
        .ok_or_else(|| file.corrupt(base, "the row index's root is not before its entry"))
}

/// A block of a wide partition. Offsets count from the partition's start in Data.db.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexBlock {
    /// The offset of its first row or marker.
    pub offset: u64,
    /// The offset of the next block; for the last block, of the end-of-partition byte.
    pub end: u64,
    /// The range deletion that is open at its start.
    pub open: Option<DeletionTime>,
}

/// What a separator contains about the block that follows it: see `IndexBlock`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Separator {
    pub(super) offset: u64,
    pub(super) open: Option<DeletionTime>,
}

/// Finds the blocks of one partition: forward by `floor` and then `next`, backward by `floor_reversed` and then
/// `previous`. Each of the four can be called again after `WouldBlock`.
pub struct RowIndexReader<F> {
    walker: Walker<F>,
    forward: Forward,
    /// The separator after the block returned last: that of the next block, or the end of the rows.
    ahead: Option<Separator>,
    backward: Backward,
    /// The offset of the block returned last.
    behind: Option<u64>,
    /// The path of the last `floor_start`.
    trail: SearchPath,
}

/// The memory of a reader's walks, for another reader to use again.
#[derive(Debug, Default)]
pub struct RowIndexStacks {
    forward: Forward,
    backward: Backward,
    trail: SearchPath,
}

impl<F: Deref<Target = BlockFile>> RowIndexReader<F> {
    /// A reader of a partition's index. `file` is a `&BlockFile` or an `Arc<BlockFile>`.
    pub fn new(file: F, entry: &RowIndexEntry, cx: &mut ReadContext) -> Result<RowIndexReader<F>> {
        RowIndexReader::with_stacks(file, entry, &mut RowIndexStacks::default(), cx)
    }

    /// The same, with memory from another reader's `into_stacks`. `stacks` is left unchanged on an error and empty
    /// otherwise.
    pub fn with_stacks(
        file: F,
        entry: &RowIndexEntry,
        stacks: &mut RowIndexStacks,
        cx: &mut ReadContext,
    ) -> Result<RowIndexReader<F>> {
        let walker = Walker::new(file, entry.root, cx)?;
        let RowIndexStacks { forward, backward, mut trail } = std::mem::take(stacks);
        trail.clear();
        Ok(RowIndexReader { walker, forward, ahead: None, backward, behind: None, trail })
    }

    /// Returns the memory for another reader.
    pub fn into_stacks(self) -> RowIndexStacks {
        RowIndexStacks { forward: self.forward, backward: self.backward, trail: self.trail }
    }

    /// The offset at which a search for the first position at or after `bound` begins, and the range deletion open
    /// there. It is the start of the block that `floor` returns or, after all rows, their end.
    pub fn floor_start(&mut self, bound: &[u8], cx: &mut ReadContext) -> Result<(u64, Option<DeletionTime>)> {
        let landing = self.trail.land(&mut self.walker, bound, cx)?;
        if !landing.go_floor(&mut self.walker, cx)? {
            return Err(self.walker.corrupt("the row index does not begin at the first row"));
        }
        let Separator { offset, open } = self.separator()?;
        Ok((offset, open))
    }

    /// The block that may hold the first position at or after `bound` (an ordered encoding; empty for the first
    /// block); `None` if all rows lie before it.
    pub fn floor(&mut self, bound: &[u8], cx: &mut ReadContext) -> Result<Option<IndexBlock>> {
        self.ahead = None;
        let landing = self.forward.start_after(&mut self.walker, bound, cx)?;
        if !landing.go_floor(&mut self.walker, cx)? {
            return Err(self.walker.corrupt("the row index does not begin at the first row"));
        }
        let found = self.separator()?;
        let ahead = self.step_forward(cx)?;
        self.ahead = ahead;
        ahead.map(|ahead| self.block(found, ahead.offset)).transpose()
    }

    /// The block after the one returned last; `None` after the last block.
    pub fn next(&mut self, cx: &mut ReadContext) -> Result<Option<IndexBlock>> {
        let Some(found) = self.ahead else { return Ok(None) };
        let ahead = self.step_forward(cx)?;
        self.ahead = ahead;
        ahead.map(|ahead| self.block(found, ahead.offset)).transpose()
    }

    /// The block that may hold the last position before `bound` (an ordered encoding; `AFTER_ALL` for the last block).
    pub fn floor_reversed(&mut self, bound: &[u8], cx: &mut ReadContext) -> Result<Option<IndexBlock>> {
        self.behind = None;
        let landing = self.backward.start_at(&mut self.walker, bound, cx)?;
        let end = if landing.go_greater(&mut self.walker, cx)? {
            self.separator()?
        } else {
            // The bound is after the last separator, which is the end of the rows.
            let end = self.step_backward(cx)?;
            end.ok_or_else(|| self.walker.corrupt("the row index is empty"))?
        };
        let Some(found) = self.step_backward(cx)? else { return Ok(None) };
        self.behind = Some(found.offset);
        self.block(found, end.offset).map(Some)
    }

    /// The block before the one returned last; `None` before the first block.
    pub fn previous(&mut self, cx: &mut ReadContext) -> Result<Option<IndexBlock>> {
        let Some(end) = self.behind else { return Ok(None) };
        let found = self.step_backward(cx)?;
        self.behind = found.map(|found| found.offset);
        found.map(|found| self.block(found, end)).transpose()
    }

    fn step_forward(&mut self, cx: &mut ReadContext) -> Result<Option<Separator>> {
        if self.forward.advance(&mut self.walker, cx)? { self.separator().map(Some) } else { Ok(None) }
    }

    fn step_backward(&mut self, cx: &mut ReadContext) -> Result<Option<Separator>> {
        if self.backward.advance(&mut self.walker, cx)? { self.separator().map(Some) } else { Ok(None) }
    }

    fn block(&self, found: Separator, end: u64) -> Result<IndexBlock> {
        if end <= found.offset {
            return Err(self.walker.corrupt("the blocks of a row index do not ascend"));
        }
        Ok(IndexBlock { offset: found.offset, end, open: found.open })
    }

    fn separator(&self) -> Result<Separator> {
        separator(&self.walker)
    }
}

/// Reads the separator at the walker's node.
pub(super) fn separator<F: Deref<Target = BlockFile>>(walker: &Walker<F>) -> Result<Separator> {
    let flags = walker.payload_flags();
    let len = usize::from(flags & !FLAG_OPEN);
    if len == 0 {
        return Err(walker.corrupt("a separator of the row index has no offset"));
    }
    let Ok(offset) = u64::try_from(read_signed(walker.payload(len)?)) else {
        return Err(walker.corrupt("an offset of the row index is negative"));
    };
    let mut open = None;
    if flags & FLAG_OPEN != 0 {
        // The deletion has 12 bytes: without an open deletion the flag would not be set.
        let bytes = walker.payload(len + super::DeletionTimeBytes::LENGTH_MAX)?;
        match bytes.get(len..).and_then(read_deletion_time) {
            Some((deletion, _)) => open = Some(deletion).filter(|deletion| !deletion.is_live()),
            None => return Err(walker.corrupt("an open deletion of the row index is impossible")),
        }
    }
    Ok(Separator { offset, open })
}
