//! The failures of one table's flushes, compactions and reads, for status reports. Other tables go on.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Nanoseconds for which the flusher skips a table whose flush failed, so that other tables are flushed meanwhile.
const PAUSE_NS: u64 = 1_000_000_000;

/// Failures of one table.
#[derive(Default)]
pub(crate) struct TableFailures {
    kinds: Mutex<Failures>,
    /// The monotonic time in nanoseconds until which the flusher skips the table.
    flush_paused_ns: AtomicU64,
}

/// Operations whose last attempt failed, with the errors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Failures {
    /// Why the last flush failed.
    pub(crate) flush: Option<String>,
    /// Why the last compaction failed.
    pub(crate) compaction: Option<String>,
    /// The last panic of a read, which stays until the next start.
    pub(crate) read: Option<String>,
}

impl TableFailures {
    /// The current failures.
    pub(crate) fn now(&self) -> Failures {
        self.kinds.lock().clone()
    }

    /// Records the end of a flush.
    pub(crate) fn flushed(&self, failure: Option<String>, now_ns: u64) {
        let pause_ns = if failure.is_some() { now_ns.saturating_add(PAUSE_NS) } else { 0 };
        self.flush_paused_ns.store(pause_ns, Ordering::Relaxed);
        self.kinds.lock().flush = failure;
    }

    /// Whether the flusher skips the table at this time.
    pub(crate) fn is_flush_paused(&self, now_ns: u64) -> bool {
        now_ns < self.flush_paused_ns.load(Ordering::Relaxed)
    }

    /// Records the end of a compaction.
    pub(crate) fn compacted(&self, failure: Option<String>) {
        self.kinds.lock().compaction = failure;
    }

    /// Records a panic of a read.
    pub(crate) fn read_panicked(&self, text: String) {
        self.kinds.lock().read = Some(text);
    }
}
