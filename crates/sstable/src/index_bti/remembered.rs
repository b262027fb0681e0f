//! The wide partitions of a table whose row indexes are in memory, and how they come there.
//!
//! A partition that is read again and again is learned: each read that had to walk its trie carries a few separators over
//! into memory, until all are there. None waits for the disk to do so, and no read waits for another. Memory is asked of the
//! cache; without it everything stays with the trie.

#![deny(clippy::indexing_slicing)]

use super::landmarks::{Collected, Landmarks, SEPARATOR_BYTES};
use super::row_index::{RowIndexEntry, Separator, separator};
use crate::block::{BlockCache, BlockFile, ReadContext};
use crate::error::{Error, Result};
use crate::trie::{Keyed, Walker, last_key};
use helenus_model::partitions::PartitionKey;
use std::sync::{Arc, Mutex, OnceLock};

/// Partitions of a table that can be known at a time.
const SLOTS: usize = 32;
/// Slots that a partition may have.
const PROBES: usize = 2;
/// Partitions of fewer index blocks are left to the trie, which is short.
const BLOCKS_MIN: u64 = 16;
/// Reads of a partition before it is worth to be learned.
const READS_MIN: u32 = 16;
/// Separators that a read carries over: some microseconds' work.
const STEP: usize = 128;

/// What a table remembers of its wide partitions.
pub(crate) struct Remembered {
    cache: Arc<dyn BlockCache>,
    slots: OnceLock<Box<[Slot; SLOTS]>>,
}

#[derive(Default)]
struct Slot {
    known: OnceLock<Known>,
    learning: Mutex<Option<Learning>>,
}

/// A partition that needs not be learned any more.
struct Known {
    halves: (i64, i64),
    key: Box<[u8]>,
    /// `None`: its trie is all there is.
    landmarks: Option<Landmarks>,
    _memory: Option<Reserved>,
}

/// A partition on its way.
struct Learning {
    /// Where its trie is.
    root: u64,
    /// Reads that asked for it, less those of others that would have the slot.
    reads: u32,
    learned: Option<Learned>,
}

/// What was carried over so far.
struct Learned {
    keys: Keyed,
    collected: Collected,
    memory: Reserved,
}

/// Memory that the cache has given.
struct Reserved {
    cache: Arc<dyn BlockCache>,
    bytes: u64,
}

impl Reserved {
    fn take(cache: &Arc<dyn BlockCache>, bytes: u64) -> Option<Reserved> {
        cache.reserve(bytes).then(|| Reserved { cache: cache.clone(), bytes })
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.cache.release(self.bytes);
    }
}

impl Remembered {
    /// Nothing yet.
    pub(crate) fn new(cache: Arc<dyn BlockCache>) -> Remembered {
        Remembered { cache, slots: OnceLock::new() }
    }

    /// The number of a partition's slot and its entry in Rows.db, if its row index is in memory.
    #[inline]
    pub(crate) fn find(&self, key: &PartitionKey) -> Option<(usize, &RowIndexEntry)> {
        let slots = self.slots.get()?;
        probes(key).find_map(|number| {
            let known = slots.get(number)?.known.get()?;
            let landmarks = known.landmarks.as_ref()?;
            known.is_of(key).then(|| (number, landmarks.entry()))
        })
    }

    /// The row index of a slot that `find` gave: one that is known stays.
    #[inline]
    pub(super) fn landmarks(&self, slot: usize) -> Option<&Landmarks> {
        self.slots.get()?.get(slot)?.known.get()?.landmarks.as_ref()
    }

    /// Sees a read of a wide partition that has to walk its trie in `rows`, and carries some of it over.
    pub(crate) fn see(
        &self,
        key: &PartitionKey,
        (rows, entry): (&BlockFile, &RowIndexEntry),
        cx: &ReadContext,
    ) {
        // Who reads past the cache comes once.
        if entry.block_count < BLOCKS_MIN || !cx.fill_cache {
            return;
        }
        let slots = self.slots.get_or_init(Box::default);
        for slot in probes(key).filter_map(|number| slots.get(number)) {
            match slot.known.get() {
                Some(known) if known.is_of(key) => return,
                Some(_) => continue,
                None => {}
            }
            // Another read is at it.
            let Ok(mut learning) = slot.learning.try_lock() else { return };
            match &mut *learning {
                Some(other) if other.root != entry.root && other.reads > 0 => {
                    other.reads -= 1;
                    continue;
                }
                Some(this) if this.root == entry.root => {
                    this.reads = this.reads.saturating_add(1);
                    if this.reads >= READS_MIN
                        && slot.known.get().is_none()
                        && let Some(known) = this.carry_on(key, (rows, entry), &self.cache)
                    {
                        let _: std::result::Result<(), Known> = slot.known.set(known);
                        *learning = None;
                    }
                }
                _ => *learning = Some(Learning { root: entry.root, reads: 1, learned: None }),
            }
            return;
        }
    }
}

fn probes(key: &PartitionKey) -> impl Iterator<Item = usize> {
    let first = key.hash.halves.0 as usize;
    (0..PROBES).map(move |step| first.wrapping_add(step) % SLOTS)
}

impl Known {
    #[inline]
    fn is_of(&self, key: &PartitionKey) -> bool {
        self.halves == key.hash.halves && *self.key == *key.bytes
    }
}

impl Learning {
    /// Carries some separators over; `Some` once there are no more, or none can be had.
    fn carry_on(
        &mut self,
        key: &PartitionKey,
        (rows, entry): (&BlockFile, &RowIndexEntry),
        cache: &Arc<dyn BlockCache>,
    ) -> Option<Known> {
        let (landmarks, memory) = match self.step((rows, entry), cache) {
            Ok(Some(Learned { collected, memory, .. })) => match collected.finish(entry) {
                Some(landmarks) => (Some(landmarks), Some(memory)),
                None => (None, None),
            },
            Ok(None) | Err(Error::WouldBlock) => return None,
            // Whoever needs what is damaged is told by the walk down the trie.
            Err(_) => (None, None),
        };
        let key_bytes = key.bytes.clone().into_boxed_slice();
        Some(Known { halves: key.hash.halves, key: key_bytes, landmarks, _memory: memory })
    }

    /// Carries some separators over; what was carried over, once that is all.
    fn step(
        &mut self,
        (rows, entry): (&BlockFile, &RowIndexEntry),
        cache: &Arc<dyn BlockCache>,
    ) -> Result<Option<Learned>> {
        // Apart from the read that does it: nothing that is counted is its own. It neither waits nor fills the cache.
        let cx = &mut ReadContext::default();
        let mut walker = Walker::new(rows, entry.root, cx)?;
        let learned = match &mut self.learned {
            Some(learned) => learned,
            none => {
                let separators = entry.block_count.saturating_add(1);
                let Some(memory) = Reserved::take(cache, separators.saturating_mul(SEPARATOR_BYTES)) else {
                    self.reads = 0;
                    return Ok(None);
                };
                let collected = Collected::new(last_key(&mut walker, cx)?);
                none.insert(Learned { keys: Keyed::default(), collected, memory })
            }
        };
        for _ in 0..STEP {
            if !learned.keys.advance(&mut walker, cx)? {
                return Ok(self.learned.take());
            }
            let Separator { offset, open } = separator(&walker)?;
            if learned.collected.push(learned.keys.key(), (offset, open), entry).is_none() {
                return Err(walker.corrupt("separators of a row index do not ascend"));
            }
        }
        Ok(None)
    }
}
