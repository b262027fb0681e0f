//! Prefetches rows ahead of a walk through a partition of a memtable.
//!
//! Rows that were written in order lie at equal distances in memory. So the address of a row some steps ahead is known
//! before the walk arrives there, and prefetching it hides the cache miss.

use helenus_host::prefetch_lines;
use std::ptr::NonNull;

/// Bytes of a cache line.
const LINE_BYTES: usize = 64;

/// Asks for what lies where a walk from `from` to `to` comes to some steps later if its steps stay as long. Rows that were
/// written in order lie so; others do not, and of them nothing is asked.
#[inline(always)]
pub(super) fn stride<T>(from: NonNull<T>, to: NonNull<T>) {
    /// Steps that a walk takes while memory answers.
    const STEPS: isize = 6;
    /// Steps longer than a row of a few columns are no row next to another, and would ask for too much.
    const STEP_BYTES_MAX: usize = 512;
    let step = to.as_ptr() as isize - from.as_ptr() as isize;
    let bytes = step.unsigned_abs();
    if bytes <= STEP_BYTES_MAX {
        prefetch_lines(to.as_ptr().wrapping_byte_offset(STEPS * step), bytes.div_ceil(LINE_BYTES));
    }
}

/// Asks for a node and for those that lie between it and another one, as rows written in order do, whichever order that was.
#[inline(always)]
pub(super) fn towards<T>(from: NonNull<T>, to: *mut T) {
    /// Lines of a node.
    const NODE_LINES: usize = 2;
    /// Lines of those next to it that a search looks at, mostly.
    const LINES: usize = 24;
    const DISTANCE_BYTES_MAX: usize = 16384;
    let from = from.as_ptr();
    let distance = to as isize - from as isize;
    prefetch_lines(from, NODE_LINES);
    if distance.unsigned_abs() > DISTANCE_BYTES_MAX {
        return;
    }
    // In the order in which the search comes to them.
    let step = LINE_BYTES as isize * distance.signum();
    let first = if distance < 0 { from } else { from.wrapping_byte_add(LINE_BYTES) };
    for line in 1..=LINES as isize {
        prefetch_lines(first.wrapping_byte_offset(line * step), 1);
    }
}

/// Asks for a line here and there between two nodes: of what lies there the processor then knows the pages before it is asked
/// for a node.
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
