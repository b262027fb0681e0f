//! A value for each of the threads that write at the same time, so that none waits for a cache line that another changed.
//!
//! A thread keeps to one lane; threads beyond `LANES` share, so what is in a lane is still for several. What there is once only
//! has a line to itself, so that who changes it does not take what stands beside it from those that read that.

use std::ops::Deref;

/// Lanes: doors on a small machine have one each.
const LANES: usize = 8;

/// Values on cache lines of their own.
#[derive(Default)]
pub(crate) struct Lanes<T>([Line<T>; LANES]);

/// A value on cache lines of its own.
#[derive(Default)]
#[repr(align(64))]
pub(crate) struct Line<T>(pub(crate) T);

impl<T> Deref for Line<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> Lanes<T> {
    /// The value of this thread's lane.
    #[inline]
    pub(crate) fn mine(&self) -> &T {
        let Lanes(lanes) = self;
        &lanes[number() % LANES].0
    }

    /// All values.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|Line(value)| value)
    }
}

/// A number that the threads of this process have one after the other.
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

/// Loom goes the same way again and again, with other threads.
#[cfg(loom)]
fn number() -> usize {
    0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn what_threads_add_each_in_its_lane_adds_up() {
        let lanes = Lanes::<AtomicUsize>::default();
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| (0..5).map(|_| lanes.mine().fetch_add(1, Ordering::Relaxed)).last());
            }
        });
        let counts: Vec<_> = lanes.iter().map(|lane| lane.load(Ordering::Relaxed)).collect();
        assert_eq!(counts.iter().sum::<usize>(), 15);
        assert!(counts.iter().all(|count| count.is_multiple_of(5)), "{counts:?}");
    }
}
