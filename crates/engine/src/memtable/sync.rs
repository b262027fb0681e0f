//! The atomics and locks of a memtable's arena, partitions and lists: those of the standard library and `parking_lot`,
//! or loom's.
//!
//! A build with `--cfg loom` takes loom's types, and the tests in `partition/published.rs` then try every interleaving
//! of readers and writers:
//!
//! `RUSTFLAGS="--cfg loom" LOOM_MAX_PREEMPTIONS=2 cargo test -p helenus-engine --release --lib published`.

#[cfg(not(loom))]
pub(super) use parking_lot::{Mutex, MutexGuard};
#[cfg(not(loom))]
pub(super) use std::sync::atomic::{AtomicI64, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

#[cfg(loom)]
pub(super) use loom::sync::MutexGuard;
#[cfg(loom)]
pub(super) use loom::sync::atomic::{AtomicI64, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// Loom's lock, used as `parking_lot`'s is.
#[cfg(loom)]
#[derive(Debug, Default)]
pub(super) struct Mutex<T>(loom::sync::Mutex<T>);

#[cfg(loom)]
impl<T> Mutex<T> {
    pub(super) fn new(value: T) -> Mutex<T> {
        Mutex(loom::sync::Mutex::new(value))
    }

    pub(super) fn lock(&self) -> loom::sync::MutexGuard<'_, T> {
        match self.0.lock() {
            Ok(guard) => guard,
            Err(poisoned) => poisoned.into_inner(),
        }
    }

    pub(super) fn get_mut(&mut self) -> loom::sync::MutexGuard<'_, T> {
        self.lock()
    }
}
