//! The system's clocks and its randomness.

use crate::{Clock, Random};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// The system's wall clock, and a monotonic clock that starts when this value is created.
pub(crate) struct SystemClock {
    start: Instant,
}

impl SystemClock {
    pub(crate) fn new() -> SystemClock {
        SystemClock { start: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn wall_us(&self) -> i64 {
        let us = |d: std::time::Duration| i64::try_from(d.as_micros()).unwrap_or(i64::MAX);
        match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(after) => us(after),
            Err(before) => -us(before.duration()),
        }
    }

    fn monotonic_ns(&self) -> u64 {
        // 2^64 ns are 584 years.
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    #[cfg(target_os = "linux")]
    #[expect(unsafe_code, reason = "one call that fills a value of ours; SAFETY below")]
    fn coarse_ns(&self) -> u64 {
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // Reads memory that the kernel updates at each tick, at a third of the exact clock's cost. rustix would do it
        // without unsafe, but searches for the kernel's page itself and crashes under valgrind, which hides that page.
        // SAFETY: `now` is a timespec that is alive and ours during the call; the call keeps no pointer to it.
        let failed = unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &raw mut now) } != 0;
        if failed { 0 } else { u64::try_from(now.tv_sec * 1_000_000_000 + now.tv_nsec).unwrap_or(0) }
    }
}

/// Time at which the machine started, seconds since the epoch.
pub(super) fn boot_seconds() -> f64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64());
    now - uptime_seconds()
}

/// Seconds since the machine's start; 0 if `/proc` does not tell.
fn uptime_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/uptime").unwrap_or_default();
    text.split_whitespace().next().and_then(|seconds| seconds.parse().ok()).unwrap_or(0.0)
}

/// The system's random bytes.
///
/// # Panics
/// If the system has none, which happens on no supported system: without them ids would collide.
pub(crate) struct OsRandom;

impl Random for OsRandom {
    fn fill(&self, bytes: &mut [u8]) {
        if let Err(e) = fill(bytes) {
            panic!("the system gives no random bytes: {e}");
        }
    }
}

#[cfg(target_os = "linux")]
fn fill(mut bytes: &mut [u8]) -> std::io::Result<()> {
    use rustix::io::retry_on_intr;
    use rustix::rand::{GetRandomFlags, getrandom};
    while !bytes.is_empty() {
        let filled = retry_on_intr(|| getrandom(&mut *bytes, GetRandomFlags::empty()))?;
        bytes = bytes.get_mut(filled..).unwrap_or_default();
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn fill(bytes: &mut [u8]) -> std::io::Result<()> {
    use std::io::Read;
    std::fs::File::open("/dev/urandom")?.read_exact(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wall_clock_is_of_this_century_and_the_monotonic_one_does_not_go_back() {
        let clock = SystemClock::new();
        assert!(clock.wall_us() > 1_700_000_000_000_000);
        let first = clock.monotonic_ns();
        assert!(clock.monotonic_ns() >= first);
    }

    #[test]
    fn the_coarse_clock_does_not_go_back_and_the_machine_has_started() {
        let clock = SystemClock::new();
        let first = clock.coarse_ns();
        assert!(clock.coarse_ns() >= first);
        assert!(boot_seconds() > 1_000_000_000.0);
    }

    #[test]
    fn random_bytes_fill_buffers_of_any_length() {
        OsRandom.fill(&mut []);
        let (mut a, mut b) = ([0; 1000], [0; 1000]);
        OsRandom.fill(&mut a);
        OsRandom.fill(&mut b);
        assert_ne!(a, b);
        assert!(a[900..].iter().any(|byte| *byte != 0), "filled to the end");
    }
}
