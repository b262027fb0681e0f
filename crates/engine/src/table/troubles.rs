//! What goes wrong with one table, for whoever asks after it: the others go on.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// How long a table whose flush failed is passed over by the flusher, nanoseconds: other tables have their turn meanwhile.
const PAUSE_NS: u64 = 1_000_000_000;

/// Failures of one table's work.
#[derive(Default)]
pub(crate) struct Troubles {
    kinds: Mutex<Kinds>,
    /// Until when the flusher passes the table over, by the monotonic clock.
    flush_paused_ns: AtomicU64,
}

/// What has failed, and not gone well since.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Kinds {
    /// Why the last flush failed.
    pub(crate) flush: Option<String>,
    /// Why the last compaction failed.
    pub(crate) compaction: Option<String>,
    /// The last panic of a read, which stays until the next start.
    pub(crate) read: Option<String>,
}

impl Troubles {
    /// What has failed.
    pub(crate) fn now(&self) -> Kinds {
        self.kinds.lock().clone()
    }

    /// A flush ended.
    pub(crate) fn flushed(&self, failure: Option<String>, now_ns: u64) {
        let pause_ns = if failure.is_some() { now_ns.saturating_add(PAUSE_NS) } else { 0 };
        self.flush_paused_ns.store(pause_ns, Ordering::Relaxed);
        self.kinds.lock().flush = failure;
    }

    /// Whether the flusher passes the table over.
    pub(crate) fn is_flush_paused(&self, now_ns: u64) -> bool {
        now_ns < self.flush_paused_ns.load(Ordering::Relaxed)
    }

    /// A compaction ended.
    pub(crate) fn compacted(&self, failure: Option<String>) {
        self.kinds.lock().compaction = failure;
    }

    /// A read panicked.
    pub(crate) fn read_panicked(&self, text: String) {
        self.kinds.lock().read = Some(text);
    }
}
