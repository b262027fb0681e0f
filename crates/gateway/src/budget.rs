//! Counts the bytes of all requests in flight and of all answers that clients have not taken.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

/// The bytes of a gateway.
pub(crate) struct Budget {
    used: AtomicU64,
    max: u64,
    freed: Notify,
}

impl Budget {
    pub fn new(max: u64) -> Budget {
        Budget { used: AtomicU64::new(0), max, freed: Notify::new() }
    }

    pub fn take(&self, bytes: u64) {
        self.used.fetch_add(bytes, Ordering::Relaxed);
    }

    pub fn give_back(&self, bytes: u64) {
        let before = self.used.fetch_sub(bytes, Ordering::Relaxed);
        if before >= self.max && before - bytes < self.max {
            self.freed.notify_waiters();
        }
    }

    /// Waits until there is room. A client without a request in flight does not wait, so that each makes progress.
    pub async fn room(&self) {
        loop {
            let freed = self.freed.notified();
            tokio::pin!(freed);
            freed.as_mut().enable();
            if self.used.load(Ordering::Relaxed) < self.max {
                return;
            }
            freed.await;
        }
    }
}
