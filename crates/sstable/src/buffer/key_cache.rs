//! The key cache of one table: maps the hash of a partition key to the partition's position in Data.db. A read that
//! finds its key here does not ask the partition index.
//!
//! A slot has eight bytes: 24 bits of the hash, and the position. Two keys with the same slot and bits replace each
//! other, so the caller must compare the key that it finds at the position. The cache holds only partitions without a
//! row index; `index_bti::row_index_cache` holds the others. Cassandra has the same cache for its format BIG.

#![deny(clippy::indexing_slicing)]

use super::budget::{Budget, Reserved, Share};
use helenus_model::token::KeyHash;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// Number of slots in a page. A page is allocated when it is first written.
const PAGE_SLOTS: usize = 512;
const POSITION_BITS: u32 = 40;
/// A table with more keys than this has no key cache, because too few lookups would find their key.
const SLOTS_MAX: u64 = 1 << 22;

type Page = Box<[AtomicU64; PAGE_SLOTS]>;

/// The pages of a key cache, none if there was no memory for them.
struct Pages {
    all: Box<[OnceLock<Page>]>,
    _memory: Reserved,
}

/// The key cache of one table. Its memory is taken from the share of key caches when the first key is put.
pub(crate) struct KeyCache {
    key_count: u64,
    budget: Arc<Budget>,
    pages: OnceLock<Pages>,
}

impl KeyCache {
    /// An empty key cache for a table with this many keys.
    pub(crate) fn new(key_count: u64, budget: &Arc<Budget>) -> KeyCache {
        KeyCache { key_count, budget: budget.clone(), pages: OnceLock::new() }
    }

    /// The position at which the partition of this key may be.
    #[inline]
    pub(crate) fn get(&self, hash: &KeyHash) -> Option<u64> {
        let slot = page_of(&self.pages.get()?.all, hash)?.get()?.get(slot_of(hash))?;
        let kept = slot.load(Ordering::Relaxed);
        (kept >> POSITION_BITS == tag_of(hash)).then_some(())?;
        // A position is stored plus one, so that 0 is an empty slot.
        (kept & ((1 << POSITION_BITS) - 1)).checked_sub(1)
    }

    /// Puts the position of a partition.
    pub(crate) fn put(&self, hash: &KeyHash, position: u64) {
        let Some(kept) = position.checked_add(1).filter(|kept| *kept < 1 << POSITION_BITS) else { return };
        let pages = self.pages.get_or_init(|| self.reserve());
        let Some(page) = page_of(&pages.all, hash) else { return };
        let page = page.get_or_init(|| Box::new([const { AtomicU64::new(0) }; PAGE_SLOTS]));
        if let Some(slot) = page.get(slot_of(hash)) {
            slot.store(tag_of(hash) << POSITION_BITS | kept, Ordering::Relaxed);
        }
    }

    /// Pages for all keys if there is memory for them, otherwise none.
    fn reserve(&self) -> Pages {
        let mut memory = Reserved::none(&self.budget, Share::Keys);
        // A damaged file may state any number of keys.
        if self.key_count > SLOTS_MAX {
            return Pages { all: Box::default(), _memory: memory };
        }
        let slots = self.key_count.max(PAGE_SLOTS as u64).next_power_of_two();
        let pages = slots as usize / PAGE_SLOTS;
        let count = if memory.grow(bytes_of(pages)) { pages } else { 0 };
        Pages { all: (0..count).map(|_| OnceLock::new()).collect(), _memory: memory }
    }
}

fn bytes_of(pages: usize) -> u64 {
    (pages * (size_of::<[AtomicU64; PAGE_SLOTS]>() + size_of::<OnceLock<Page>>())) as u64
}

/// The page of a hash. The number of pages is a power of two.
#[inline]
fn page_of<'a>(pages: &'a [OnceLock<Page>], hash: &KeyHash) -> Option<&'a OnceLock<Page>> {
    pages.get((hash.halves.0 as usize / PAGE_SLOTS) & pages.len().checked_sub(1)?)
}

#[inline]
fn slot_of(hash: &KeyHash) -> usize {
    hash.halves.0 as usize % PAGE_SLOTS
}

#[inline]
fn tag_of(hash: &KeyHash) -> u64 {
    hash.halves.1 as u64 >> POSITION_BITS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(bytes: u64) -> Arc<Budget> {
        Arc::new(Budget::with(bytes, 0))
    }

    fn hash(key: u32) -> KeyHash {
        KeyHash::of(&key.to_be_bytes())
    }

    #[test]
    fn each_key_is_remembered_or_forgotten_and_never_takes_another_place() {
        let places = KeyCache::new(10_000, &budget(1 << 20));
        for key in 0..10_000 {
            places.put(&hash(key), u64::from(key) * 100);
        }
        let kept = (0..10_000).filter(|key| places.get(&hash(*key)) == Some(u64::from(*key) * 100)).count();
        let wrong = (0..20_000)
            .filter(|key| places.get(&hash(*key)).is_some_and(|place| place != u64::from(*key) * 100));
        assert_eq!(wrong.count(), 0);
        assert!(kept > 5_000, "{kept} of 10,000");
    }

    #[test]
    fn memory_is_asked_for_once_and_given_back() {
        let budget = budget(300_000);
        let (first, second) = (KeyCache::new(20_000, &budget), KeyCache::new(20_000, &budget));
        first.put(&hash(1), 0);
        second.put(&hash(1), 0);
        assert_eq!((first.get(&hash(1)), second.get(&hash(1))), (Some(0), None));
        drop((first, second));
        assert_eq!(budget.left(Share::Keys), 300_000);
    }

    #[test]
    fn positions_that_do_not_fit_and_tables_without_memory_are_left_out() {
        let places = KeyCache::new(10, &budget(1 << 20));
        places.put(&hash(1), u64::MAX);
        places.put(&hash(2), (1 << POSITION_BITS) - 1);
        places.put(&hash(3), (1 << POSITION_BITS) - 2);
        let found = [1, 2, 3].map(|key| places.get(&hash(key)));
        assert_eq!(found, [None, None, Some((1 << POSITION_BITS) - 2)]);
        let many = KeyCache::new(u64::MAX, &budget(u64::MAX));
        for without in [KeyCache::new(10, &budget(0)), many] {
            without.put(&hash(1), 5);
            assert_eq!(without.get(&hash(1)), None);
        }
    }
}
