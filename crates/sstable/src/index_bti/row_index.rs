//! Reads Rows.db: the entry of a wide partition, and its blocks from a bound on, in either direction.
//!
//! A separator is greater than everything before its block and not greater than the block's first position. So the
//! block that may hold the first position at or after a bound is that of the last separator not greater than the
//! bound. The last separator stands for no block but for the end of the rows. Layout: see `RowIndexWriter`.
//! Source: Cassandra's `RowIndexReader`, `RowIndexReverseIterator`, `TrieIndexEntry`.

#![deny(clippy::indexing_slicing)]

use super::row_index_writer::FLAG_OPEN;
use super::{PageCursor, read_deletion_time};
use crate::block::{BlockFile, ReadContext};
use crate::error::Result;
use crate::trie::{Backward, Forward, Walker, read_signed};
use helenus_model::deletion::DeletionTime;
use std::ops::Deref;

/// A wide partition's entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowIndexEntry {
    /// The serialised partition key.
    pub key: Vec<u8>,
    /// Where the partition begins in Data.db (bytes before compression).
    pub data_position: u64,
    /// The root of its trie in Rows.db.
    pub root: u64,
    /// Its number of index blocks.
    pub block_count: u64,
    /// The partition's deletion.
    pub deletion: DeletionTime,
}

impl RowIndexEntry {
    /// Reads the entry at a position that Partitions.db gave.
    pub fn read(file: &BlockFile, position: u64, cx: &mut ReadContext) -> Result<RowIndexEntry> {
        let mut cursor = PageCursor::new(file, position);
        let key = cursor.short_bytes(cx)?;
        let base = cursor.position();
        let data_position = cursor.unsigned_vint(cx)?;
        let root = base.checked_add_signed(cursor.signed_vint(cx)?);
        let Some(root) = root.filter(|root| *root < position) else {
            return Err(file.corrupt(base, "the row index's root is not before its entry"));
        };
        let block_count = cursor.unsigned_vint(cx)?;
        let deletion = cursor.deletion_time(cx)?;
        Ok(RowIndexEntry { key, data_position, root, block_count, deletion })
    }
}

/// A stretch of a partition. Offsets count from the partition's start in Data.db.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexBlock {
    /// Where its first row or marker begins.
    pub offset: u64,
    /// Where the next block begins; after the last block, the end-of-partition byte.
    pub end: u64,
    /// The range deletion that is open where it begins.
    pub open: Option<DeletionTime>,
}

#[derive(Clone, Copy, Debug)]
struct Separator {
    offset: u64,
    open: Option<DeletionTime>,
}

/// Finds blocks of one partition. Forward: `floor`, then `next`; backward: `floor_reversed`, then `previous`. Each of
/// the four can be called again after `WouldBlock`.
pub struct RowIndexReader<F> {
    walker: Walker<F>,
    forward: Forward,
    /// The separator after the block given last: the next block, or the end.
    ahead: Option<Separator>,
    backward: Backward,
    /// Where the block given last begins.
    behind: Option<u64>,
}

impl<F: Deref<Target = BlockFile>> RowIndexReader<F> {
    /// A reader of a partition's index. `file` is a `&BlockFile` or an `Arc<BlockFile>`.
    pub fn new(file: F, entry: &RowIndexEntry, cx: &mut ReadContext) -> Result<RowIndexReader<F>> {
        let walker = Walker::new(file, entry.root, cx)?;
        Ok(RowIndexReader {
            walker,
            forward: Forward::default(),
            ahead: None,
            backward: Backward::default(),
            behind: None,
        })
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

    /// The block after the one given last; `None` after the last.
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
            // The bound lies after the last separator, which is the end.
            let end = self.step_backward(cx)?;
            end.ok_or_else(|| self.walker.corrupt("the row index is empty"))?
        };
        let Some(found) = self.step_backward(cx)? else { return Ok(None) };
        self.behind = Some(found.offset);
        self.block(found, end.offset).map(Some)
    }

    /// The block before the one given last; `None` before the first.
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
        let flags = self.walker.payload_flags();
        let len = usize::from(flags & !FLAG_OPEN);
        if len == 0 {
            return Err(self.walker.corrupt("a separator of the row index has no offset"));
        }
        let Ok(offset) = u64::try_from(read_signed(self.walker.payload(len)?)) else {
            return Err(self.walker.corrupt("an offset of the row index is negative"));
        };
        let mut open = None;
        if flags & FLAG_OPEN != 0 {
            // The form of 12 bytes: nothing open is stored as no flag.
            let bytes = self.walker.payload(len + super::DeletionTimeBytes::LENGTH_MAX)?;
            match bytes.get(len..).and_then(read_deletion_time) {
                Some((deletion, _)) => open = Some(deletion).filter(|deletion| !deletion.is_live()),
                None => return Err(self.walker.corrupt("an open deletion of the row index is impossible")),
            }
        }
        Ok(Separator { offset, open })
    }
}
