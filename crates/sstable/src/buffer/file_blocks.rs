//! The table of an open file's blocks: for each block the frame that holds it.
//!
//! A slot has four bytes: the number of a frame. It is read without a lock, and written under the lock of `eviction`. So
//! a reader may find a frame that was given to another block since the slot was read. It notices by the block's name,
//! which each frame has beside its number of holders: the address of the block's slot. Names do not mislead, although a
//! slot of a closed file may have had the same address: a slot has a frame's number only after its own block was put
//! into that frame, and a frame with another block has another name.

#![deny(clippy::indexing_slicing)]

use super::eviction::Eviction;
use super::frames::{Block, FrameNumber};
use super::pool::BufferPool;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

/// Number of slots that are allocated together, when the first of their blocks is kept.
const GROUP: usize = 1024;
/// Marks a slot whose block was evicted. The other bits have the time of the eviction.
const WAS_EVICTED: u32 = 1 << 31;
/// Bits of the time of an eviction.
const TIME_BITS: u32 = WAS_EVICTED - 1;

/// The slots of a file, and the blocks of the file that are kept.
pub(super) struct Slots(Box<[OnceLock<Box<Group>>]>);

/// Neighbouring slots.
struct Group {
    slots: [Slot; GROUP],
    /// The blocks that are kept, by their numbers in the group. Locked under the lock of `eviction`. It is a map, because a
    /// group of which one block is kept must not cost the memory of a thousand.
    kept: Mutex<BTreeMap<u16, Kept>>,
}

/// A block that is kept.
pub(super) struct Kept {
    pub(super) block: Block,
    /// Whether it is in the main queue of `eviction`, and not among the newcomers.
    pub(super) is_main: bool,
}

/// The slot of one block.
pub(super) struct Slot(AtomicU32);

/// What a slot tells about its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It was not kept, or its eviction is forgotten.
    Unknown,
    /// It is kept in this frame.
    Kept(FrameNumber),
    /// It was evicted at this time, counted in evictions modulo 2^31.
    Evicted(u32),
}

impl Slots {
    fn new(blocks: u64) -> Slots {
        Slots((0..blocks.div_ceil(GROUP as u64)).map(|_| OnceLock::new()).collect())
    }

    /// The slot of a block; `None` if the file has no such block, or none of its neighbours was ever kept.
    #[inline]
    pub(super) fn get(&self, number: u64) -> Option<&Slot> {
        let number = usize::try_from(number).ok()?;
        self.0.get(number / GROUP)?.get()?.slots.get(number % GROUP)
    }

    /// The slot of a block, with its memory; `None` if the file has no such block.
    pub(super) fn make(&self, number: u64) -> Option<&Slot> {
        let number = usize::try_from(number).ok()?;
        let empty = || {
            let slots = [const { Slot(AtomicU32::new(0)) }; GROUP];
            Box::new(Group { slots, kept: Mutex::default() })
        };
        self.0.get(number / GROUP)?.get_or_init(empty).slots.get(number % GROUP)
    }

    /// Whether a block of the file may be kept.
    pub(super) fn has_any(&self) -> bool {
        self.0.iter().any(|group| group.get().is_some())
    }

    /// Takes out all blocks.
    pub(super) fn take_all(&self) -> Vec<Kept> {
        let groups = self.0.iter().filter_map(OnceLock::get);
        groups.flat_map(|group| std::mem::take(&mut *group.kept.lock()).into_values()).collect()
    }

    /// Does something with a block that is kept, or with its absence; `None` if `make` was never called for it.
    pub(super) fn with_kept<T>(&self, number: u64, run: impl FnOnce(&mut Option<Kept>) -> T) -> Option<T> {
        let number = usize::try_from(number).ok()?;
        let mut kept = self.0.get(number / GROUP)?.get()?.kept.lock();
        let place = (number % GROUP) as u16;
        let mut block = kept.remove(&place);
        let done = run(&mut block);
        if let Some(block) = block {
            kept.insert(place, block);
        }
        Some(done)
    }
}

impl Slot {
    #[inline]
    pub(super) fn state(&self) -> State {
        let bits = self.0.load(Ordering::Relaxed);
        match NonZeroU32::new(bits) {
            None => State::Unknown,
            Some(number) if bits & WAS_EVICTED == 0 => State::Kept(FrameNumber::from(number)),
            Some(_) => State::Evicted(bits & TIME_BITS),
        }
    }

    pub(super) fn set(&self, state: State) {
        let bits = match state {
            State::Unknown => 0,
            State::Kept(frame) => frame.get().get(),
            State::Evicted(time) => WAS_EVICTED | time & TIME_BITS,
        };
        self.0.store(bits, Ordering::Relaxed);
    }

    /// The name of the slot's block in its frame; not 0.
    #[inline]
    pub(super) fn name(&self) -> u64 {
        std::ptr::from_ref(self).addr() as u64
    }
}

/// The blocks of one open file. When it is dropped, the pool keeps none of them.
pub(crate) struct FileBlocks {
    pool: BufferPool,
    slots: Arc<Slots>,
}

impl FileBlocks {
    /// For a file of this many blocks, none of which is kept yet.
    pub(crate) fn new(pool: BufferPool, blocks: u64) -> FileBlocks {
        FileBlocks { pool, slots: Arc::new(Slots::new(blocks)) }
    }

    /// The same for another number of blocks.
    pub(crate) fn with_count(&self, blocks: u64) -> FileBlocks {
        FileBlocks::new(self.pool.clone(), blocks)
    }

    /// The pool.
    pub(crate) fn pool(&self) -> &BufferPool {
        &self.pool
    }

    /// The block with this number, if it is kept. `from` is the byte at which the caller will begin to read it
    /// (`usize::MAX` if unknown).
    #[inline]
    pub(crate) fn find(&self, number: u64, from: usize) -> Option<Block> {
        let slot = self.slots.get(number)?;
        let State::Kept(frame) = slot.state() else { return None };
        self.pool.0.frames.find(frame, slot.name(), from)
    }

    /// Keeps a block, which must not change any more, and evicts others if necessary. If a block of this number is kept
    /// already, the longer one stays. Scans do not call it.
    pub(crate) fn put(&self, number: u64, block: Block) {
        self.eviction().put(&self.slots, number, block);
    }

    fn eviction(&self) -> &Eviction {
        &self.pool.0.eviction
    }
}

impl Drop for FileBlocks {
    fn drop(&mut self) {
        self.eviction().forget(&self.slots);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(blocks: &FileBlocks, number: u64, bytes: &[u8]) -> Block {
        let mut block = blocks.pool().room(bytes.len());
        block.copy_from_slice(bytes);
        let block = block.share();
        blocks.put(number, block.clone());
        block
    }

    #[test]
    fn a_block_is_found_by_its_number_in_its_file_while_the_file_is_open() {
        let pool = BufferPool::new(1 << 20);
        let (one, other) = (FileBlocks::new(pool.clone(), 5_000), FileBlocks::new(pool.clone(), 5_000));
        for number in [0, 4_999] {
            put(&one, number, &number.to_be_bytes());
            assert_eq!(one.find(number, 0).as_deref(), Some(number.to_be_bytes().as_slice()));
            assert!(other.find(number, 0).is_none(), "another file's");
        }
        assert!(one.find(1, 0).is_none() && one.find(5_120, 0).is_none() && one.find(u64::MAX, 0).is_none());
        put(&one, u64::MAX, b"no such block");
        assert_eq!(pool.blocks(), 2);
        let held = one.find(0, usize::MAX).unwrap();
        drop(one);
        assert_eq!((pool.blocks(), pool.bytes()), (0, 0));
        assert_eq!(held[..], 0_u64.to_be_bytes());
        // A new file gets none of them, even where its slots lie at the same addresses.
        let next = FileBlocks::new(pool.clone(), 5_000);
        put(&next, 1, b"next");
        assert!(next.find(0, 0).is_none() && next.find(4_999, 0).is_none());
        drop(other);
        assert_eq!(pool.blocks(), 1);
    }

    #[test]
    fn a_longer_block_takes_the_place_of_a_shorter_one_whoever_holds_it() {
        let blocks = FileBlocks::new(BufferPool::new(1 << 20), 10);
        let short = put(&blocks, 3, b"be");
        assert_eq!(blocks.find(3, 0).as_deref(), Some(&b"be"[..]));
        let long = put(&blocks, 3, b"beginning");
        put(&blocks, 3, b"begin");
        assert_eq!(blocks.find(3, 0).unwrap().as_ptr(), long.as_ptr());
        assert_eq!(&*short, b"be");
    }

    #[test]
    fn a_pool_without_bytes_keeps_nothing() {
        let blocks = FileBlocks::new(BufferPool::none(), 10);
        put(&blocks, 3, b"nothing");
        assert!(blocks.find(3, 0).is_none());
    }

    #[test]
    fn slots_tell_frames_from_evictions() {
        let slot = Slot(AtomicU32::new(0));
        assert_eq!(slot.state(), State::Unknown);
        let frame = FrameNumber::from(NonZeroU32::new(TIME_BITS).unwrap());
        for state in [State::Kept(frame), State::Evicted(0), State::Evicted(TIME_BITS), State::Unknown] {
            slot.set(state);
            assert_eq!(slot.state(), state);
        }
        slot.set(State::Evicted(u32::MAX));
        assert_eq!(slot.state(), State::Evicted(TIME_BITS));
    }

    #[test]
    fn threads_find_the_block_they_ask_for_or_none_while_others_are_put_and_evicted() {
        let (rounds, count) = if cfg!(miri) { (40_u64, 8) } else { (20_000, 64) };
        // A few blocks have room.
        let pool = BufferPool::new(256 << 10);
        let blocks = FileBlocks::new(pool.clone(), count);
        let content = |number: u64| (number as u8).to_be_bytes().repeat(30_000);
        std::thread::scope(|scope| {
            for thread in 0..3_u64 {
                let (blocks, content) = (&blocks, &content);
                scope.spawn(move || {
                    for round in 0..rounds {
                        let number = (round * (thread + 1) + thread) % count;
                        match blocks.find(number, 0) {
                            Some(block) => {
                                assert!(block.iter().step_by(997).all(|byte| *byte == number as u8));
                            }
                            None => drop(put(blocks, number, &content(number))),
                        }
                    }
                });
            }
        });
        assert!(pool.bytes() <= 256 << 10);
        assert!(pool.blocks() > 0);
    }
}
