//! The progress of an import, for its progress display.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// The progress of a running import, shared with its observers.
#[derive(Debug, Default)]
pub struct ImportProgress {
    bytes_total: AtomicU64,
    bytes_done: AtomicU64,
    what: Mutex<String>,
}

impl ImportProgress {
    /// Begins a phase with this number of bytes to read.
    pub fn begin(&self, bytes_total: u64) {
        self.bytes_total.store(bytes_total, Ordering::Relaxed);
        self.bytes_done.store(0, Ordering::Relaxed);
    }

    /// Sets the description of the current work.
    pub fn describe(&self, what: String) {
        *self.what.lock() = what;
    }

    /// Adds bytes that were processed.
    pub fn add(&self, bytes: u64) {
        self.bytes_done.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Runs `work`, which counts as `bytes` of the total. The work reports its progress as the amount done and its
    /// total.
    pub(super) fn part_of_total<R>(&self, bytes: u64, work: impl FnOnce(&mut dyn FnMut(u64, u64)) -> R) -> R {
        let mut told = 0;
        let done = work(&mut |done, of| {
            let now = (u128::from(bytes) * u128::from(done.min(of)) / u128::from(of.max(1))) as u64;
            self.add(now.saturating_sub(told));
            told = told.max(now);
        });
        self.add(bytes - told);
        done
    }

    /// The description of the current work, the bytes processed, and the total bytes.
    pub fn status(&self) -> (String, u64, u64) {
        let what = self.what.lock().clone();
        (what, self.bytes_done.load(Ordering::Relaxed), self.bytes_total.load(Ordering::Relaxed))
    }
}
