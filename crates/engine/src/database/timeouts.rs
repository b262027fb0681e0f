//! Timeouts of reads: set when the database is opened, and changeable while it runs.
//!
//! A read loads the three values one by one. A read that begins while they are changed may see old and new values,
//! which does no harm.

use std::sync::atomic::{AtomicU64, Ordering};

/// Timeouts of reads, nanoseconds; `None`: no limit.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadTimeouts {
    /// Reads of partitions by key.
    pub by_key_ns: Option<u64>,
    /// Reads over a range of partitions.
    pub range_ns: Option<u64>,
    /// Time after which a read that may not wait for the disk answers `WouldBlock`; `None`: 20 ms.
    pub patience_ns: Option<u64>,
}

/// The timeouts of a running database.
#[derive(Debug)]
pub(crate) struct LiveTimeouts {
    by_key_ns: AtomicU64,
    range_ns: AtomicU64,
    patience_ns: AtomicU64,
}

/// No limit.
const NONE: u64 = u64::MAX;

impl LiveTimeouts {
    pub fn new(timeouts: ReadTimeouts) -> LiveTimeouts {
        let live = LiveTimeouts {
            by_key_ns: AtomicU64::new(NONE),
            range_ns: AtomicU64::new(NONE),
            patience_ns: AtomicU64::new(NONE),
        };
        live.set(timeouts);
        live
    }

    pub(super) fn set(&self, timeouts: ReadTimeouts) {
        let store = |to: &AtomicU64, ns: Option<u64>| to.store(ns.unwrap_or(NONE), Ordering::Relaxed);
        store(&self.by_key_ns, timeouts.by_key_ns);
        store(&self.range_ns, timeouts.range_ns);
        store(&self.patience_ns, timeouts.patience_ns);
    }

    /// The timeout of a read by key or of a range read.
    #[inline]
    pub fn own_ns(&self, by_key: bool) -> Option<u64> {
        let ns = if by_key { &self.by_key_ns } else { &self.range_ns };
        Some(ns.load(Ordering::Relaxed)).filter(|ns| *ns != NONE)
    }

    /// The timeout of a read that may not wait for the disk.
    #[inline]
    pub fn patience_ns(&self) -> Option<u64> {
        Some(self.patience_ns.load(Ordering::Relaxed)).filter(|ns| *ns != NONE)
    }
}
