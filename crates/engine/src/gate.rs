//! The gate between writes and whoever must be alone with a memtable for a moment.
//!
//! A write is within it from before its log record until it is in the memtable. Who closes it knows that every record of the log
//! is in a memtable: a flush fixes a log position so, and a change of the schema its new tables.

use crate::lanes::Lanes;
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};

/// What many pass at once, and one may close to be alone. Whoever is within must not enter again.
#[derive(Default)]
pub(crate) struct Gate(Lanes<RwLock<()>>);

impl Gate {
    /// Waits until nobody has it closed; it cannot be closed before the guard is dropped.
    #[inline]
    pub(crate) fn enter(&self) -> RwLockReadGuard<'_, ()> {
        self.0.mine().read()
    }

    /// Waits until all who are within now have left. Others may have entered meanwhile: they see what the caller did before.
    pub(crate) fn pass(&self) {
        self.0.iter().for_each(|lane| drop(lane.write()));
    }

    /// Waits until nobody is within; nobody enters before the guards are dropped.
    pub(crate) fn close(&self) -> Vec<RwLockWriteGuard<'_, ()>> {
        self.0.iter().map(RwLock::write).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn a_closed_gate_has_nobody_within() {
        let (gate, within) = (Gate::default(), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..500 {
                        let _entered = gate.enter();
                        within.fetch_add(1, Ordering::Relaxed);
                        std::thread::yield_now();
                        within.fetch_sub(1, Ordering::Relaxed);
                    }
                });
            }
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let _closed = gate.close();
                        assert_eq!(within.load(Ordering::Relaxed), 0);
                    }
                });
            }
        });
    }
}
