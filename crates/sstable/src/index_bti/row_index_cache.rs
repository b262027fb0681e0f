//! The row index cache of a table: the row indexes of wide partitions in memory, and how they are loaded.
//!
//! A partition that is read repeatedly is loaded step by step: each read that walks its trie copies a few separators
//! into memory, until all of them are there. No read waits for the disk or for another read to do so. The memory is
//! reserved from the buffer pool's share for it before it is used; without memory, reads use the trie. A loaded partition stays until
//! its table closes.

#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

use super::cached_row_index::{CachedRowIndex, CachedRowIndexBuilder, OPEN_BYTES, SEPARATOR_BYTES};
use super::row_index::{RowIndexEntry, Separator, separator};
use crate::block::{BlockFile, ReadContext};
use crate::buffer::{Budget, Reserved, Share};
use crate::error::{Error, Result};
use crate::trie::{Advanced, Keyed, Walker, last_key};
use helenus_model::partitions::PartitionKey;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

/// Number of groups of slots. The hash of a partition selects its group.
const GROUPS: usize = 8;
/// Number of slots in a group, which is the number of its partitions that can be cached.
const SLOTS: usize = 8;
/// Partitions of fewer index blocks are not cached, because their trie is short.
const BLOCKS_MIN: u64 = 16;
/// Number of reads of a partition before loading begins.
const READS_MIN: u32 = 16;
/// Number of separators that one read copies, which takes some microseconds.
const STEP: usize = 128;
/// Bytes of memory for one step, if each separator has an open deletion.
const STEP_BYTES: u64 = STEP as u64 * (SEPARATOR_BYTES + OPEN_BYTES);
/// Number of trie nodes that one read visits for a step at most. Long separators have many nodes.
const STEP_NODES: u64 = 16 * STEP as u64;
/// Number of consecutive reads that copied nothing after which loading is given up: the missing pages are on the disk.
const VAIN_READS_MAX: u32 = 256;

/// The row index cache of a table.
pub(crate) struct RowIndexCache {
    budget: Arc<Budget>,
    groups: OnceLock<Box<[Group; GROUPS]>>,
}

#[derive(Default)]
#[repr(align(64))]
struct Group {
    /// A part of the hash of each slot's partition, or 0 for an unused slot. So one cache line shows whether a
    /// partition may be in the group.
    tags: [AtomicU64; SLOTS],
    loaded: [OnceLock<Loaded>; SLOTS],
    loading: Mutex<[Option<Loading>; SLOTS]>,
}

/// A partition that is loaded, or that cannot be loaded.
struct Loaded {
    halves: (i64, i64),
    key: Box<[u8]>,
    /// `None` if it cannot be loaded and reads must use the trie.
    row_index: Option<CachedRowIndex>,
    _memory: Option<Reserved>,
}

/// A partition that is being loaded.
struct Loading {
    /// The root of its trie. It identifies the partition.
    root: u64,
    /// Number of reads of it, less the reads of other partitions that found no free slot.
    reads: u32,
    /// Number of reads since the last one that copied something.
    vain: u32,
    learned: Option<Box<Partial>>,
}

/// The separators that were copied so far.
struct Partial {
    keys: Keyed,
    collected: CachedRowIndexBuilder,
    memory: Reserved,
}

impl RowIndexCache {
    /// An empty row index cache.
    pub(crate) fn new(budget: Arc<Budget>) -> RowIndexCache {
        RowIndexCache { budget, groups: OnceLock::new() }
    }

    /// The number of a partition's slot and its entry in Rows.db, if its row index is in memory.
    #[inline]
    pub(crate) fn find(&self, key: &PartitionKey) -> Option<(usize, &RowIndexEntry)> {
        let number = group_of(key);
        let group = self.groups.get()?.get(number)?;
        let tag = tag_of(key);
        let mut slots = group.tags.iter().zip(&group.loaded).enumerate();
        slots.find_map(|(slot, (other, known))| {
            if other.load(Ordering::Acquire) != tag {
                return None;
            }
            let known = known.get()?;
            let entry = known.row_index.as_ref()?.entry();
            known.is_of(key).then_some((number * SLOTS + slot, entry))
        })
    }

    /// The row index in a slot that `find` returned. It stays there.
    #[inline]
    pub(super) fn row_index(&self, slot: usize) -> Option<&CachedRowIndex> {
        let group = self.groups.get()?.get(slot / SLOTS)?;
        group.loaded.get(slot % SLOTS)?.get()?.row_index.as_ref()
    }

    /// Counts a read of a wide partition that has to walk its trie in `rows`, and copies some of its separators.
    pub(crate) fn record_read(
        &self,
        key: &PartitionKey,
        (rows, entry): (&BlockFile, &RowIndexEntry),
        cx: &ReadContext,
    ) {
        // A read that does not fill the cache is not expected to come again.
        if entry.block_count < BLOCKS_MIN || !cx.fill_cache {
            return;
        }
        let Some(group) = self.groups.get_or_init(Box::default).get(group_of(key)) else { return };
        if group.is_settled(key) {
            return;
        }
        // If another read is loading a partition of the group, this one does nothing.
        let Ok(mut learning) = group.loading.try_lock() else { return };
        let Some(slot) = group.slot_for(key, entry, &mut learning) else { return };
        let (Some(known), Some(this)) = (group.loaded.get(slot), learning.get_mut(slot)) else { return };
        let this = this.get_or_insert_with(|| Loading { root: entry.root, reads: 0, vain: 0, learned: None });
        this.reads = this.reads.saturating_add(1);
        if this.reads < READS_MIN {
            return;
        }
        if let Some(found) = this.carry_on(key, (rows, entry), &self.budget) {
            let _: std::result::Result<(), Loaded> = known.set(found);
            if let (Some(tag), Some(this)) = (group.tags.get(slot), learning.get_mut(slot)) {
                tag.store(tag_of(key), Ordering::Release);
                *this = None;
            }
        }
    }
}

impl Group {
    /// Whether a partition needs no loading, or finds no free slot. Then the read touches nothing that other threads
    /// write.
    fn is_settled(&self, key: &PartitionKey) -> bool {
        let tag = tag_of(key);
        let mut has_room = false;
        for (other, known) in self.tags.iter().zip(&self.loaded) {
            match other.load(Ordering::Acquire) {
                0 => has_room = true,
                other if other == tag && known.get().is_some_and(|known| known.is_of(key)) => return true,
                _ => {}
            }
        }
        !has_room
    }

    /// The slot in which to load a partition: the one in which it is being loaded, or a free one. If there is none,
    /// each partition that is being loaded loses a read, and one without reads gives its slot up for the next caller.
    fn slot_for(
        &self,
        key: &PartitionKey,
        entry: &RowIndexEntry,
        learning: &mut [Option<Loading>; SLOTS],
    ) -> Option<usize> {
        if self.loaded.iter().any(|known| known.get().is_some_and(|known| known.is_of(key))) {
            return None;
        }
        let is_this = |this: &Option<Loading>| this.as_ref().is_some_and(|this| this.root == entry.root);
        if let Some(slot) = learning.iter().position(is_this) {
            return Some(slot);
        }
        let mut slots = learning.iter().zip(&self.loaded);
        if let Some(slot) = slots.position(|(this, known)| this.is_none() && known.get().is_none()) {
            return Some(slot);
        }
        for slot in learning.iter_mut() {
            if let Some(other) = slot {
                other.reads = other.reads.saturating_sub(1);
            }
            slot.take_if(|other| other.reads == 0);
        }
        None
    }
}

fn group_of(key: &PartitionKey) -> usize {
    key.hash.halves.0 as usize % GROUPS
}

fn tag_of(key: &PartitionKey) -> u64 {
    key.hash.halves.1 as u64 | 1
}

impl Loaded {
    #[inline]
    fn is_of(&self, key: &PartitionKey) -> bool {
        self.halves == key.hash.halves && *self.key == *key.bytes
    }
}

impl Loading {
    /// Copies some separators; `Some` once all are copied, or if the partition cannot be loaded.
    fn carry_on(
        &mut self,
        key: &PartitionKey,
        (rows, entry): (&BlockFile, &RowIndexEntry),
        budget: &Arc<Budget>,
    ) -> Option<Loaded> {
        self.vain += 1;
        let learned = self.step((rows, entry), budget);
        if self.vain > VAIN_READS_MAX {
            self.begin_again();
        }
        let (row_index, memory) = match learned {
            Ok(Some(learned)) => {
                let Partial { collected, memory, .. } = *learned;
                let bytes = collected.bytes();
                match collected.finish(entry) {
                    Some(row_index) => (Some(row_index), Some(memory.keep(bytes))),
                    None => (None, None),
                }
            }
            Ok(None) | Err(Error::WouldBlock) => return None,
            Err(Error::Io { .. }) => {
                self.begin_again();
                return None;
            }
            // The index is damaged or not worth loading. A read that needs the damaged part gets the error from the
            // trie.
            Err(_) => (None, None),
        };
        let key_bytes = key.bytes.clone().into_boxed_slice();
        Some(Loaded { halves: key.hash.halves, key: key_bytes, row_index, _memory: memory })
    }

    /// Drops what was copied. Loading may begin again after enough reads.
    fn begin_again(&mut self) {
        (self.reads, self.vain, self.learned) = (0, 0, None);
    }

    /// Copies some separators; returns all of them once they are complete.
    fn step(
        &mut self,
        (rows, entry): (&BlockFile, &RowIndexEntry),
        budget: &Arc<Budget>,
    ) -> Result<Option<Box<Partial>>> {
        // A context of its own, so that the step is not counted as the read's. It neither waits nor fills the cache.
        let cx = &mut ReadContext::default();
        let mut walker = Walker::new(rows, entry.root, cx)?;
        let learned = match &mut self.learned {
            Some(learned) => learned,
            none => {
                let mut memory = Reserved::none(budget, Share::RowIndexes);
                // Reserve memory for all separators, without open deletions: loading does not begin if they would not
                // fit.
                let whole = entry.block_count.saturating_add(1).saturating_mul(SEPARATOR_BYTES);
                if !memory.grow(whole.saturating_add(STEP_BYTES)) {
                    self.begin_again();
                    return Ok(None);
                }
                let collected = CachedRowIndexBuilder::new(last_key(&mut walker, cx)?);
                none.insert(Box::new(Partial { keys: Keyed::default(), collected, memory }))
            }
        };
        let reserved = learned.memory.bytes();
        if learned.collected.bytes() + STEP_BYTES > reserved && !learned.memory.grow(STEP_BYTES) {
            // Another attempt would fail here again, so the partition counts as one that cannot be loaded. No caller
            // sees the error.
            self.learned = None;
            return Err(walker.corrupt("more deletions are open than there is memory for"));
        }
        let nodes_max = cx.touched.index_nodes + STEP_NODES;
        for _ in 0..STEP {
            match learned.keys.advance(&mut walker, nodes_max, cx)? {
                Advanced::Entry => {}
                Advanced::End => return Ok(self.learned.take()),
                Advanced::Later => break,
            }
            self.vain = 0;
            let Separator { offset, open } = separator(&walker)?;
            if learned.collected.push(learned.keys.key(), (offset, open), entry).is_none() {
                return Err(walker.corrupt("separators of a row index do not ascend, or are mostly alike"));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests;
