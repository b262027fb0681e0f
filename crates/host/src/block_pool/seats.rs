//! What is known of each block's memory, beside the memory: who holds it, how much of it is used, what is in it.
//!
//! Seats are numbered, and stay where they are as long as the pool lives: whoever remembers a number may look at the seat at any
//! time, whatever is in its memory by then.

use super::Region;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// Bits of a number that say which of its region's blocks it is: a huge page has 2,048 blocks of 1 KiB.
const BLOCK_BITS: u32 = 11;
/// Regions in the first piece of the table; each piece after it has twice as many.
const FIRST_PIECE: usize = 64;
/// The highest number: two million regions, 4 TB of blocks.
const NUMBERS_MAX: u32 = (1 << (u32::BITS - BLOCK_BITS)) - 1;
/// Pieces of the table for as many.
const PIECES: usize = 16;

/// Where a block stood when it was last seen. Another may be there by now: `BlockPool::find` says whether it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockHint(NonZeroU32);

impl BlockHint {
    /// As a number, for who keeps many.
    pub fn get(self) -> NonZeroU32 {
        self.0
    }
}

impl From<NonZeroU32> for BlockHint {
    fn from(number: NonZeroU32) -> BlockHint {
        BlockHint(number)
    }
}

/// One block's.
pub(super) struct Seat {
    /// Holders of the block; 0 while nobody has the memory.
    pub(super) holders: AtomicU32,
    /// Bytes of the block, up to `BYTES_MAX`, and whether it was found since somebody last asked.
    bytes: AtomicU32,
    /// What its finder calls the block; 0 while it has no name.
    name: AtomicU64,
}

const WAS_FOUND: u32 = 1 << 31;
const BYTES_MAX: u32 = WAS_FOUND - 1;

impl Seat {
    fn new() -> Seat {
        Seat { holders: AtomicU32::new(0), bytes: AtomicU32::new(0), name: AtomicU64::new(0) }
    }

    /// Begins a block, of which there is one holder. The caller has the memory: nobody holds it.
    pub(super) fn begin(&self, bytes: usize) {
        self.name.store(0, Ordering::Relaxed);
        self.bytes.store(bytes.min(BYTES_MAX as usize) as u32, Ordering::Relaxed);
        // Who joins sees all of the above, and the region.
        self.holders.store(1, Ordering::Release);
    }

    /// Becomes one more holder, if there is any; of whatever block is there.
    pub(super) fn join(&self) -> bool {
        let more = |holders: u32| (holders > 0 && holders < super::HOLDERS_MAX).then(|| holders + 1);
        self.holders.fetch_update(Ordering::Acquire, Ordering::Relaxed, more).is_ok()
    }

    /// Gives the block a name; for a holder, when its bytes do not change any more.
    pub(super) fn set_name(&self, name: u64) {
        self.name.store(name, Ordering::Release);
    }

    /// For a holder: whether the block has this name, and so the bytes it had when it was named.
    pub(super) fn has_name(&self, name: u64) -> bool {
        self.name.load(Ordering::Acquire) == name
    }

    /// For a holder: bytes of the block.
    pub(super) fn bytes(&self) -> usize {
        (self.bytes.load(Ordering::Relaxed) & BYTES_MAX) as usize
    }

    pub(super) fn mark_found(&self) {
        let bytes = self.bytes.load(Ordering::Relaxed);
        // One of two marks that are set and taken at once may be lost.
        if bytes & WAS_FOUND == 0 {
            self.bytes.store(bytes | WAS_FOUND, Ordering::Relaxed);
        }
    }

    /// For a holder: whether the block was found since this was last asked.
    pub(super) fn take_found(&self) -> bool {
        let bytes = self.bytes.load(Ordering::Relaxed);
        let was_found = bytes & WAS_FOUND != 0;
        if was_found {
            self.bytes.store(bytes & BYTES_MAX, Ordering::Relaxed);
        }
        was_found
    }
}

/// Those of a region.
pub(super) struct Seats {
    pub(super) all: Box<[Seat]>,
    pub(super) block_bytes: usize,
    /// The region that has them, and its memory: valid while one of its blocks is held.
    region: AtomicPtr<Region>,
    memory: AtomicPtr<u8>,
    /// In the pool's table, from 1 on; 0 if they are in none.
    number: u32,
}

impl Seats {
    /// For a block without a pool.
    pub(super) fn single(bytes: usize) -> Arc<Seats> {
        Arc::new(Seats::new(1, bytes, 0))
    }

    fn new(count: usize, block_bytes: usize, number: u32) -> Seats {
        let all = std::iter::repeat_with(Seat::new).take(count).collect();
        let (region, memory) = (AtomicPtr::default(), AtomicPtr::default());
        Seats { all, block_bytes, region, memory, number }
    }

    /// Belong to this region from now on. Nobody holds a block of them; the first `Seat::begin` publishes it.
    pub(super) fn serve(&self, region: *mut Region, memory: *mut u8) {
        self.region.store(region, Ordering::Relaxed);
        self.memory.store(memory, Ordering::Relaxed);
    }

    /// For a holder of one of the blocks: the region.
    #[inline]
    pub(super) fn region(&self) -> *mut Region {
        self.region.load(Ordering::Relaxed)
    }

    /// Where the block of a number is; for others than its holders, where one was.
    #[inline]
    pub(super) fn place(&self, number: usize) -> *mut u8 {
        self.memory.load(Ordering::Relaxed).wrapping_add(number * self.block_bytes)
    }

    /// Where the block of a number in the region is to be found; `None` if it is not.
    pub(super) fn hint(&self, block: usize) -> Option<BlockHint> {
        let block = u32::try_from(block).ok().filter(|block| block >> BLOCK_BITS == 0)?;
        let number = NonZeroU32::new(self.number << BLOCK_BITS | block);
        number.filter(|_| self.number > 0).map(BlockHint)
    }
}

/// Numbers side by side, each with its seats when there are any.
type Piece = Box<[OnceLock<Arc<Seats>>]>;

/// All seats of a pool, by number.
pub(super) struct Table {
    pieces: [OnceLock<Piece>; PIECES],
    taken: AtomicU32,
}

impl Table {
    pub(super) fn new() -> Table {
        Table { pieces: [const { OnceLock::new() }; PIECES], taken: AtomicU32::new(0) }
    }

    /// Seats for a new region. Where the table is full they are in none, and their blocks are not found by hints.
    pub(super) fn add(&self, count: usize, block_bytes: usize) -> Arc<Seats> {
        let next = |taken: u32| (taken < NUMBERS_MAX).then(|| taken + 1);
        let taken = self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        let number = taken.map_or(0, |taken| taken + 1);
        let seats = Arc::new(Seats::new(count, block_bytes, number));
        let (piece, at) = place(number);
        if let Some(piece) = self.pieces.get(piece).filter(|_| number > 0) {
            let made = || (0..FIRST_PIECE << piece_of(number)).map(|_| OnceLock::new()).collect();
            if let Some(slot) = piece.get_or_init(made).get(at) {
                // Each number is given once.
                let _ = slot.set(seats.clone());
            }
        }
        seats
    }

    /// The seats that a hint leads to, and which of them it is.
    #[inline]
    pub(super) fn find(&self, hint: BlockHint) -> Option<(&Seats, usize)> {
        let number = hint.0.get() >> BLOCK_BITS;
        let (piece, at) = place(number);
        let seats = self.pieces.get(piece)?.get()?.get(at)?.get()?;
        Some((seats, (hint.0.get() & ((1 << BLOCK_BITS) - 1)) as usize))
    }
}

/// Which piece of the table has a number, and where in it. Number 0 is in none, and where it would be is another's.
#[inline]
fn place(number: u32) -> (usize, usize) {
    let piece = piece_of(number);
    (piece, number as usize + FIRST_PIECE - (FIRST_PIECE << piece))
}

#[inline]
fn piece_of(number: u32) -> usize {
    ((number as usize + FIRST_PIECE).ilog2() - FIRST_PIECE.ilog2()) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_has_a_place_of_its_own_in_pieces_that_double() {
        let mut expected = (0, 0);
        for number in 0..100_000 {
            assert_eq!(place(number), expected, "{number}");
            expected.1 += 1;
            if expected.1 == FIRST_PIECE << expected.0 {
                expected = (expected.0 + 1, 0);
            }
        }
        assert!(place(NUMBERS_MAX).0 < PIECES);
    }

    #[test]
    fn hints_lead_to_seats_and_seats_in_no_table_have_none() {
        let table = Table::new();
        let all: Vec<_> = (0..300).map(|_| table.add(128, 16 << 10)).collect();
        for seats in &all {
            for block in [0, 127] {
                let (found, at) = table.find(seats.hint(block).unwrap()).unwrap();
                assert!(std::ptr::eq(found, &**seats) && at == block);
            }
        }
        assert_eq!(Seats::single(5).hint(0), None);
        assert_eq!(all[0].hint(1 << BLOCK_BITS), None, "no such block");
        let unknown = NonZeroU32::new(5_000 << BLOCK_BITS).unwrap();
        assert!(table.find(BlockHint::from(unknown)).is_none());
    }
}
