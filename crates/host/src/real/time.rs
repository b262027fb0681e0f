//! The system's clocks and its randomness.

use crate::{Clock, Random};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Wall clock of the system; monotonic from the moment this value was made.
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
}

/// The system's random bytes.
///
/// # Panics
/// When the system has none to give, which no supported one does: without them ids would collide.
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
    fn random_bytes_fill_buffers_of_any_length() {
        OsRandom.fill(&mut []);
        let (mut a, mut b) = ([0; 1000], [0; 1000]);
        OsRandom.fill(&mut a);
        OsRandom.fill(&mut b);
        assert_ne!(a, b);
        assert!(a[900..].iter().any(|byte| *byte != 0), "filled to the end");
    }
}
