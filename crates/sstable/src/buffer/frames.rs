//! Memory for blocks of files: frames of a few sizes, cut out of regions that the kernel keeps in huge pages.
//!
//! Random reads of many blocks suffer a TLB miss per block if pages are small, and a cache miss for the block's
//! reference count if that precedes the block's bytes. Here a region of blocks is one huge page, and the counts of all
//! its blocks lie together (`metadata`), so close that they stay in the processor's caches.
//!
//! Frames are numbered. Whoever knows a frame's number and the name of the block that it expects there may pin the
//! block (`FramePool::find`), without a lock, or learn that another block is there by now.
//!
//! A region has blocks of one size. It is freed when none of its blocks is held and the size has another such region.

#![expect(unsafe_code, reason = "blocks are shared without a lock; each block of code says why it is sound")]

mod metadata;

pub use metadata::FrameNumber;

use helenus_host::account::uncounted;
use helenus_host::prefetch_lines;
use helenus_host::{HUGE_PAGE_BYTES, remap_as_huge_pages};
use metadata::{FrameMeta, RegionFrames, Table};
use parking_lot::Mutex;
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::atomic::{Ordering, fence};
use std::sync::{Arc, Weak};

/// Sizes of blocks, KiB. A block gets the smallest size that fits: from 2 KiB to 64 KiB, at most one and a half times its
/// bytes. Above 64 KiB there are only the powers of two that compression chunks have.
const SIZES_KIB: [usize; 20] =
    [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384];
/// Size of the first region of each block size: a process that reads little uses little.
const FIRST_REGION_BYTES: usize = 64 << 10;
/// Alignment of blocks: a cache line.
const ALIGN: usize = 64;
/// Cache lines that are prefetched when a block is found.
const LINES_AHEAD: usize = 4;
/// The number of holders at which the process aborts, as with `Arc`: an overflow would free a block in use.
const HOLDERS_MAX: u32 = i32::MAX as u32;

/// Allocates blocks, which may outlive the pool. Cloning shares it.
#[derive(Clone)]
pub struct FramePool(Arc<Pool>);

struct Pool {
    sizes: [Arc<Size>; SIZES_KIB.len()],
    table: Arc<Table>,
}

/// The regions of one size that have free blocks.
struct Size {
    bytes: usize,
    open: Mutex<Open>,
    table: Arc<Table>,
    /// Frames' metadata of whole regions that were freed, for the next regions.
    spare: Mutex<Vec<Arc<RegionFrames>>>,
}

#[derive(Default)]
struct Open {
    /// Each region once, while it has a free block.
    regions: Vec<Arc<Region>>,
    /// Whether the small first region was created.
    has_begun: bool,
}

/// Memory of blocks of one size.
struct Region {
    memory: NonNull<u8>,
    layout: Layout,
    frames: Arc<RegionFrames>,
    /// Free blocks.
    free: Mutex<Vec<u32>>,
    /// The size that blocks return to, while the pool exists; a single block from no pool returns to none.
    size: Weak<Size>,
}

// SAFETY: the region owns the memory and hands its blocks out one by one: each is held by one `BlockMut`, or by
// `Block`s that only read it. The other fields are `Send` and `Sync` themselves.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl FramePool {
    /// A pool without memory.
    pub fn new() -> FramePool {
        let table = Arc::new(Table::new());
        let size = |kib: usize| {
            let (open, spare) = (Mutex::default(), Mutex::default());
            Arc::new(Size { bytes: kib << 10, open, table: table.clone(), spare })
        };
        FramePool(Arc::new(Pool { sizes: SIZES_KIB.map(size), table: table.clone() }))
    }

    /// Memory for a block of `bytes`, with undefined content. A block above 16 MiB gets its own allocation, and has no
    /// number by which it can be found.
    pub fn take(&self, bytes: usize) -> BlockMut {
        match self.0.sizes.iter().find(|size| size.bytes >= bytes) {
            Some(size) if bytes > 0 => size.take(bytes),
            _ => BlockMut::unpooled(bytes),
        }
    }

    /// The block of this name (not 0) in the frame with this number, if it is still held; adds a holder. The caller will
    /// read it from byte `from` on; `usize::MAX` if that is not known.
    #[inline]
    pub fn find(&self, number: FrameNumber, name: u64, from: usize) -> Option<Block> {
        let (frames, number) = self.0.table.find(number)?;
        let frame = frames.all.get(number)?;
        if from < frames.block_bytes {
            // Prefetch whatever block is there now: waiting for the code below would delay all reads of the block.
            prefetch_lines(frames.address(number).wrapping_add(from), LINES_AHEAD);
        }
        if !frame.join() {
            return None;
        }
        // SAFETY: we are now a holder of a block, and holders keep its region, which was stored before the block
        // began; the region's memory contains all its blocks.
        let block = unsafe {
            Block {
                address: NonNull::new_unchecked(frames.address(number)),
                bytes: frame.bytes(),
                frame: NonNull::from(frame),
                region: NonNull::new_unchecked(frames.region()),
            }
        };
        // Until this check it may be any block, or one that is being filled.
        if name == 0 || !frame.has_name(name) {
            return None;
        }
        frame.mark_found();
        Some(block)
    }
}

impl Default for FramePool {
    fn default() -> FramePool {
        FramePool::new()
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
        let region_bytes = if open.has_begun { HUGE_PAGE_BYTES } else { FIRST_REGION_BYTES }.max(self.bytes);
        open.has_begun = true;
        // Unlocked, so that others need not wait while the memory is cleared.
        drop(open);
        let count = (region_bytes / self.bytes).max(1);
        let is_whole = |frames: &Arc<RegionFrames>| frames.all.len() == count;
        let spare = self.spare.lock().pop_if(|frames| is_whole(frames));
        let frames = spare.unwrap_or_else(|| self.table.add(count, self.bytes));
        let region = Region::new(region_bytes, frames, Arc::downgrade(self));
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
            // A region that was full is inserted before the last one: the region that is being filled stays the last.
            let place = open.regions.len().saturating_sub(1);
            open.regions.insert(place, region.clone());
        }
        if free == region.frames.all.len() {
            let is_whole = |other: &Arc<Region>| {
                !Arc::ptr_eq(other, region) && other.free.lock().len() == other.frames.all.len()
            };
            if open.regions.iter().any(is_whole) {
                open.regions.retain(|other| !Arc::ptr_eq(other, region));
            }
        }
    }
}

impl Region {
    /// A region with a block for each of the frames, which belong to no other region (any more).
    fn new(bytes: usize, frames: Arc<RegionFrames>, size: Weak<Size>) -> Arc<Region> {
        let is_huge = bytes >= HUGE_PAGE_BYTES && bytes.is_multiple_of(HUGE_PAGE_BYTES);
        let align = if is_huge { HUGE_PAGE_BYTES } else { ALIGN };
        let Ok(layout) = Layout::from_size_align(bytes, align) else {
            // More than half of the address space: no allocator has that much.
            handle_alloc_error(Layout::new::<u8>())
        };
        // SAFETY: `bytes` is not 0: a region has space for a block, and empty blocks get a region of one byte.
        let memory = uncounted(|| unsafe { alloc_zeroed(layout) });
        let Some(memory) = NonNull::new(memory) else { handle_alloc_error(layout) };
        if is_huge {
            // SAFETY: nobody has a piece of it yet, and it holds zeroes before and afterwards.
            unsafe { remap_as_huge_pages(memory.as_ptr(), bytes) };
        }
        let free = Mutex::new((0..frames.all.len() as u32).rev().collect());
        let region = Arc::new(Region { memory, layout, frames, free, size });
        region.frames.serve(Arc::as_ptr(&region).cast_mut(), memory.as_ptr());
        region
    }

    /// Hands out a free block that was taken from `free`.
    fn hand_out(region: Arc<Region>, number: u32, bytes: usize) -> BlockMut {
        let at = number as usize * region.frames.block_bytes;
        assert!(at + bytes <= region.layout.size(), "a block lies within its region");
        let frame = &region.frames.all[number as usize];
        frame.begin(bytes);
        let frame = NonNull::from(frame);
        // SAFETY: within the region's memory, as asserted.
        let place = unsafe { region.memory.add(at) };
        // SAFETY: an `Arc`'s pointer is not null.
        let region = unsafe { NonNull::new_unchecked(Arc::into_raw(region).cast_mut()) };
        BlockMut(Block { address: place, bytes, frame, region })
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // Those of a small first region would not fit the regions after it.
        if self.layout.size() >= HUGE_PAGE_BYTES
            && let Some(size) = self.size.upgrade()
        {
            size.spare.lock().push(self.frames.clone());
        }
        // SAFETY: allocated with this layout; no block is held, because each held block keeps the region.
        uncounted(|| unsafe { dealloc(self.memory.as_ptr(), self.layout) });
    }
}

/// Read-only bytes that several holders share. Cloning adds a holder. As large as two references.
pub struct Block {
    address: NonNull<u8>,
    bytes: usize,
    /// The block's frame, in `region`.
    frame: NonNull<FrameMeta>,
    /// All holders of a block together own one reference count of the region's `Arc`.
    region: NonNull<Region>,
}

// SAFETY: a block is read-only memory behind an atomic count, as an `Arc<[u8]>` is.
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}

impl Block {
    /// Bytes of memory that the block occupies.
    pub fn footprint(&self) -> usize {
        self.region().frames.block_bytes
    }

    /// Gives the block a name, not 0, by which `FramePool::find` recognises it. If several blocks of a pool have the
    /// same name at one time, they have the same bytes, or one is a prefix of another.
    pub fn set_name(&self, name: u64) {
        self.frame().set_name(name);
    }

    /// The number of its frame; `None` for a block from no pool.
    pub fn frame_number(&self) -> Option<FrameNumber> {
        let region = self.region();
        region.frames.frame_number(
            (self.address.addr().get() - region.memory.addr().get()) / region.frames.block_bytes,
        )
    }

    /// Whether `FramePool::find` found the block since the last call.
    pub fn take_found(&self) -> bool {
        self.frame().take_found()
    }

    #[inline]
    fn region(&self) -> &Region {
        // SAFETY: the holders of a block keep its region.
        unsafe { self.region.as_ref() }
    }

    #[inline]
    fn frame(&self) -> &FrameMeta {
        // SAFETY: the frame is the region's, and holders of a block keep the region.
        unsafe { self.frame.as_ref() }
    }

    #[cold]
    #[inline(never)]
    fn give_back(&mut self) {
        // SAFETY: the last holder takes over the count that `hand_out` made for all of them.
        let region = unsafe { Arc::from_raw(self.region.as_ptr().cast_const()) };
        if let Some(size) = region.size.upgrade() {
            let number = (self.address.addr().get() - region.memory.addr().get()) / region.frames.block_bytes;
            size.give_back(&region, number as u32);
        }
    }
}

impl Clone for Block {
    #[inline]
    fn clone(&self) -> Block {
        if self.frame().holders.fetch_add(1, Ordering::Relaxed) > HOLDERS_MAX {
            std::process::abort();
        }
        Block { ..*self }
    }
}

impl Drop for Block {
    #[inline]
    fn drop(&mut self) {
        if self.frame().holders.fetch_sub(1, Ordering::Release) != 1 {
            return;
        }
        // All reads by other holders happen before the memory is overwritten.
        fence(Ordering::Acquire);
        self.give_back();
    }
}

impl Deref for Block {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: within the region's memory, initialised since it was allocated; nobody writes to it while it is held.
        unsafe { std::slice::from_raw_parts(self.address.as_ptr(), self.bytes) }
    }
}

impl AsRef<[u8]> for Block {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl From<&[u8]> for Block {
    fn from(bytes: &[u8]) -> Block {
        let mut block = BlockMut::unpooled(bytes.len());
        block.copy_from_slice(bytes);
        block.share()
    }
}

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Block of {} bytes", self.bytes)
    }
}

/// A block with one holder, which fills it before it is shared.
pub struct BlockMut(Block);

impl BlockMut {
    /// A block of zeroes with its own allocation, from no pool.
    pub fn unpooled(bytes: usize) -> BlockMut {
        let room = bytes.max(1);
        Region::hand_out(Region::new(room, RegionFrames::single(room), Weak::new()), 0, bytes)
    }

    /// Turns the filled block into a shared one.
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
        // SAFETY: as with `Block`, and this is the only holder: it was handed out with a count of one and cannot be
        // cloned.
        unsafe { std::slice::from_raw_parts_mut(self.0.address.as_ptr(), self.0.bytes) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(pool: &FramePool, bytes: usize, with: u8) -> Block {
        let mut block = pool.take(bytes);
        block.fill(with);
        block.share()
    }

    /// Whether all bytes equal `byte`; under Miri, where each takes long, only some are compared.
    fn has_only(block: &[u8], byte: u8) -> bool {
        block.iter().step_by(if cfg!(miri) { 997 } else { 1 }).all(|other| *other == byte)
    }

    fn open_regions(pool: &FramePool, bytes: usize) -> usize {
        let size = pool.0.sizes.iter().find(|size| size.bytes >= bytes).unwrap();
        size.open.lock().regions.len()
    }

    #[test]
    fn blocks_keep_their_bytes_while_others_come_and_go() {
        let pool = FramePool::new();
        let lengths = [1, 700, 1024, 1025, 4096, 16 << 10, 60_000, 64 << 10, (64 << 10) + 1, 256 << 10];
        let mut held = Vec::new();
        for round in 0..6_u8 {
            for bytes in lengths {
                held.push((bytes, round, filled(&pool, bytes, round)));
            }
            // Drop every third block.
            let mut number = 0;
            held.retain(|_| {
                number += 1;
                number % 3 != 0
            });
            for (bytes, with, block) in &held {
                assert_eq!(block.len(), *bytes);
                assert!(has_only(block, *with));
                assert!(block.footprint() >= *bytes && block.footprint() <= (bytes * 2).max(2048));
            }
        }
        assert_eq!(pool.take(0).share().len(), 0);
        assert_eq!(&*Block::from([1, 2, 3].as_slice()), [1, 2, 3]);
    }

    #[test]
    fn a_block_outlives_its_pool_and_is_held_by_each_clone() {
        let pool = FramePool::new();
        let block = filled(&pool, 4096, 9);
        let clones = vec![block.clone(); 10];
        drop(block);
        drop(pool);
        assert!(clones.iter().all(|clone| has_only(clone, 9)));
    }

    #[test]
    fn memory_is_used_again_and_goes_back_but_for_one_region_of_a_size() {
        let pool = FramePool::new();
        let bytes = 64 << 10;
        let first = filled(&pool, bytes, 1);
        let place = first.address;
        drop(first);
        let again = filled(&pool, bytes, 2);
        assert_eq!(again.address, place, "the only block of the first region");
        // Take and return the last free block of a region.
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
        let pool = FramePool::new();
        let block = filled(&pool, 4096, 1);
        let frame = block.frame_number().unwrap();
        assert!(pool.find(frame, 7, 0).is_none() && pool.find(frame, 0, 0).is_none(), "it has no name yet");
        block.set_name(7);
        let found = pool.find(frame, 7, 0).unwrap();
        assert!(has_only(&found, 1) && found.len() == 4096 && block.take_found() && !block.take_found());
        assert!(pool.find(frame, 8, 0).is_none());
        drop(block);
        assert!(pool.find(frame, 7, 0).is_some(), "the one that was found holds it");
        drop(found);
        assert!(pool.find(frame, 7, 0).is_none());
        let other = filled(&pool, 4000, 2);
        assert_eq!(other.frame_number(), Some(frame), "in the same place");
        assert!(pool.find(frame, 7, 0).is_none(), "another block, without a name");
        assert_eq!(BlockMut::unpooled(10).share().frame_number(), None);
        assert_eq!(filled(&pool, (16 << 20) + 1, 3).frame_number(), None, "longer than blocks of a pool");
    }

    #[test]
    fn numbers_of_frames_whose_memory_went_back_find_nothing() {
        let pool = FramePool::new();
        let bytes = 64 << 10;
        let per_region = HUGE_PAGE_BYTES / bytes;
        let named = |number: usize| {
            let block = filled(&pool, bytes, number as u8);
            block.set_name(number as u64 + 1);
            block
        };
        for _ in 0..3 {
            let blocks: Vec<Block> = (0..4 * per_region).map(named).collect();
            let numbers: Vec<FrameNumber> = blocks.iter().filter_map(Block::frame_number).collect();
            assert_eq!(numbers.len(), blocks.len());
            let find = |(number, frame): (usize, &FrameNumber)| pool.find(*frame, number as u64 + 1, 0);
            assert!(
                numbers
                    .iter()
                    .enumerate()
                    .all(|at| find(at).is_some_and(|block| has_only(&block, at.0 as u8)))
            );
            drop(blocks);
            assert!(numbers.iter().enumerate().all(|at| find(at).is_none()));
        }
        let highest = filled(&pool, bytes, 0).frame_number().unwrap().get().get() >> 11;
        assert!(highest <= 6, "frames of regions that went back serve again: {highest}");
    }

    #[test]
    fn threads_find_the_block_they_ask_for_or_none_while_others_come_and_go() {
        let pool = FramePool::new();
        let (rounds, places) = if cfg!(miri) { (60, 2) } else { (20_000, 4) };
        let numbers: Vec<std::sync::atomic::AtomicU32> = (0..places).map(|_| 0.into()).collect();
        let put = |name: u64| {
            let block = filled(&pool, 60_000, name as u8);
            block.set_name(name);
            let place = &numbers[name as usize % numbers.len()];
            place.store(block.frame_number().map_or(0, |frame| frame.get().get()), Ordering::Relaxed);
            block
        };
        std::thread::scope(|scope| {
            let finder = |_| {
                scope.spawn(|| {
                    for round in 0..rounds * 4 {
                        for name in [round / 4, round / 4 + 1] {
                            let frame = numbers[name as usize % numbers.len()].load(Ordering::Relaxed);
                            let frame = std::num::NonZeroU32::new(frame).map(FrameNumber::from);
                            if let Some(block) = frame.and_then(|frame| pool.find(frame, name, 0)) {
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
        let pool = FramePool::new();
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
