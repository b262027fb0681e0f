//! Memory for blocks of files: pieces of a few sizes, cut out of regions that the system keeps in huge pages.
//!
//! Whoever reads at random places of many blocks waits for the processor to find each page, if pages are small, and for the
//! count of a block's holders, if it stands before the block's bytes. Here a region of blocks is one huge page, and the counts
//! of all its blocks stand together (`seats`), so close that they stay in the processor's caches.
//!
//! Whoever has seen a block may keep a hint of four bytes in place of the block, and ask the pool whether that one is still there.
//!
//! A region belongs to one size. It goes back to the system when none of its blocks is held and its size has another such
//! region.

#![expect(unsafe_code, reason = "blocks are shared without a lock; each block of code says why it is sound")]

mod seats;

pub use seats::BlockHint;

use crate::account::uncounted;
use crate::huge_pages::{HUGE_PAGE_BYTES, renew};
use crate::prefetch::prefetch_lines;
use parking_lot::Mutex;
use seats::{Seat, Seats, Table};
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::atomic::{Ordering, fence};
use std::sync::{Arc, Weak};

/// Sizes of blocks, KiB: a block has the least that holds it: from 2 KiB on that is at most half as much again as it needs.
const SIZES_KIB: [usize; 12] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64];
/// Bytes of a size's first region: whoever reads little has little.
const FIRST_REGION_BYTES: usize = 64 << 10;
/// Where blocks begin: at a cache line.
const ALIGN: usize = 64;
/// Cache lines of a block that are asked for when it is found.
const LINES_AHEAD: usize = 4;
/// Holders of a block at which the process ends, as with `Arc`: a count that came round would free a block in use.
const HOLDERS_MAX: u32 = i32::MAX as u32;

/// Gives out blocks. All of them may outlive it. Cloning shares it.
#[derive(Clone)]
pub struct BlockPool(Arc<Pool>);

struct Pool {
    sizes: [Arc<Size>; SIZES_KIB.len()],
    table: Arc<Table>,
}

/// The regions of one size that have room.
struct Size {
    bytes: usize,
    open: Mutex<Open>,
    table: Arc<Table>,
    /// Seats of whole regions that went back to the system, for the next ones.
    spare: Mutex<Vec<Arc<Seats>>>,
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
    seats: Arc<Seats>,
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
        let table = Arc::new(Table::new());
        let size = |kib: usize| {
            let (open, spare) = (Mutex::default(), Mutex::default());
            Arc::new(Size { bytes: kib << 10, open, table: table.clone(), spare })
        };
        BlockPool(Arc::new(Pool { sizes: SIZES_KIB.map(size), table: table.clone() }))
    }

    /// Memory for a block of `bytes`, with anything in it. Blocks above 64 KiB have memory of their own.
    pub fn take(&self, bytes: usize) -> BlockMut {
        match self.0.sizes.iter().find(|size| size.bytes >= bytes) {
            Some(size) if bytes > 0 => size.take(bytes),
            _ => BlockMut::alone(bytes),
        }
    }

    /// The block of this name (not 0) that was seen where the hint says, if somebody still holds it: one more holder. It will be
    /// read from its byte `from` on; `usize::MAX` if that is not known.
    #[inline]
    pub fn find(&self, hint: BlockHint, name: u64, from: usize) -> Option<Block> {
        let (seats, number) = self.0.table.find(hint)?;
        let seat = seats.all.get(number)?;
        if from < seats.block_bytes {
            // Whatever is there: what stands below holds up all reads behind it.
            prefetch_lines(seats.place(number).wrapping_add(from), LINES_AHEAD);
        }
        if !seat.join() {
            return None;
        }
        // SAFETY: we are one of a block's holders now, who keep its region, which was stored before the block began; its
        // memory has all its blocks.
        let block = unsafe {
            Block {
                place: NonNull::new_unchecked(seats.place(number)),
                bytes: seat.bytes(),
                seat: NonNull::from(seat),
                region: NonNull::new_unchecked(seats.region()),
            }
        };
        // Until now it may be any block, or one that is being filled.
        if name == 0 || !seat.has_name(name) {
            return None;
        }
        seat.mark_found();
        Some(block)
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
        let is_whole = |seats: &Arc<Seats>| seats.all.len() == count;
        let spare = self.spare.lock().pop_if(|seats| is_whole(seats));
        let seats = spare.unwrap_or_else(|| self.table.add(count, self.bytes));
        let region = Region::new(region_bytes, seats, Arc::downgrade(self));
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
        if free == region.seats.all.len() {
            let is_whole = |other: &Arc<Region>| {
                !Arc::ptr_eq(other, region) && other.free.lock().len() == other.seats.all.len()
            };
            if open.regions.iter().any(is_whole) {
                open.regions.retain(|other| !Arc::ptr_eq(other, region));
            }
        }
    }
}

impl Region {
    /// With room for a block for each of the seats, which served no region or one that is gone.
    fn new(bytes: usize, seats: Arc<Seats>, size: Weak<Size>) -> Arc<Region> {
        let align = if bytes == HUGE_PAGE_BYTES { HUGE_PAGE_BYTES } else { ALIGN };
        let Ok(layout) = Layout::from_size_align(bytes, align) else {
            // More than the half of all addresses: no allocator has that.
            handle_alloc_error(Layout::new::<u8>())
        };
        // SAFETY: `bytes` is not 0: a region has room for a block, and blocks of no bytes get a region of one.
        let memory = uncounted(|| unsafe { alloc_zeroed(layout) });
        let Some(memory) = NonNull::new(memory) else { handle_alloc_error(layout) };
        if bytes == HUGE_PAGE_BYTES {
            // SAFETY: nobody has a piece of it yet, and zeroes are what it holds before and afterwards.
            unsafe { renew(memory.as_ptr(), bytes) };
        }
        let free = Mutex::new((0..seats.all.len() as u32).rev().collect());
        let region = Arc::new(Region { memory, layout, seats, free, size });
        region.seats.serve(Arc::as_ptr(&region).cast_mut(), memory.as_ptr());
        region
    }

    /// Hands out a block that nobody holds, taken from `free`.
    fn hand_out(region: Arc<Region>, number: u32, bytes: usize) -> BlockMut {
        let at = number as usize * region.seats.block_bytes;
        assert!(at + bytes <= region.layout.size(), "a block lies within its region");
        let seat = &region.seats.all[number as usize];
        seat.begin(bytes);
        let seat = NonNull::from(seat);
        // SAFETY: within the region's memory, as asserted.
        let place = unsafe { region.memory.add(at) };
        // SAFETY: an `Arc`'s pointer is not null.
        let region = unsafe { NonNull::new_unchecked(Arc::into_raw(region).cast_mut()) };
        BlockMut(Block { place, bytes, seat, region })
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        if self.layout.size() == HUGE_PAGE_BYTES
            && let Some(size) = self.size.upgrade()
        {
            size.spare.lock().push(self.seats.clone());
        }
        // SAFETY: allocated with this layout; no block is held, for each held one keeps the region.
        uncounted(|| unsafe { dealloc(self.memory.as_ptr(), self.layout) });
    }
}

/// Bytes in memory that many may hold and nobody changes. Cloning shares them. As large as two references.
pub struct Block {
    place: NonNull<u8>,
    bytes: usize,
    /// One of `region`'s.
    seat: NonNull<Seat>,
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
        self.region().seats.block_bytes
    }

    /// Gives the block a name, not 0, by which it can be found where it is. All blocks of a pool that have the same name at one
    /// time have the same bytes, or some the first of the others'.
    pub fn set_name(&self, name: u64) {
        self.seat().set_name(name);
    }

    /// Where it is, for `BlockPool::find`; `None` for a block that cannot be found.
    pub fn hint(&self) -> Option<BlockHint> {
        let region = self.region();
        region.seats.hint((self.place.addr().get() - region.memory.addr().get()) / region.seats.block_bytes)
    }

    /// Whether it was found by a hint since this was last asked.
    pub fn take_found(&self) -> bool {
        self.seat().take_found()
    }

    #[inline]
    fn region(&self) -> &Region {
        // SAFETY: the holders of a block keep its region.
        unsafe { self.region.as_ref() }
    }

    #[inline]
    fn seat(&self) -> &Seat {
        // SAFETY: the region's, and the holders of a block keep that.
        unsafe { self.seat.as_ref() }
    }

    #[cold]
    #[inline(never)]
    fn give_back(&mut self) {
        // SAFETY: the last holder takes over the count that `hand_out` made for all of them.
        let region = unsafe { Arc::from_raw(self.region.as_ptr().cast_const()) };
        if let Some(size) = region.size.upgrade() {
            let number = (self.place.addr().get() - region.memory.addr().get()) / region.seats.block_bytes;
            size.give_back(&region, number as u32);
        }
    }
}

impl Clone for Block {
    #[inline]
    fn clone(&self) -> Block {
        if self.seat().holders.fetch_add(1, Ordering::Relaxed) > HOLDERS_MAX {
            std::process::abort();
        }
        Block { ..*self }
    }
}

impl Drop for Block {
    #[inline]
    fn drop(&mut self) {
        if self.seat().holders.fetch_sub(1, Ordering::Release) != 1 {
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
        Region::hand_out(Region::new(room, Seats::single(room), Weak::new()), 0, bytes)
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
        let size = pool.0.sizes.iter().find(|size| size.bytes >= bytes).unwrap();
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
    fn a_named_block_is_found_where_it_was_seen_as_long_as_it_is_held() {
        let pool = BlockPool::new();
        let block = filled(&pool, 4096, 1);
        let hint = block.hint().unwrap();
        assert!(pool.find(hint, 7, 0).is_none() && pool.find(hint, 0, 0).is_none(), "it has no name yet");
        block.set_name(7);
        let found = pool.find(hint, 7, 0).unwrap();
        assert!(has_only(&found, 1) && found.len() == 4096 && block.take_found() && !block.take_found());
        assert!(pool.find(hint, 8, 0).is_none());
        drop(block);
        assert!(pool.find(hint, 7, 0).is_some(), "the one that was found holds it");
        drop(found);
        assert!(pool.find(hint, 7, 0).is_none());
        let other = filled(&pool, 4000, 2);
        assert_eq!(other.hint(), Some(hint), "in the same place");
        assert!(pool.find(hint, 7, 0).is_none(), "another block, without a name");
        assert_eq!(BlockMut::alone(10).share().hint(), None);
        assert_eq!(filled(&pool, 100 << 10, 3).hint(), None, "longer than blocks of a pool");
    }

    #[test]
    fn hints_into_memory_that_went_back_lead_nowhere() {
        let pool = BlockPool::new();
        let bytes = 64 << 10;
        let per_region = HUGE_PAGE_BYTES / bytes;
        let named = |number: usize| {
            let block = filled(&pool, bytes, number as u8);
            block.set_name(number as u64 + 1);
            block
        };
        for _ in 0..3 {
            let blocks: Vec<Block> = (0..4 * per_region).map(named).collect();
            let hints: Vec<BlockHint> = blocks.iter().filter_map(Block::hint).collect();
            assert_eq!(hints.len(), blocks.len());
            let find = |(number, hint): (usize, &BlockHint)| pool.find(*hint, number as u64 + 1, 0);
            assert!(
                hints.iter().enumerate().all(|at| find(at).is_some_and(|block| has_only(&block, at.0 as u8)))
            );
            drop(blocks);
            assert!(hints.iter().enumerate().all(|at| find(at).is_none()));
        }
        let highest = filled(&pool, bytes, 0).hint().unwrap().get().get() >> 11;
        assert!(highest <= 6, "seats of regions that went back serve again: {highest}");
    }

    #[test]
    fn threads_find_the_block_they_ask_for_or_none_while_others_come_and_go() {
        let pool = BlockPool::new();
        let (rounds, places) = if cfg!(miri) { (60, 2) } else { (20_000, 4) };
        let hints: Vec<std::sync::atomic::AtomicU32> = (0..places).map(|_| 0.into()).collect();
        let put = |name: u64| {
            let block = filled(&pool, 60_000, name as u8);
            block.set_name(name);
            let place = &hints[name as usize % hints.len()];
            place.store(block.hint().map_or(0, |hint| hint.get().get()), Ordering::Relaxed);
            block
        };
        std::thread::scope(|scope| {
            let finder = |_| {
                scope.spawn(|| {
                    for round in 0..rounds * 4 {
                        for name in [round / 4, round / 4 + 1] {
                            let hint = hints[name as usize % hints.len()].load(Ordering::Relaxed);
                            let hint = std::num::NonZeroU32::new(hint).map(BlockHint::from);
                            if let Some(block) = hint.and_then(|hint| pool.find(hint, name, 0)) {
                                assert!(has_only(&block, name as u8));
                            }
                        }
                    }
                })
            };
            let finders: Vec<_> = (0..2).map(finder).collect();
            let mut held = std::collections::VecDeque::new();
            for name in 1..rounds {
                held.push_back(put(name));
                if held.len() > 3 {
                    held.pop_front();
                }
            }
            for finder in finders {
                finder.join().unwrap();
            }
        });
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
