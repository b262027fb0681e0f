//! The space of a disk in memory. A file takes its whole length, holes included, because allocated space must stay
//! available.

use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) struct Space {
    used: AtomicU64,
    capacity: AtomicU64,
}

impl Space {
    pub(crate) fn new(capacity: u64) -> Space {
        Space { used: AtomicU64::new(0), capacity: AtomicU64::new(capacity) }
    }

    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    pub(crate) fn capacity(&self) -> u64 {
        self.capacity.load(Ordering::Relaxed)
    }

    /// Bytes that can still be taken; `u64::MAX` without a limit.
    pub(crate) fn free(&self) -> u64 {
        match self.capacity() {
            u64::MAX => u64::MAX,
            capacity => capacity.saturating_sub(self.used()),
        }
    }

    pub(crate) fn set_capacity(&self, bytes: u64) {
        self.capacity.store(bytes, Ordering::Relaxed);
    }

    /// Takes as much of `bytes` as is free, and returns that amount.
    pub(crate) fn take_up_to(&self, bytes: u64) -> u64 {
        let mut taken = 0;
        // The closure always gives a value, so this cannot fail.
        let _ = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            taken = bytes.min(self.capacity().saturating_sub(used));
            Some(used + taken)
        });
        taken
    }

    /// Takes all of `bytes`, or nothing.
    pub(crate) fn take(&self, bytes: u64) -> bool {
        let taken = self.take_up_to(bytes);
        if taken < bytes {
            self.give(taken);
        }
        taken == bytes
    }

    pub(crate) fn give(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Sets the bytes in use, even beyond the capacity: a crash image may hold more than fits.
    pub(crate) fn set_used(&self, bytes: u64) {
        self.used.store(bytes, Ordering::Relaxed);
    }
}
