//! Memory for blocks of files: pieces of a few sizes, cut out of regions that the system keeps in huge pages.
//!
//! Whoever reads at random places of many blocks waits for the processor to find each page, if pages are small, and for the
//! count of a block's holders, if it stands before the block's bytes. Here a region of blocks is one huge page, and the counts
//! of all its blocks stand together, so close that they stay in the processor's caches.
//!
//! A region belongs to one size. It goes back to the system when none of its blocks is held and its size has another such
//! region.

#![expect(unsafe_code, reason = "blocks are shared without a lock; each block of code says why it is sound")]

use crate::huge_pages::{HUGE_PAGE_BYTES, renew};
use parking_lot::Mutex;
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering, fence};
use std::sync::{Arc, Weak};

/// Sizes of blocks, KiB: a block has the least that holds it: from 2 KiB on that is at most half as much again as it needs.
const SIZES_KIB: [usize; 12] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64];
/// Bytes of a size's first region: whoever reads little has little.
const FIRST_REGION_BYTES: usize = 64 << 10;
/// Where blocks begin: at a cache line.
const ALIGN: usize = 64;
/// Holders of a block at which the process ends, as with `Arc`: a count that came round would free a block in use.
const HOLDERS_MAX: u32 = i32::MAX as u32;

/// Gives out blocks. All of them may outlive it.
pub struct BlockPool {
    sizes: [Arc<Size>; SIZES_KIB.len()],
}

/// The regions of one size that have room.
struct Size {
    bytes: usize,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    /// Each once, as long as a block of it is free.
    regions: Vec<Arc<Region>>,
    /// Whether the small first region was made.
    has_begun: bool,
}

/// Memory of blocks of one size.
struct Region {
    memory: NonNull<u8>,
    layout: Layout,
    block_bytes: usize,
    /// Holders of each block.
    holders: Box<[AtomicU32]>,
    /// Blocks that nobody holds.
    free: Mutex<Vec<u32>>,
    /// Where blocks go back to, as long as there is a pool; a single block from none has nowhere to go.
    size: Weak<Size>,
}

// SAFETY: the memory is the region's alone, and its blocks are handed out one by one: each is held by one `BlockMut`, or by
// `Block`s that only read it. Everything else in a region is `Send` and `Sync` by itself.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl BlockPool {
    /// A pool without memory.
    pub fn new() -> BlockPool {
        let size = |kib: usize| Arc::new(Size { bytes: kib << 10, open: Mutex::default() });
        BlockPool { sizes: SIZES_KIB.map(size) }
    }

    /// Memory for a block of `bytes`, with anything in it. Blocks above 64 KiB have memory of their own.
    pub fn take(&self, bytes: usize) -> BlockMut {
        match self.sizes.iter().find(|size| size.bytes >= bytes) {
            Some(size) if bytes > 0 => size.take(bytes),
            _ => BlockMut::alone(bytes),
        }
    }
}

impl Default for BlockPool {
    fn default() -> BlockPool {
        BlockPool::new()
    }
}

impl Size {
    fn take(self: &Arc<Size>, bytes: usize) -> BlockMut {
        let mut open = self.open.lock();
        if let Some(region) = open.regions.last().cloned() {
            let mut free = region.free.lock();
            let number = free.pop();
            if free.is_empty() {
                open.regions.pop();
            }
            drop(free);
            if let Some(number) = number {
                drop(open);
                return Region::hand_out(region, number, bytes);
            }
        }
        let region_bytes = if open.has_begun { HUGE_PAGE_BYTES } else { FIRST_REGION_BYTES };
        open.has_begun = true;
        // Others need not wait for the memory to be cleared.
        drop(open);
        let count = (region_bytes / self.bytes).max(1);
        let region = Arc::new(Region::new((region_bytes, self.bytes, count), Arc::downgrade(self)));
        let number = region.free.lock().pop().unwrap_or_default();
        if count > 1 {
            self.open.lock().regions.push(region.clone());
        }
        Region::hand_out(region, number, bytes)
    }

    /// Takes a block back.
    fn give_back(&self, region: &Arc<Region>, number: u32) {
        let mut open = self.open.lock();
        let free = {
            let mut free = region.free.lock();
            free.push(number);
            free.len()
        };
        if free == 1 {
            // Regions that were full until now are found next to last: the one that is being filled stays the last.
            let place = open.regions.len().saturating_sub(1);
            open.regions.insert(place, region.clone());
        }
        if free == region.holders.len() {
            let is_whole = |other: &Arc<Region>| {
                !Arc::ptr_eq(other, region) && other.free.lock().len() == other.holders.len()
            };
            if open.regions.iter().any(is_whole) {
                open.regions.retain(|other| !Arc::ptr_eq(other, region));
            }
        }
    }
}

impl Region {
    fn new((bytes, block_bytes, count): (usize, usize, usize), size: Weak<Size>) -> Region {
        let align = if bytes == HUGE_PAGE_BYTES { HUGE_PAGE_BYTES } else { ALIGN };
        let Ok(layout) = Layout::from_size_align(bytes, align) else {
            // More than the half of all addresses: no allocator has that.
            handle_alloc_error(Layout::new::<u8>())
        };
        // SAFETY: `bytes` is not 0: a region has room for a block, and blocks of no bytes get a region of one.
        let memory = unsafe { alloc_zeroed(layout) };
        let Some(memory) = NonNull::new(memory) else { handle_alloc_error(layout) };
        if bytes == HUGE_PAGE_BYTES {
            // SAFETY: nobody has a piece of it yet, and zeroes are what it holds before and afterwards.
            unsafe { renew(memory.as_ptr(), bytes) };
        }
        let holders = std::iter::repeat_with(|| AtomicU32::new(0)).take(count).collect();
        let free = Mutex::new((0..count as u32).rev().collect());
        Region { memory, layout, block_bytes, holders, free, size }
    }

    /// Hands out a block that nobody holds, taken from `free`.
    fn hand_out(region: Arc<Region>, number: u32, bytes: usize) -> BlockMut {
        let at = number as usize * region.block_bytes;
        assert!(at + bytes <= region.layout.size(), "a block lies within its region");
        let holders = &region.holders[number as usize];
        holders.store(1, Ordering::Relaxed);
        let holders = NonNull::from(holders);
        // SAFETY: within the region's memory, as asserted.
        let place = unsafe { region.memory.add(at) };
        // SAFETY: an `Arc`'s pointer is not null.
        let region = unsafe { NonNull::new_unchecked(Arc::into_raw(region).cast_mut()) };
        BlockMut(Block { place, bytes, holders, region })
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout; no block is held, for each held one keeps the region.
        unsafe { dealloc(self.memory.as_ptr(), self.layout) };
    }
}

/// Bytes in memory that many may hold and nobody changes. Cloning shares them. As large as two references.
pub struct Block {
    place: NonNull<u8>,
    bytes: usize,
    /// How many hold it; one of `region`'s.
    holders: NonNull<AtomicU32>,
    /// All holders of a block together have one count of the region's `Arc`.
    region: NonNull<Region>,
}

// SAFETY: a block is read-only memory behind an atomic count, as an `Arc<[u8]>` is.
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}

impl Block {
    /// Bytes of memory that the block takes.
    pub fn footprint(&self) -> usize {
        self.region().block_bytes
    }

    #[inline]
    fn region(&self) -> &Region {
        // SAFETY: the holders of a block keep its region.
        unsafe { self.region.as_ref() }
    }

    #[inline]
    fn holders(&self) -> &AtomicU32 {
        // SAFETY: the region's, and the holders of a block keep that.
        unsafe { self.holders.as_ref() }
    }

    #[cold]
    #[inline(never)]
    fn give_back(&mut self) {
        // SAFETY: the last holder takes over the count that `hand_out` made for all of them.
        let region = unsafe { Arc::from_raw(self.region.as_ptr().cast_const()) };
        if let Some(size) = region.size.upgrade() {
            let number = (self.place.addr().get() - region.memory.addr().get()) / region.block_bytes;
            size.give_back(&region, number as u32);
        }
    }
}

impl Clone for Block {
    #[inline]
    fn clone(&self) -> Block {
        if self.holders().fetch_add(1, Ordering::Relaxed) > HOLDERS_MAX {
            std::process::abort();
        }
        Block { ..*self }
    }
}

impl Drop for Block {
    #[inline]
    fn drop(&mut self) {
        if self.holders().fetch_sub(1, Ordering::Release) != 1 {
            return;
        }
        // What others read of it happened before it is written anew.
        fence(Ordering::Acquire);
        self.give_back();
    }
}

impl Deref for Block {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: within the region's memory, initialised since it was allocated; nobody writes to it while it is held.
        unsafe { std::slice::from_raw_parts(self.place.as_ptr(), self.bytes) }
    }
}

impl AsRef<[u8]> for Block {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl From<&[u8]> for Block {
    fn from(bytes: &[u8]) -> Block {
        let mut block = BlockMut::alone(bytes.len());
        block.copy_from_slice(bytes);
        block.share()
    }
}

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Block of {} bytes", self.bytes)
    }
}

/// A block that one holder fills, before it is shared.
pub struct BlockMut(Block);

impl BlockMut {
    /// A block of zeroes with memory of its own, from no pool.
    pub fn alone(bytes: usize) -> BlockMut {
        let room = bytes.max(1);
        Region::hand_out(Arc::new(Region::new((room, room, 1), Weak::new())), 0, bytes)
    }

    /// Ends the filling.
    pub fn share(self) -> Block {
        self.0
    }
}

impl Deref for BlockMut {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl DerefMut for BlockMut {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as with `Block`, and this is the only holder: it was handed out with a count of one and cannot be cloned.
        unsafe { std::slice::from_raw_parts_mut(self.0.place.as_ptr(), self.0.bytes) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(pool: &BlockPool, bytes: usize, with: u8) -> Block {
        let mut block = pool.take(bytes);
        block.fill(with);
        block.share()
    }

    /// Whether all bytes are these; under Miri, which takes long for each, some of them.
    fn has_only(block: &[u8], byte: u8) -> bool {
        block.iter().step_by(if cfg!(miri) { 997 } else { 1 }).all(|other| *other == byte)
    }

    fn open_regions(pool: &BlockPool, bytes: usize) -> usize {
        let size = pool.sizes.iter().find(|size| size.bytes >= bytes).unwrap();
        size.open.lock().regions.len()
    }

    #[test]
    fn blocks_keep_their_bytes_while_others_come_and_go() {
        let pool = BlockPool::new();
        let lengths = [1, 700, 1024, 1025, 4096, 16 << 10, 60_000, 64 << 10, (64 << 10) + 1];
        let mut held = Vec::new();
        for round in 0..6_u8 {
            for bytes in lengths {
                held.push((bytes, round, filled(&pool, bytes, round)));
            }
            // Every third goes.
            let mut number = 0;
            held.retain(|_| {
                number += 1;
                number % 3 != 0
            });
            for (bytes, with, block) in &held {
                assert_eq!(block.len(), *bytes);
                assert!(has_only(block, *with));
                assert!(block.footprint() >= *bytes && block.footprint() <= (bytes * 3 / 2).max(2048));
            }
        }
        assert_eq!(pool.take(0).share().len(), 0);
        assert_eq!(&*Block::from([1, 2, 3].as_slice()), [1, 2, 3]);
    }

    #[test]
    fn a_block_outlives_its_pool_and_is_held_by_each_clone() {
        let pool = BlockPool::new();
        let block = filled(&pool, 4096, 9);
        let clones = vec![block.clone(); 10];
        drop(block);
        drop(pool);
        assert!(clones.iter().all(|clone| has_only(clone, 9)));
    }

    #[test]
    fn memory_is_used_again_and_goes_back_but_for_one_region_of_a_size() {
        let pool = BlockPool::new();
        let bytes = 64 << 10;
        let first = filled(&pool, bytes, 1);
        let place = first.place;
        drop(first);
        let again = filled(&pool, bytes, 2);
        assert_eq!(again.place, place, "the only block of the first region");
        // The last free block of a region comes and goes.
        let rest: Vec<Block> = (0..HUGE_PAGE_BYTES / bytes - 1).map(|_| filled(&pool, bytes, 3)).collect();
        for _ in 0..100 {
            drop(filled(&pool, bytes, 4));
        }
        assert_eq!(open_regions(&pool, bytes), 1, "a region is found once");
        drop(rest);
        let many: Vec<Block> = (0..3 * (HUGE_PAGE_BYTES / bytes)).map(|_| filled(&pool, bytes, 3)).collect();
        drop(many);
        assert_eq!(open_regions(&pool, bytes), 1, "what nobody holds goes back");
        assert!(has_only(&again, 2));
        drop(again);
        assert_eq!(open_regions(&pool, bytes), 1);
    }

    #[test]
    fn threads_may_share_blocks_and_give_them_back() {
        let pool = BlockPool::new();
        let rounds = if cfg!(miri) { 20 } else { 2_000 };
        std::thread::scope(|scope| {
            for thread in 0..3_u8 {
                let pool = &pool;
                scope.spawn(move || {
                    for round in 0..rounds {
                        let block = filled(pool, 60_000, thread);
                        let other = block.clone();
                        if round % 7 == 0 {
                            scope.spawn(move || assert!(has_only(&other, thread)));
                        }
                        assert!(has_only(&block, thread));
                    }
                });
            }
        });
    }
}
