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

    /// What is done now, bytes done, and bytes there are.
    pub fn look(&self) -> (String, u64, u64) {
        let what = self.what.lock().clone();
        (what, self.bytes_done.load(Ordering::Relaxed), self.bytes_total.load(Ordering::Relaxed))
    }
}
