//! Which blocks leave the buffer pool: S3-FIFO, a clock with a queue of newcomers before it.
//!
//! New blocks wait in a short queue. At its end, those that were found meanwhile go to the main queue, the others are
//! evicted: so a long read, which finds each block once, displaces only newcomers. In the main queue, a block that was
//! found since the hand came by last gets another round. A block that is put again soon after its eviction goes to the
//! main queue at once; its slot has the time of its eviction.
//!
//! Finding a block takes no lock. It sets a mark in the frame's metadata, which is cleared here.
//!
//! Source: Yang, Zhang, Qiu, Yue, Vigfusson: FIFO queues are all you need for cache eviction. SOSP 2023.

use super::file_blocks::{Kept, Slots, State};
use super::frames::Block;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::{Arc, Weak};

/// Bytes of overhead for each block: its entries in a queue and in its file's table, and the metadata of its frame.
const OVERHEAD_BYTES: u64 = 96;
/// Part of the bytes that newcomers take before they are evicted first: one in so many.
const NEWCOMERS_SHARE: u64 = 10;

/// Keeps blocks within a number of bytes.
pub(super) struct Eviction {
    bytes_max: u64,
    queues: Mutex<Queues>,
}

#[derive(Default)]
struct Queues {
    newcomers: Queue,
    main: Queue,
    /// Number of evictions, modulo 2^31.
    evictions: u32,
}

/// Blocks in the order in which their eviction is considered. Each block that is kept is in one queue, once.
///
/// The blocks of a file that is closed are taken out through the file's own table; their entries stay until they are met,
/// or until they are as many as the others. So closing a file costs steps for its own blocks alone.
#[derive(Default)]
struct Queue {
    entries: VecDeque<Entry>,
    /// Number of entries without a block.
    empty: usize,
    bytes: u64,
    /// Entries that were visited because files were closed.
    #[cfg(test)]
    steps: u64,
}

/// A block that is kept, by its file and number.
struct Entry {
    slots: Weak<Slots>,
    number: u64,
}

/// Empty entries that are left in a queue whatever it holds.
const EMPTY_ENTRIES: usize = 64;

fn bytes_of(block: &Block) -> u64 {
    block.footprint() as u64 + OVERHEAD_BYTES
}

impl Queue {
    /// Number of blocks.
    fn len(&self) -> usize {
        self.entries.len() - self.empty
    }

    /// Notes that a block was taken out without its entry.
    fn taken_out(&mut self, block: &Block) {
        self.bytes -= bytes_of(block);
        self.empty += 1;
        #[cfg(test)]
        (self.steps += 1);
    }

    /// Drops the entries without a block, if they are many.
    fn tidy(&mut self) {
        if self.empty <= self.len() + EMPTY_ENTRIES {
            return;
        }
        #[cfg(test)]
        (self.steps += self.entries.len() as u64);
        self.entries.retain(|entry| {
            let slots = entry.slots.upgrade();
            slots.is_some_and(|slots| slots.with_kept(entry.number, |kept| kept.is_some()) == Some(true))
        });
        self.empty = 0;
        self.entries.shrink_to(2 * self.entries.len());
    }
}

impl Queues {
    fn bytes(&self) -> u64 {
        self.newcomers.bytes + self.main.bytes
    }

    fn of(&mut self, is_main: bool) -> &mut Queue {
        if is_main { &mut self.main } else { &mut self.newcomers }
    }

    /// Whether an eviction at this time is not long ago: a working set as large as the pool must become hot although a
    /// read of twice that size comes between.
    fn is_recent(&self, evicted: u32) -> bool {
        let since = self.evictions.wrapping_sub(evicted) & (u32::MAX >> 1);
        since as usize <= 2 * (self.main.len() + self.newcomers.len())
    }

    /// Takes the next block out and returns it, or gives it another round in the main queue.
    fn evict_or_promote(&mut self, bytes_max: u64) -> Option<Block> {
        let is_newcomer = self.newcomers.bytes > bytes_max / NEWCOMERS_SHARE || self.main.len() == 0;
        let entry = self.of(!is_newcomer).entries.pop_front()?;
        let slots = entry.slots.upgrade();
        let has_block =
            |slots: &Arc<Slots>| slots.with_kept(entry.number, |kept| kept.is_some()) == Some(true);
        let Some(slots) = slots.filter(has_block) else {
            self.of(!is_newcomer).empty -= 1;
            return None;
        };
        slots.with_kept(entry.number, |place| {
            let kept = place.as_mut()?;
            let bytes = bytes_of(&kept.block);
            self.of(kept.is_main).bytes -= bytes;
            if kept.block.take_found() {
                kept.is_main = true;
                self.main.bytes += bytes;
                self.main.entries.push_back(entry);
                return None;
            }
            self.evictions = self.evictions.wrapping_add(1);
            if let Some(slot) = slots.get(entry.number) {
                slot.set(State::Evicted(self.evictions));
            }
            place.take().map(|kept| kept.block)
        })?
    }
}

impl Eviction {
    pub(super) fn new(bytes_max: u64) -> Eviction {
        Eviction { bytes_max, queues: Mutex::default() }
    }

    pub(super) fn blocks(&self) -> u64 {
        let queues = self.queues.lock();
        (queues.newcomers.len() + queues.main.len()) as u64
    }

    pub(super) fn bytes(&self) -> u64 {
        self.queues.lock().bytes()
    }

    /// See `FileBlocks::put`.
    pub(super) fn put(&self, slots: &Arc<Slots>, number: u64, block: Block) {
        let Some(frame) = block.frame_number().filter(|_| self.bytes_max > 0) else { return };
        let Some(slot) = slots.make(number) else { return };
        // Memory is freed after the lock is released.
        let mut leaving = Vec::new();
        let mut queues = self.queues.lock();
        let state = slot.state();
        slots.with_kept(number, |place| {
            if place.as_ref().is_some_and(|kept| kept.block.len() >= block.len()) {
                return;
            }
            block.set_name(slot.name());
            slot.set(State::Kept(frame));
            let bytes = bytes_of(&block);
            if let Some(kept) = place {
                let queue = queues.of(kept.is_main);
                queue.bytes += bytes;
                queue.bytes -= bytes_of(&kept.block);
                leaving.push(std::mem::replace(&mut kept.block, block));
                return;
            }
            let is_main = matches!(state, State::Evicted(time) if queues.is_recent(time));
            *place = Some(Kept { block, is_main });
            let queue = queues.of(is_main);
            queue.bytes += bytes;
            queue.entries.push_back(Entry { slots: Arc::downgrade(slots), number });
        });
        while queues.bytes() > self.bytes_max
            && !(queues.main.entries.is_empty() && queues.newcomers.entries.is_empty())
        {
            leaving.extend(queues.evict_or_promote(self.bytes_max));
        }
        drop(queues);
        drop(leaving);
    }

    /// Drops the blocks of a file, which keeps none from now on.
    pub(super) fn forget(&self, slots: &Arc<Slots>) {
        if !slots.has_any() {
            return;
        }
        let mut queues = self.queues.lock();
        let leaving = slots.take_all();
        for kept in &leaving {
            queues.of(kept.is_main).taken_out(&kept.block);
        }
        queues.newcomers.tidy();
        queues.main.tidy();
        // Memory is freed after the lock is released.
        drop(queues);
        drop(leaving);
    }

    /// Entries that were visited because files were closed.
    #[cfg(test)]
    fn steps(&self) -> u64 {
        let queues = self.queues.lock();
        queues.newcomers.steps + queues.main.steps
    }
}

#[cfg(test)]
mod tests {
    use super::super::{BufferPool, FileBlocks};

    const BLOCK: usize = 16 << 10;
    const BYTES: u64 = 16 << 20;

    struct File(FileBlocks);

    impl File {
        fn of(pool: &BufferPool) -> File {
            File(FileBlocks::new(pool.clone(), 1 << 20))
        }

        fn put(&self, number: u64) {
            self.0.put(number, self.0.pool().room(BLOCK).share());
        }

        fn has(&self, number: u64) -> bool {
            self.0.find(number, 0).is_some()
        }

        fn read(&self, number: u64) {
            if !self.has(number) {
                self.put(number);
            }
        }
    }

    /// Counts steps: with a walk of both queues for each file they would be 40 million.
    #[test]
    fn closing_files_takes_steps_for_their_own_blocks_alone() {
        const FILES: u64 = 2_000;
        let pool = BufferPool::new(64 << 20);
        let mut files: Vec<File> = (0..FILES).map(|_| File::of(&pool)).collect();
        let (mut put, mut state) = (0, 7_u64);
        for round in 0..3 {
            for file in &files {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                for number in 0..(state >> 33) % 8 {
                    file.0.put(round * 100 + number, file.0.pool().room(512).share());
                    put += 1;
                    let _ = file.has(number);
                }
            }
            // Some are closed, in any order, and others opened.
            for turn in 0..FILES / 2 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let at = (state >> 33) % files.len() as u64;
                files.swap_remove(at as usize);
                if turn % 3 == 0 {
                    files.push(File::of(&pool));
                }
            }
            let kept: u64 =
                files.iter().map(|file| (0..400).filter(|number| file.has(*number)).count() as u64).sum();
            assert_eq!(pool.blocks(), kept);
        }
        drop(files);
        assert_eq!((pool.blocks(), pool.bytes()), (0, 0));
        let steps = pool.0.eviction.steps();
        assert!(put > 8_000 && steps <= 4 * put, "{steps} steps for {put} blocks");
    }

    #[test]
    fn blocks_that_reads_come_back_to_stay_while_a_long_read_passes_through() {
        let pool = BufferPool::new(BYTES);
        let (file, other) = (File::of(&pool), File::of(&pool));
        let hot = 256;
        for _ in 0..3 {
            (0..hot).for_each(|number| file.read(number));
        }
        // Reads ten times the pool's size, each block once, between single reads of the hot blocks.
        for number in 0..10_240 {
            other.put(number);
            let _ = file.has(number % hot);
        }
        let kept = (0..hot).filter(|number| file.has(*number)).count();
        assert!(kept as u64 > hot * 9 / 10, "{kept} of {hot} blocks are left");
        // Blocks that nobody reads any more are evicted in favour of others.
        for number in 0..20_480 {
            other.put(number);
            let _ = other.has(number);
        }
        assert!((0..hot).all(|number| !file.has(number)));
        assert!(pool.bytes() <= BYTES);
    }

    #[test]
    fn the_bound_holds_where_every_block_is_found_again_all_the_time() {
        let pool = BufferPool::new(BYTES);
        let file = File::of(&pool);
        for number in 0..4_000 {
            file.put(number);
            assert!((0..=number).filter(|number| file.has(*number)).count() > 0);
            assert!(pool.bytes() <= BYTES / 32 * 29, "{number}: {} bytes", pool.bytes());
        }
    }

    #[test]
    fn a_working_set_that_comes_back_after_a_long_read_becomes_hot() {
        let pool = BufferPool::new(BYTES);
        let (file, other) = (File::of(&pool), File::of(&pool));
        for round in 0..4 {
            (0..600).for_each(|number| file.read(number));
            (0..2_000).for_each(|number| other.put(round * 2_000 + number));
        }
        let kept = (0..600).filter(|number| file.has(*number)).count();
        assert!(kept > 400, "{kept} of 600 blocks are left");
    }
}
