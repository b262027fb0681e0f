//! `CachedBlocks`: finds the index blocks of one wide partition for one read, with the interface of a `RowIndexReader`.
//!
//! It asks the row index cache, and walks the trie in Rows.db only if the key prefixes in the cache cannot decide.
//! `PartitionReader` uses it for partitions that are in the cache.

#![deny(clippy::indexing_slicing)]

use super::cached_row_index::CachedRowIndex;
use super::row_index::{IndexBlock, RowIndexReader, RowIndexStacks};
use super::row_index_cache::RowIndexCache;
use crate::block::{BlockFile, ReadContext};
use crate::error::{Error, Result};
use helenus_model::deletion::DeletionTime;
use std::sync::Arc;

/// Finds blocks like a `RowIndexReader` of the partition: by `floor_start`, or by `floor_reversed` and then `previous`.
/// Each can be called again after `WouldBlock`.
pub(crate) struct CachedBlocks {
    slot: usize,
    /// The block that `floor_reversed` or `previous` returned last; `None` if it came from the trie.
    behind: Option<usize>,
    trie: Option<RowIndexReader<Arc<BlockFile>>>,
}

/// The row index cache of a table, and its Rows.db.
pub(crate) type CachedAt<'a> = (&'a RowIndexCache, &'a Arc<BlockFile>);

impl CachedBlocks {
    /// For the partition in this slot of the row index cache.
    pub(crate) fn new(slot: usize) -> CachedBlocks {
        CachedBlocks { slot, behind: None, trie: None }
    }

    /// Returns the memory of the trie walk, if there was one, for another reader.
    pub(crate) fn into_stacks(self) -> Option<RowIndexStacks> {
        self.trie.map(RowIndexReader::into_stacks)
    }

    /// See `RowIndexReader::floor_start`.
    #[inline]
    pub(crate) fn floor_start(
        &mut self,
        at: CachedAt<'_>,
        bound: &[u8],
        cx: &mut ReadContext,
    ) -> Result<(u64, Option<DeletionTime>)> {
        if let Some(found) = at.0.row_index(self.slot).and_then(|known| known.floor_start(bound)) {
            cx.touched.index_blocks_cached += 1;
            return Ok(found);
        }
        self.trie(at, cx)?.floor_start(bound, cx)
    }

    /// See `RowIndexReader::floor_reversed`.
    pub(crate) fn floor_reversed(
        &mut self,
        at: CachedAt<'_>,
        bound: &[u8],
        cx: &mut ReadContext,
    ) -> Result<Option<IndexBlock>> {
        self.behind = at.0.row_index(self.slot).and_then(|known| known.floor_reversed(bound));
        match self.block_behind(at, cx) {
            Some(block) => Ok(Some(block)),
            None => self.trie(at, cx)?.floor_reversed(bound, cx),
        }
    }

    /// See `RowIndexReader::previous`.
    pub(crate) fn previous(&mut self, at: CachedAt<'_>, cx: &mut ReadContext) -> Result<Option<IndexBlock>> {
        match self.behind {
            Some(number) => {
                let Some(before) = number.checked_sub(1) else { return Ok(None) };
                self.behind = Some(before);
                self.block_behind(at, cx).map(Some).ok_or_else(|| lost(at.1))
            }
            None => self.trie(at, cx)?.previous(cx),
        }
    }

    fn block_behind(&self, at: CachedAt<'_>, cx: &mut ReadContext) -> Option<IndexBlock> {
        let block = at.0.row_index(self.slot).and_then(|known| known.block(self.behind?))?;
        cx.touched.index_blocks_cached += 1;
        Some(block)
    }

    #[cold]
    fn trie(
        &mut self,
        (row_index_cache, rows): CachedAt<'_>,
        cx: &mut ReadContext,
    ) -> Result<&mut RowIndexReader<Arc<BlockFile>>> {
        match &mut self.trie {
            Some(trie) => Ok(trie),
            none => {
                let Some(entry) = row_index_cache.row_index(self.slot).map(CachedRowIndex::entry) else {
                    return Err(lost(rows));
                };
                Ok(none.insert(RowIndexReader::new(rows.clone(), entry, cx)?))
            }
        }
    }
}

/// Never happens unless there is a bug: a cached row index stays as long as its table is open.
#[cold]
fn lost(rows: &BlockFile) -> Error {
    rows.corrupt(0, "the row index of a partition that was in memory is not any more")
}
