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
use std::sync::Arc;

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
#[derive(Default)]
struct Queue {
    blocks: VecDeque<Entry>,
    bytes: u64,
}

/// A block that is kept, by its file and number.
struct Entry {
    slots: Arc<Slots>,
    number: u64,
}

impl Entry {
    fn set_slot(&self, state: State) {
        if let Some(slot) = self.slots.get(self.number) {
            slot.set(state);
        }
    }
}

fn bytes_of(block: &Block) -> u64 {
    block.footprint() as u64 + OVERHEAD_BYTES
}

impl Queue {
    /// Removes the blocks of a file.
    fn take_file(&mut self, slots: &Arc<Slots>, leaving: &mut Vec<Block>) {
        if !self.blocks.iter().any(|entry| Arc::ptr_eq(&entry.slots, slots)) {
            return;
        }
        self.blocks.retain(|entry| {
            let is_other = !Arc::ptr_eq(&entry.slots, slots);
            if !is_other && let Some(kept) = slots.with_kept(entry.number, Option::take).flatten() {
                self.bytes -= bytes_of(&kept.block);
                leaving.push(kept.block);
            }
            is_other
        });
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
        since as usize <= 2 * (self.main.blocks.len() + self.newcomers.blocks.len())
    }

    /// Takes the next block out and returns it, or gives it another round in the main queue.
    fn evict_or_promote(&mut self, bytes_max: u64) -> Option<Block> {
        let is_newcomer = self.newcomers.bytes > bytes_max / NEWCOMERS_SHARE || self.main.blocks.is_empty();
        let entry = self.of(!is_newcomer).blocks.pop_front()?;
        let slots = entry.slots.clone();
        slots.with_kept(entry.number, |place| {
            let kept = place.as_mut()?;
            let bytes = bytes_of(&kept.block);
            self.of(kept.is_main).bytes -= bytes;
            if kept.block.take_found() {
                kept.is_main = true;
                self.main.bytes += bytes;
                self.main.blocks.push_back(entry);
                return None;
            }
            self.evictions = self.evictions.wrapping_add(1);
            entry.set_slot(State::Evicted(self.evictions));
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
        (queues.newcomers.blocks.len() + queues.main.blocks.len()) as u64
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
            queue.blocks.push_back(Entry { slots: slots.clone(), number });
        });
        while queues.bytes() > self.bytes_max
            && !(queues.main.blocks.is_empty() && queues.newcomers.blocks.is_empty())
        {
            leaving.extend(queues.evict_or_promote(self.bytes_max));
        }
        drop(queues);
        drop(leaving);
    }

    /// Drops the blocks of a file.
    pub(super) fn forget(&self, slots: &Arc<Slots>) {
        let mut leaving = Vec::new();
        let mut queues = self.queues.lock();
        queues.newcomers.take_file(slots, &mut leaving);
        queues.main.take_file(slots, &mut leaving);
        drop(queues);
        drop(leaving);
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
