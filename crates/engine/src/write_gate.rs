//! A gate that writes pass, and that a thread closes to be alone with the memtables for a moment.
//!
//! A write is inside from before its log record until it is in the memtable. So while the gate is closed, every log
//! record is in a memtable: a flush determines a log position that way, and a schema change installs its new tables.

use crate::sharded::Sharded;
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};

/// A lock that many threads can enter together, and that one can close to be alone. A thread inside must not enter
/// again.
#[derive(Default)]
pub(crate) struct WriteGate(Sharded<RwLock<()>>);

impl WriteGate {
    /// Enters; waits while the gate is closed. The gate cannot be closed before the guard is dropped.
    #[inline]
    pub(crate) fn enter(&self) -> RwLockReadGuard<'_, ()> {
        self.0.of_this_thread().read()
    }

    /// Waits until all threads that are inside now have left. Others may have entered meanwhile: they see what the
    /// caller did before.
    pub(crate) fn wait_for_current(&self) {
        self.0.iter().for_each(|cell| drop(cell.write()));
    }

    /// Whether all threads that were inside have left within a moment. Others may have entered meanwhile: they see what the
    /// caller did before. Does not wait: a thread inside may wait for what the caller holds.
    pub(crate) fn has_passed_current(&self) -> bool {
        const ATTEMPTS: usize = 1000;
        self.0.iter().all(|cell| {
            (0..ATTEMPTS).any(|_| {
                std::hint::spin_loop();
                cell.try_write().is_some()
            })
        })
    }

    /// Waits until nobody is inside. Nobody enters before the guards are dropped.
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
        let (gate, within) = (WriteGate::default(), AtomicUsize::new(0));
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
