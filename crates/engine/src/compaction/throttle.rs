//! The throttle of compaction: limits the bytes per second that all compactions together read from files.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Pauses below this are postponed and added to the next one, because a sleep this short takes too long.
const CARRIED_NS: u64 = 5_000_000;

/// Shared by all compactions.
pub(super) struct Throttle {
    /// Bytes per second; 0 for no limit.
    bytes_per_s: AtomicU64,
    /// The monotonic time at which the bytes read so far are within the rate.
    paid_ns: Mutex<u64>,
}

impl Throttle {
    pub(super) fn new(bytes_per_s: u64) -> Throttle {
        Throttle { bytes_per_s: AtomicU64::new(bytes_per_s), paid_ns: Mutex::new(0) }
    }

    /// Bytes per second; 0 for no limit.
    pub(super) fn bytes_per_s(&self) -> u64 {
        self.bytes_per_s.load(Ordering::Relaxed)
    }

    /// Changes the rate.
    pub(super) fn set(&self, bytes_per_s: u64) {
        self.bytes_per_s.store(bytes_per_s, Ordering::Relaxed);
        // Bytes read at the old rate do not count against the new one.
        *self.paid_ns.lock() = 0;
    }

    /// Counts bytes. Returns the monotonic time until which the reader must pause, if it must.
    pub(super) fn count(&self, bytes: u64, now_ns: u64) -> Option<u64> {
        let bytes_per_s = self.bytes_per_s();
        if bytes_per_s == 0 || bytes == 0 {
            return None;
        }
        let cost_ns = u128::from(bytes) * 1_000_000_000 / u128::from(bytes_per_s);
        let mut paid_ns = self.paid_ns.lock();
        *paid_ns = (*paid_ns).max(now_ns).saturating_add(u64::try_from(cost_ns).unwrap_or(u64::MAX));
        (*paid_ns > now_ns.saturating_add(CARRIED_NS)).then_some(*paid_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_of_work_takes_a_second_however_it_is_cut() {
        let throttle = Throttle::new(100 << 20);
        let mut now_ns = 7_000_000_000;
        for _ in 0..1000 {
            now_ns = throttle.count(1 << 20, now_ns).unwrap_or(now_ns);
        }
        let seconds = (now_ns - 7_000_000_000) as f64 / 1e9;
        assert!((9.9..=10.0).contains(&seconds), "{seconds}");
        assert_eq!(Throttle::new(0).count(u64::MAX, 1), None);
    }

    #[test]
    fn another_rate_holds_at_once() {
        let throttle = Throttle::new(1);
        assert!(throttle.count(1 << 20, 0).is_some());
        throttle.set(1 << 20);
        assert_eq!(throttle.count(1 << 20, 0), Some(1_000_000_000));
        throttle.set(0);
        assert_eq!(throttle.count(1 << 20, 0), None);
    }
}
