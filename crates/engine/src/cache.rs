//! The block cache: blocks of all SSTables, bounded by bytes, scan resistant.

use helenus_host::{BlockMut, BlockPool};
use helenus_sstable::block::{Block, BlockCache, ReservedFor};
use quick_cache::sync::Cache;
use quick_cache::{DefaultHashBuilder, Lifecycle, Weighter};
use std::sync::atomic::{AtomicU64, Ordering};

/// The block cache. Keys are file number and block number.
pub struct SharedCache {
    blocks: Cache<(u64, u64), Block, Bytes, DefaultHashBuilder, Found>,
    pool: BlockPool,
    /// Bytes still available to tables outside the block cache: for the key cache and the row index cache.
    beside: [AtomicU64; 2],
}

#[derive(Clone)]
struct Bytes;

/// Bytes of overhead for each block: its entry and its reference count.
const OVERHEAD_BYTES: u64 = 96;

/// Assumed mean size of a block. Data blocks have 16 KiB unless a table sets another size; index pages have 4 KiB.
const BLOCK_BYTES_MEAN: u64 = 12 << 10;
/// Divisors of the cache's bytes that give what tables may use outside it: for the key cache and for the row index
/// cache. Both shares are taken from the cache's bytes.
const BESIDE: [u64; 2] = [16, 32];
/// The least bytes of each share, unless the cache is disabled: enough for the row index of a partition of ten million
/// small rows. What a share lacks to its least bytes comes on top of the cache's bytes.
const BESIDE_MIN: [u64; 2] = [0, 4 << 20];
/// Least number of blocks that the cache's tables are prepared for.
const BLOCKS_MIN: u64 = 256;

impl Weighter<(u64, u64), Block> for Bytes {
    fn weight(&self, _key: &(u64, u64), block: &Block) -> u64 {
        block.footprint() as u64 + OVERHEAD_BYTES
    }
}

/// Protects blocks that readers found by a hint, without a lookup in the cache's hash table: they count as used and
/// stay for another round. The flag is cleared when it is read, so an eviction that finds all blocks flagged succeeds
/// in its second pass.
#[derive(Clone)]
struct Found;

impl Lifecycle<(u64, u64), Block> for Found {
    /// Evicted blocks are freed after the lock is released; seldom more than two.
    type RequestState = [Option<Block>; 2];

    fn is_pinned(&self, _key: &(u64, u64), block: &Block) -> bool {
        block.take_found()
    }

    fn on_evict(&self, leaving: &mut Self::RequestState, _key: (u64, u64), block: Block) {
        if let Some(place) = leaving.iter_mut().find(|place| place.is_none()) {
            *place = Some(block);
        }
    }
}

impl SharedCache {
    /// A cache of at most `bytes` bytes.
    pub fn new(bytes: u64) -> SharedCache {
        // Blocks that a long read evicts must still be known when they are read again, or a working set as large as the
        // cache never becomes hot. quick_cache remembers half as many evicted blocks as the expected number of blocks.
        // Its tables begin empty and grow, so the estimate costs an idle server nothing.
        let blocks = (bytes / BLOCK_BYTES_MEAN).max(BLOCKS_MIN) as usize;
        let beside = BESIDE.map(|share| bytes / share);
        let bytes = bytes - beside.iter().sum::<u64>();
        SharedCache {
            blocks: Cache::with(blocks, bytes, Bytes, DefaultHashBuilder::default(), Found),
            pool: BlockPool::new(),
            beside: std::array::from_fn(|at| {
                AtomicU64::new(if bytes > 0 { beside[at].max(BESIDE_MIN[at]) } else { 0 })
            }),
        }
    }

    fn left(&self, beside: ReservedFor) -> &AtomicU64 {
        let [places, row_indexes] = &self.beside;
        match beside {
            ReservedFor::Places => places,
            ReservedFor::RowIndexes => row_indexes,
        }
    }

    /// The number of cached blocks.
    pub fn blocks(&self) -> u64 {
        self.blocks.len() as u64
    }

    /// Bytes of the cached blocks.
    pub fn bytes(&self) -> u64 {
        self.blocks.weight()
    }
}

impl BlockCache for SharedCache {
    fn get(&self, file: u64, block: u64) -> Option<Block> {
        self.blocks.get(&(file, block))
    }

    fn put(&self, file: u64, block: u64, bytes: Block) {
        self.blocks.insert((file, block), bytes);
    }

    fn room(&self, bytes: usize) -> BlockMut {
        self.pool.take(bytes)
    }

    fn pool(&self) -> Option<&BlockPool> {
        Some(&self.pool)
    }

    fn forget(&self, files: &[u64]) {
        self.blocks.retain(|(file, _), _| !files.contains(file));
    }

    fn reserve(&self, beside: ReservedFor, bytes: u64) -> bool {
        let take = |left: u64| left.checked_sub(bytes);
        self.left(beside).fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }

    fn release(&self, beside: ReservedFor, bytes: u64) {
        self.left(beside).fetch_add(bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: usize = 16 << 10;

    fn block() -> Block {
        BlockMut::unpooled(BLOCK).share()
    }

    #[test]
    fn blocks_that_reads_come_back_to_stay_while_a_long_read_passes_through() {
        let cache = SharedCache::new(16 << 20);
        let hot = 256;
        for _ in 0..3 {
            for number in 0..hot {
                if cache.get(1, number).is_none() {
                    cache.put(1, number, block());
                }
            }
        }
        // Reads ten times the cache's size, each block once, between single reads of the hot blocks.
        for number in 0..10_240 {
            cache.put(2, number, block());
            let _ = cache.get(1, number % hot);
        }
        let kept = (0..hot).filter(|number| cache.get(1, *number).is_some()).count();
        assert!(kept as u64 > hot * 9 / 10, "{kept} of {hot} blocks are left");
        assert!(cache.bytes() <= 16 << 20);
    }

    #[test]
    fn blocks_that_are_found_where_they_were_last_seen_stay_too() {
        let cache = SharedCache::new(16 << 20);
        let pool = cache.pool().unwrap();
        let hot = 256;
        let hints: Vec<_> = (0..hot)
            .map(|number| {
                let block = cache.room(BLOCK).share();
                block.set_tag(number + 1);
                cache.put(1, number, block);
                cache.get(1, number).and_then(|block| block.hint()).unwrap()
            })
            .collect();
        let find = |number: u64| pool.find(hints[number as usize], number + 1, 0);
        for number in 0..10_240 {
            cache.put(2, number, cache.room(BLOCK).share());
            let _ = find(number % hot);
        }
        let kept = (0..hot).filter(|number| find(*number).is_some()).count();
        assert!(kept as u64 > hot * 9 / 10, "{kept} of {hot} blocks are left");
        // Blocks that nobody reads any more are evicted in favour of others.
        for number in 0..20_480 {
            cache.put(3, number, cache.room(BLOCK).share());
            let _ = cache.get(3, number);
        }
        assert!((0..hot).all(|number| find(number).is_none()));
        assert!(cache.bytes() <= 16 << 20);
    }

    #[test]
    fn the_bound_holds_where_every_block_is_found_again_all_the_time() {
        let cache = SharedCache::new(16 << 20);
        let pool = cache.pool().unwrap();
        let mut hints = Vec::new();
        for number in 0..4_000 {
            let block = cache.room(BLOCK).share();
            block.set_tag(number + 1);
            cache.put(1, number, block);
            hints.push(cache.get(1, number).and_then(|block| block.hint()));
            let found = hints
                .iter()
                .zip(1..)
                .filter(|(hint, name)| hint.and_then(|hint| pool.find(hint, *name, 0)).is_some());
            assert!(found.count() > 0);
            assert!(cache.bytes() <= (16 << 20) / 32 * 29, "{number}: {} bytes", cache.bytes());
        }
    }

    #[test]
    fn a_working_set_that_comes_back_after_a_long_read_becomes_hot() {
        let cache = SharedCache::new(16 << 20);
        for round in 0..4 {
            for number in 0..600 {
                if cache.get(1, number).is_none() {
                    cache.put(1, number, block());
                }
            }
            for number in 0..2_000 {
                cache.put(2, round * 2_000 + number, block());
            }
        }
        let kept = (0..600).filter(|number| cache.get(1, *number).is_some()).count();
        assert!(kept > 400, "{kept} of 600 blocks are left");
    }
}
