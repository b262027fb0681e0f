//! A clock that moves only when it is told to.

use crate::Clock;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// 2025-01-01T00:00:00Z: later than the dates of every format, earlier than every expiry limit.
const START_US: i64 = 1_735_689_600_000_000;

pub(crate) struct VirtualClock {
    monotonic_ns: AtomicU64,
    /// Wall clock at monotonic time 0.
    start_us: AtomicI64,
    /// The latest time that the wall clock showed before it was last set.
    latest_us: AtomicI64,
}

impl VirtualClock {
    pub(crate) fn new() -> VirtualClock {
        VirtualClock::at(START_US, START_US)
    }

    /// The clock of a machine that starts after a crash: the wall clock continues, the monotonic clock starts at 0.
    pub(crate) fn restarted(&self) -> VirtualClock {
        VirtualClock::at(self.wall_us(), self.latest_us())
    }

    fn at(wall_us: i64, latest_us: i64) -> VirtualClock {
        VirtualClock {
            monotonic_ns: AtomicU64::new(0),
            start_us: AtomicI64::new(wall_us),
            latest_us: AtomicI64::new(latest_us),
        }
    }

    /// The latest time that the wall clock has shown, in earlier lives of the machine as well.
    pub(crate) fn latest_us(&self) -> i64 {
        self.latest_us.load(Ordering::Relaxed).max(self.wall_us())
    }

    pub(crate) fn advance(&self, ns: u64) {
        self.monotonic_ns.fetch_add(ns, Ordering::Relaxed);
    }

    pub(crate) fn advance_to(&self, ns: u64) {
        self.monotonic_ns.fetch_max(ns, Ordering::Relaxed);
    }

    pub(crate) fn set_wall_us(&self, wall_us: i64) {
        self.latest_us.store(self.latest_us(), Ordering::Relaxed);
        self.start_us.store(wall_us - self.passed_us(), Ordering::Relaxed);
    }

    fn passed_us(&self) -> i64 {
        i64::try_from(self.monotonic_ns() / 1000).unwrap_or(i64::MAX)
    }
}

impl Clock for VirtualClock {
    fn wall_us(&self) -> i64 {
        self.start_us.load(Ordering::Relaxed).saturating_add(self.passed_us())
    }

    fn monotonic_ns(&self) -> u64 {
        self.monotonic_ns.load(Ordering::Relaxed)
    }
}
