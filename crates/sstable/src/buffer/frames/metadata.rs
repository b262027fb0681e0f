//! Metadata of each frame, apart from its memory: number of holders, length and name of its block.
//!
//! Frames are numbered, and their metadata keeps its address while the pool lives. So a reader that knows a number may
//! check the frame at any time, whatever block is in it by then.

use super::Region;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// Bits of a frame number that select a block of the region: a huge page has 2,048 blocks of 1 KiB.
const BLOCK_BITS: u32 = 11;
/// Regions in the first piece of the table. Each further piece has twice as many.
const FIRST_PIECE: usize = 64;
/// Bits of a frame number. The top bit of an `u32` is free for other uses of a slot.
const NUMBER_BITS: u32 = u32::BITS - 1;
/// The highest region number: a million regions, 2 TB of blocks.
const NUMBERS_MAX: u32 = (1 << (NUMBER_BITS - BLOCK_BITS)) - 1;
/// Number of pieces that the table needs for these.
const PIECES: usize = 16;

/// The number of a frame of a pool, below 2^31.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameNumber(NonZeroU32);

impl FrameNumber {
    /// The number itself, for callers that store many.
    pub fn get(self) -> NonZeroU32 {
        self.0
    }
}

impl From<NonZeroU32> for FrameNumber {
    fn from(number: NonZeroU32) -> FrameNumber {
        FrameNumber(number)
    }
}

/// The metadata of one frame.
pub(super) struct FrameMeta {
    /// Number of holders of the block; 0 while the frame is free.
    pub(super) holders: AtomicU32,
    /// Bytes of the block, up to `BYTES_MAX`; the top bit tells whether it was found since `take_found`.
    bytes: AtomicU32,
    /// The name by which the block is found; 0 while it has none.
    name: AtomicU64,
}

const WAS_FOUND: u32 = 1 << 31;
const BYTES_MAX: u32 = WAS_FOUND - 1;

impl FrameMeta {
    fn new() -> FrameMeta {
        FrameMeta { holders: AtomicU32::new(0), bytes: AtomicU32::new(0), name: AtomicU64::new(0) }
    }

    /// Begins a block with one holder. The caller has the frame, which was free.
    pub(super) fn begin(&self, bytes: usize) {
        self.name.store(0, Ordering::Relaxed);
        self.bytes.store(bytes.min(BYTES_MAX as usize) as u32, Ordering::Relaxed);
        // A thread that joins sees all of the above, and the region.
        self.holders.store(1, Ordering::Release);
    }

    /// Adds a holder to whatever block is there; false if the frame is free.
    pub(super) fn join(&self) -> bool {
        let more = |holders: u32| (holders > 0 && holders < super::HOLDERS_MAX).then(|| holders + 1);
        self.holders.fetch_update(Ordering::Acquire, Ordering::Relaxed, more).is_ok()
    }

    /// Names the block. The caller is a holder, and the bytes do not change any more.
    pub(super) fn set_name(&self, name: u64) {
        self.name.store(name, Ordering::Release);
    }

    /// Whether the block has this name, and therefore the bytes it had when it was named. The caller is a holder.
    pub(super) fn has_name(&self, name: u64) -> bool {
        self.name.load(Ordering::Acquire) == name
    }

    /// Length of the block in bytes. The caller is a holder.
    pub(super) fn bytes(&self) -> usize {
        (self.bytes.load(Ordering::Relaxed) & BYTES_MAX) as usize
    }

    pub(super) fn mark_found(&self) {
        let bytes = self.bytes.load(Ordering::Relaxed);
        // If a mark is set and taken at the same time, one of the two may be lost.
        if bytes & WAS_FOUND == 0 {
            self.bytes.store(bytes | WAS_FOUND, Ordering::Relaxed);
        }
    }

    /// Whether the block was found since the last call. The caller is a holder.
    pub(super) fn take_found(&self) -> bool {
        let bytes = self.bytes.load(Ordering::Relaxed);
        let was_found = bytes & WAS_FOUND != 0;
        if was_found {
            self.bytes.store(bytes & BYTES_MAX, Ordering::Relaxed);
        }
        was_found
    }
}

/// The metadata of a region's frames.
pub(super) struct RegionFrames {
    pub(super) all: Box<[FrameMeta]>,
    pub(super) block_bytes: usize,
    /// The present region and its memory: valid while one of its blocks is held.
    region: AtomicPtr<Region>,
    memory: AtomicPtr<u8>,
    /// The number in the pool's table, from 1 on; 0 if it is in no table.
    number: u32,
}

impl RegionFrames {
    /// For a single block from no pool.
    pub(super) fn single(bytes: usize) -> Arc<RegionFrames> {
        Arc::new(RegionFrames::new(1, bytes, 0))
    }

    fn new(count: usize, block_bytes: usize, number: u32) -> RegionFrames {
        let all = std::iter::repeat_with(FrameMeta::new).take(count).collect();
        let (region, memory) = (AtomicPtr::default(), AtomicPtr::default());
        RegionFrames { all, block_bytes, region, memory, number }
    }

    /// Assigns the frames to a region. None of them is in use; the first `FrameMeta::begin` publishes this.
    pub(super) fn serve(&self, region: *mut Region, memory: *mut u8) {
        self.region.store(region, Ordering::Relaxed);
        self.memory.store(memory, Ordering::Relaxed);
    }

    /// The region. The caller holds one of its blocks.
    #[inline]
    pub(super) fn region(&self) -> *mut Region {
        self.region.load(Ordering::Relaxed)
    }

    /// Address of a block; for callers that do not hold it, perhaps an earlier address.
    #[inline]
    pub(super) fn address(&self, number: usize) -> *mut u8 {
        self.memory.load(Ordering::Relaxed).wrapping_add(number * self.block_bytes)
    }

    /// The number of a frame of the region; `None` if it is in no table.
    pub(super) fn frame_number(&self, block: usize) -> Option<FrameNumber> {
        let block = u32::try_from(block).ok().filter(|block| block >> BLOCK_BITS == 0)?;
        let number = NonZeroU32::new(self.number << BLOCK_BITS | block);
        number.filter(|_| self.number > 0).map(FrameNumber)
    }
}

/// A range of region numbers, each with its frames' metadata once it is in use.
type Piece = Box<[OnceLock<Arc<RegionFrames>>]>;

/// All frames of a pool, by region number.
pub(super) struct Table {
    pieces: [OnceLock<Piece>; PIECES],
    taken: AtomicU32,
}

impl Table {
    pub(super) fn new() -> Table {
        Table { pieces: [const { OnceLock::new() }; PIECES], taken: AtomicU32::new(0) }
    }

    /// Frames for a new region. If the table is full they are in no table, and their blocks have no numbers.
    pub(super) fn add(&self, count: usize, block_bytes: usize) -> Arc<RegionFrames> {
        let next = |taken: u32| (taken < NUMBERS_MAX).then(|| taken + 1);
        let taken = self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        let number = taken.map_or(0, |taken| taken + 1);
        let frames = Arc::new(RegionFrames::new(count, block_bytes, number));
        let (piece, at) = place(number);
        if let Some(piece) = self.pieces.get(piece).filter(|_| number > 0) {
            let made = || (0..FIRST_PIECE << piece_of(number)).map(|_| OnceLock::new()).collect();
            if let Some(slot) = piece.get_or_init(made).get(at) {
                // Each number is used once.
                let _ = slot.set(frames.clone());
            }
        }
        frames
    }

    /// The region's frames of which one has this number, and its index.
    #[inline]
    pub(super) fn find(&self, frame: FrameNumber) -> Option<(&RegionFrames, usize)> {
        let number = frame.0.get() >> BLOCK_BITS;
        let (piece, at) = place(number);
        let frames = self.pieces.get(piece)?.get()?.get(at)?.get()?;
        Some((frames, (frame.0.get() & ((1 << BLOCK_BITS) - 1)) as usize))
    }
}

/// The piece of the table for a number, and the index in it. Number 0 is in no piece; its index is another number's.
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
    fn numbers_lead_to_frames_and_frames_in_no_table_have_none() {
        let table = Table::new();
        let all: Vec<_> = (0..300).map(|_| table.add(128, 16 << 10)).collect();
        for frames in &all {
            for block in [0, 127] {
                let (found, at) = table.find(frames.frame_number(block).unwrap()).unwrap();
                assert!(std::ptr::eq(found, &**frames) && at == block);
            }
        }
        assert_eq!(RegionFrames::single(5).frame_number(0), None);
        assert_eq!(all[0].frame_number(1 << BLOCK_BITS), None, "no such block");
        let unknown = NonZeroU32::new(5_000 << BLOCK_BITS).unwrap();
        assert!(table.find(FrameNumber::from(unknown)).is_none());
    }
}
