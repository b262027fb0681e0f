//! How long reads may take: set when the database is opened, and again while it runs.
//!
//! A read loads the three once, each by itself: one that begins while they are set anew may have the old value of one and the
//! new one of another, which is as good as having begun a moment before.

use super::shared::Database;
use std::sync::atomic::{AtomicU64, Ordering};

/// How long reads may take, nanoseconds; `None`: as long as they do.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadTimeouts {
    /// Reads of partitions by key.
    pub by_key_ns: Option<u64>,
    /// Reads over a range of partitions.
    pub range_ns: Option<u64>,
    /// Reads that may not wait for the disk, until they answer `WouldBlock` all the same; `None`: 20 ms.
    pub patience_ns: Option<u64>,
}

/// The timeouts of a running database.
#[derive(Debug)]
pub(crate) struct LiveTimeouts {
    by_key_ns: AtomicU64,
    range_ns: AtomicU64,
    patience_ns: AtomicU64,
}

/// No bound.
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

    fn set(&self, timeouts: ReadTimeouts) {
        let store = |to: &AtomicU64, ns: Option<u64>| to.store(ns.unwrap_or(NONE), Ordering::Relaxed);
        store(&self.by_key_ns, timeouts.by_key_ns);
        store(&self.range_ns, timeouts.range_ns);
        store(&self.patience_ns, timeouts.patience_ns);
    }

    /// The bound of a read, by key or over a range.
    #[inline]
    pub fn own_ns(&self, by_key: bool) -> Option<u64> {
        let ns = if by_key { &self.by_key_ns } else { &self.range_ns };
        Some(ns.load(Ordering::Relaxed)).filter(|ns| *ns != NONE)
    }

    /// That of a read that may not wait for the disk.
    #[inline]
    pub fn patience_ns(&self) -> Option<u64> {
        Some(self.patience_ns.load(Ordering::Relaxed)).filter(|ns| *ns != NONE)
    }
}

impl Database {
    /// How long reads that begin from now on may take.
    pub fn set_read_timeouts(&self, timeouts: ReadTimeouts) {
        self.shared.timeouts.set(timeouts);
    }
}
