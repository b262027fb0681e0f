//! Prefetches rows ahead of a walk through a partition of a memtable.
//!
//! Rows that were written in order lie at equal distances in memory. So the address of a row some steps ahead is known
//! before the walk arrives there, and prefetching it hides the cache miss.

use helenus_host::prefetch_lines;
use std::ptr::NonNull;

/// Bytes of a cache line.
const LINE_BYTES: usize = 64;

/// Prefetches the memory that a walk from `from` to `to` reaches some steps later if the steps stay equally long. Rows
/// that were written in order lie that way; for steps too long for that, nothing is prefetched.
#[inline(always)]
pub(super) fn stride<T>(from: NonNull<T>, to: NonNull<T>) {
    /// Steps that a walk takes in the time of a cache miss.
    const STEPS: isize = 6;
    /// A longer step does not lead from a row of a few columns to its neighbour, and would prefetch too much.
    const STEP_BYTES_MAX: usize = 512;
    let step = to.as_ptr() as isize - from.as_ptr() as isize;
    let bytes = step.unsigned_abs();
    if bytes <= STEP_BYTES_MAX {
        prefetch_lines(to.as_ptr().wrapping_byte_offset(STEPS * step), bytes.div_ceil(LINE_BYTES));
    }
}

/// Prefetches a node and the memory from it towards another node, where rows lie that were written in ascending or
/// descending order.
#[inline(always)]
pub(super) fn towards<T>(from: NonNull<T>, to: *mut T) {
    /// Cache lines of a node.
    const NODE_LINES: usize = 2;
    /// Cache lines beside it that a search usually reads.
    const LINES: usize = 24;
    const DISTANCE_BYTES_MAX: usize = 16384;
    let from = from.as_ptr();
    let distance = to as isize - from as isize;
    prefetch_lines(from, NODE_LINES);
    if distance.unsigned_abs() > DISTANCE_BYTES_MAX {
        return;
    }
    // In the order in which the search reads them.
    let step = LINE_BYTES as isize * distance.signum();
    let first = if distance < 0 { from } else { from.wrapping_byte_add(LINE_BYTES) };
    for line in 1..=LINES as isize {
        prefetch_lines(first.wrapping_byte_offset(line * step), 1);
    }
}

/// Prefetches a few lines between two nodes, so that their pages are in the TLB before a node there is read.
#[inline(always)]
pub(super) fn pages<T>(from: *mut T, to: *mut T) {
    const PARTS: isize = 2;
    const DISTANCE_BYTES_MAX: usize = 256 << 10;
    let distance = to as isize - from as isize;
    if from.is_null() || to.is_null() || distance.unsigned_abs() > DISTANCE_BYTES_MAX {
        return;
    }
    for part in 0..=PARTS {
        prefetch_lines(from.wrapping_byte_offset(distance / PARTS * part), 1);
    }
}
