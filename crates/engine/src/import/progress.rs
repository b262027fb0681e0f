//! How far an import is, for whoever watches it.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Figures of an import under way. Shared with who watches.
#[derive(Debug, Default)]
pub struct ImportProgress {
    bytes_total: AtomicU64,
    bytes_done: AtomicU64,
    what: Mutex<String>,
}

impl ImportProgress {
    /// Begins with so many bytes to read.
    pub fn begin(&self, bytes_total: u64) {
        self.bytes_total.store(bytes_total, Ordering::Relaxed);
        self.bytes_done.store(0, Ordering::Relaxed);
    }

    /// Says what is done now.
    pub fn doing(&self, what: String) {
        *self.what.lock() = what;
    }

    /// So many bytes more.
    pub fn add(&self, bytes: u64) {
        self.bytes_done.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Does something that is so many bytes of the whole, and that tells how far it is: what is done, and of how much.
    pub(super) fn within<R>(&self, bytes: u64, work: impl FnOnce(&mut dyn FnMut(u64, u64)) -> R) -> R {
        let mut told = 0;
        let done = work(&mut |done, of| {
            let now = (u128::from(bytes) * u128::from(done.min(of)) / u128::from(of.max(1))) as u64;
            self.add(now.saturating_sub(told));
            told = told.max(now);
        });
        self.add(bytes - told);
        done
    }

    /// What is done now, bytes done, and bytes there are.
    pub fn look(&self) -> (String, u64, u64) {
        let what = self.what.lock().clone();
        (what, self.bytes_done.load(Ordering::Relaxed), self.bytes_total.load(Ordering::Relaxed))
    }
}
