//! Sharded values: one cell for each thread that writes at the same time, so that no thread waits for a cache line that
//! another one changed.
//!
//! A thread always uses the same cell. The first threads have a cell of their own and add to it without a locked
//! instruction; later threads share cells. A `CacheLine` gives a single value its own cache line, so that changes of it do
//! not slow down reads of its neighbours.

use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};

/// Cells with one thread each: enough for the event loops of a small machine.
const EXCLUSIVE_CELLS: usize = 8;
/// Cells that all other threads share.
const SHARED_CELLS: usize = 8;
const CELLS: usize = EXCLUSIVE_CELLS + SHARED_CELLS;

/// A sharded value; each cell is on its own cache line.
#[derive(Default)]
pub(crate) struct Sharded<T>([CacheLine<T>; CELLS]);

/// A value on its own cache line.
#[derive(Default)]
#[repr(align(64))]
pub(crate) struct CacheLine<T>(pub(crate) T);

impl<T> Deref for CacheLine<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> Sharded<T> {
    /// This thread's cell.
    #[inline]
    pub(crate) fn of_this_thread(&self) -> &T {
        let Sharded(cells) = self;
        &cells[cell_of(number())].0
    }

    /// All cells.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|CacheLine(value)| value)
    }
}

#[inline]
fn cell_of(number: usize) -> usize {
    if number < EXCLUSIVE_CELLS { number } else { EXCLUSIVE_CELLS + number % SHARED_CELLS }
}

/// Whether this thread's cell belongs to it alone, for the life of the process.
#[inline]
pub(crate) fn is_exclusive() -> bool {
    number() < EXCLUSIVE_CELLS
}

/// Adds to a counter in this thread's cell, which no other place changes; returns the previous value.
#[inline]
pub(crate) fn add(counter: &AtomicU64, more: u64) -> u64 {
    if !is_exclusive() {
        return counter.fetch_add(more, Ordering::Relaxed);
    }
    let before = counter.load(Ordering::Relaxed);
    counter.store(before.wrapping_add(more), Ordering::Relaxed);
    before
}

/// This thread's number: threads are numbered from 0 in the order of their first call.
#[inline]
#[cfg(not(loom))]
fn number() -> usize {
    use std::cell::Cell;
    use std::sync::atomic::{AtomicUsize, Ordering};

    const NONE: usize = usize::MAX;
    thread_local! {
        static NUMBER: Cell<usize> = const { Cell::new(NONE) };
    }
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    NUMBER.with(|number| {
        if number.get() == NONE {
            number.set(NEXT.fetch_add(1, Ordering::Relaxed));
        }
        number.get()
    })
}

/// Loom repeats the same run with new threads, so all of them share cells.
#[cfg(loom)]
fn number() -> usize {
    EXCLUSIVE_CELLS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_threads_add_each_in_its_lane_adds_up() {
        let cells = Sharded::<AtomicU64>::default();
        let per_thread = if cfg!(miri) { 50 } else { 5000 };
        // More threads than cells, so some share.
        let threads = CELLS as u64 + 3;
        let last_before: u64 = std::thread::scope(|scope| {
            let added = (0..threads)
                .map(|_| scope.spawn(|| (0..per_thread).map(|_| add(cells.of_this_thread(), 1)).max()));
            let added: Vec<_> = added.collect();
            added.into_iter().filter_map(|thread| thread.join().unwrap()).max().unwrap_or(0)
        });
        let counts: Vec<u64> = cells.iter().map(|cell| cell.load(Ordering::Relaxed)).collect();
        assert_eq!(counts.iter().sum::<u64>(), threads * per_thread);
        assert_eq!(
            counts.iter().max(),
            Some(&(last_before + 1)),
            "each is told what was before it: {counts:?}"
        );
    }

    #[test]
    fn a_lane_of_its_own_is_nobody_elses() {
        for own in 0..EXCLUSIVE_CELLS {
            let there: Vec<usize> =
                (0..10 * CELLS).filter(|number| cell_of(*number) == cell_of(own)).collect();
            assert_eq!(there, [own]);
        }
        assert!((0..10 * CELLS).all(|number| cell_of(number) < CELLS));
    }
}
