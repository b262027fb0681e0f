//! Asks for rows ahead of a walk through a partition of a memtable.
//!
//! Rows written in order lie in memory one behind another at equal distances: where a walk comes to some steps later is
//! known before it is there, and asking early hides the wait.

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
