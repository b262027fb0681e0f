//! The failures of one table's flushes, compactions and reads, for status reports. Other tables go on.
//!
//! A table whose flush fails keeps its memtables, and its writes are refused once that is much or has lasted long. The
//! other tables then have the rest of the memory (`memtable/stuck.rs`). The flusher goes on trying.

use crate::error::Error;
use crate::memtable::{MemoryAccount, StuckMemory};
use helenus_model::schema::Table;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Nanoseconds for which the flusher skips a table whose flush failed, so that other tables are flushed meanwhile. Each
/// failure in a row doubles it, up to `PAUSE_NS_MAX`: an attempt may write the whole memtable before it fails.
const PAUSE_NS: u64 = 1_000_000_000;
const PAUSE_NS_MAX: u64 = 8 * PAUSE_NS;

/// Nanoseconds after which the writes of a table are refused whose flush has failed ever since.
const PATIENCE_NS: u64 = 60_000_000_000;

/// Failures of one table.
#[derive(Default)]
pub(crate) struct TableFailures {
    kinds: Mutex<Failures>,
    stuck: Mutex<Option<StuckTable>>,
    /// The monotonic time in nanoseconds until which the flusher skips the table.
    flush_paused_ns: AtomicU64,
    refuses_writes: AtomicBool,
}

/// A table whose last flush failed.
struct StuckTable {
    /// The monotonic time of the first failure in a row.
    since_ns: u64,
    pause_ns: u64,
    _memory: StuckMemory,
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

    /// Records that the memtables were flushed, or that they are gone.
    pub(crate) fn flushed(&self) {
        self.flush_paused_ns.store(0, Ordering::Relaxed);
        self.refuses_writes.store(false, Ordering::Relaxed);
        *self.stuck.lock() = None;
        self.kinds.lock().flush = None;
    }

    /// Records that a flush failed. The memtables, which have this many bytes, stay in memory.
    pub(crate) fn flush_failed(
        &self,
        failure: String,
        now_ns: u64,
        (memory, bytes): (&MemoryAccount, usize),
    ) {
        {
            let mut stuck = self.stuck.lock();
            let (since_ns, pause_ns) = match &*stuck {
                None => (now_ns, PAUSE_NS),
                Some(before) => (before.since_ns, (before.pause_ns * 2).min(PAUSE_NS_MAX)),
            };
            *stuck = Some(StuckTable { since_ns, pause_ns, _memory: StuckMemory::of(memory, bytes) });
            self.flush_paused_ns.store(now_ns.saturating_add(pause_ns), Ordering::Relaxed);
            let is_old = now_ns.saturating_sub(since_ns) > PATIENCE_NS;
            self.refuses_writes.store(is_old || memory.has_much_stuck(), Ordering::Relaxed);
        }
        self.kinds.lock().flush = Some(failure);
    }

    /// Makes the flusher skip the table until this monotonic time.
    pub(crate) fn pause_flush(&self, until_ns: u64) {
        self.flush_paused_ns.store(until_ns, Ordering::Relaxed);
    }

    /// Whether the flusher skips the table at this time.
    pub(crate) fn is_flush_paused(&self, now_ns: u64) -> bool {
        now_ns < self.flush_paused_ns.load(Ordering::Relaxed)
    }

    /// Whether its last flush failed.
    pub(crate) fn is_stuck(&self) -> bool {
        self.stuck.lock().is_some()
    }

    /// Refuses a write of a table whose flush fails, if it has too much in memory already, or for too long.
    ///
    /// # Errors
    /// `FlushFails`.
    #[inline]
    pub(crate) fn check_write(&self, table: &Table) -> Result<(), Error> {
        if self.refuses_writes.load(Ordering::Relaxed) { Err(self.refusal(table)) } else { Ok(()) }
    }

    #[cold]
    fn refusal(&self, table: &Table) -> Error {
        let reason = self.kinds.lock().flush.clone().unwrap_or_default();
        Error::FlushFails { keyspace: table.keyspace.to_string(), table: table.name.to_string(), reason }
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
