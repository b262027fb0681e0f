//! The server's two clocks: the timestamps of writes, which never go back, and the time of day, by which data expires.
//!
//! A timestamp is the wall clock, or one more than the last timestamp if the wall clock has not advanced or was set
//! back. The time of day is the wall clock alone: a TTL of 8 s ends when the wall clock has advanced by 8 s, whatever
//! timestamps do.
//!
//! After a restart, timestamps continue after the last one that the log records. Each piece of the log that is passed
//! to the operating system begins with a record of the greatest timestamp assigned so far (`commitlog/append.rs`). This
//! suffices, because a write takes its timestamp before its record is appended, and the piece is passed on after that.
//! So the first record of the piece has that timestamp or a later one. Replay keeps a prefix of the log, so if a write
//! survives, the record before it does too. Timestamps that were assigned but not recorded belong to writes that are in
//! no piece: these were not acknowledged, and nothing on the disk has their timestamps. They may be assigned again:
//!
//! - cells, deletions, counter shards and list elements with them were lost with their writes;
//! - a schema change is a write like any other, and the ids it makes are time UUIDs;
//! - time UUIDs that a client has seen (`now()` in a SELECT) still differ, because clock sequence and node are chosen
//!   anew at each start.
//!
//! So a start continues from the greater of the wall clock and the last timestamp of a write, without any margin.
//! Timestamps from clients never count. A new log segment records the last timestamp at its beginning before older
//! segments are removed, so flushing everything does not lose it.

use crate::clock_watch::{ClockJump, Watch};
use crate::error::{Error, Result};
use crate::sharded::CacheLine;
use helenus_host::Clock;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// Latest time of day that files can store, seconds: 2106-02-07T06:28:13 (`Cell.MAX_DELETION_TIME`). No timestamp is
/// taken from a wall clock after this time: the clock is wrong, and data written with it would stay newer than all
/// later data.
pub const TIME_OF_DAY_MAX_S: i64 = u32::MAX as i64 - 2;

const LATEST_US: i64 = TIME_OF_DAY_MAX_S * 1_000_000;

/// The greatest timestamp assigned so far, microseconds. Shared with the log, which records it.
#[derive(Clone, Default)]
pub(crate) struct LastAssigned(Arc<CacheLine<AtomicI64>>);

impl LastAssigned {
    pub(crate) fn get(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl std::fmt::Debug for LastAssigned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("LastGiven").field(&self.get()).finish()
    }
}

/// Both clocks at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerTime {
    /// A timestamp that was assigned to nothing else, microseconds.
    pub timestamp_us: i64,
    /// The wall clock, microseconds since the epoch.
    pub wall_us: i64,
    /// The time of day for TTLs, expiry and deletions: seconds since the epoch.
    pub now_s: i64,
}

/// The state of the clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockStatus {
    /// The wall clock, microseconds since the epoch.
    pub wall_us: i64,
    /// The greatest timestamp that this server has assigned to a write; 0 before the first.
    pub last_us: i64,
    /// The number of jumps of the wall clock by more than an hour since the start, including one found at the start.
    pub jumps: u64,
    /// The last of these jumps.
    pub last_jump: Option<ClockJump>,
    /// Whether timestamps are refused, because the wall clock is after `TIME_OF_DAY_MAX_S` or too far ahead.
    pub is_refused: bool,
}

impl ClockStatus {
    /// Microseconds that timestamps are ahead of the wall clock.
    pub fn ahead_us(&self) -> i64 {
        self.last_us.saturating_sub(self.wall_us).max(0)
    }
}

/// Assigns timestamps and returns the time of day.
pub(crate) struct Timestamps {
    clock: Arc<dyn Clock>,
    last: LastAssigned,
    /// The latest wall clock time that `next` accepts without calling `judge`, microseconds.
    ceiling_us: AtomicI64,
    /// The most microseconds that the wall clock may be ahead of its time without jumps; `i64::MAX` for no limit.
    ahead_us_max: AtomicI64,
    /// The last time of day returned.
    said_s: AtomicI64,
    watch: Arc<Mutex<Watch>>,
}

/// The time of day for removing what is kept for a while.
#[derive(Clone)]
pub struct TrustedClock {
    clock: Arc<dyn Clock>,
    watch: Arc<Mutex<Watch>>,
}

impl TrustedClock {
    /// Seconds since the epoch. A clock that is wrong for a moment must not cost data: unlike in `Timestamps::now_s`, a
    /// jump forward counts only after an hour, and a time beyond what files can store never counts. Then the result is 0,
    /// and nothing is removed.
    pub(crate) fn now_s(&self) -> i64 {
        let mut watch = self.watch.lock();
        let moment = (self.clock.wall_us(), self.clock.monotonic_ns());
        watch.observe(moment);
        let trusted_us = watch.trusted_us(moment);
        if trusted_us > LATEST_US { 0 } else { trusted_us.div_euclid(1_000_000).max(0) }
    }
}

impl std::fmt::Debug for TrustedClock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("TrustedClock").field(&self.now_s()).finish()
    }
}

impl Timestamps {
    /// Continues after `known_us`, the last timestamp that the log records; 0 if there is none.
    pub(crate) fn new(clock: Arc<dyn Clock>, known_us: i64) -> Timestamps {
        let watch = Watch::new((clock.wall_us(), clock.monotonic_ns()), known_us);
        let last = LastAssigned::default();
        last.0.store(known_us, Ordering::Relaxed);
        Timestamps {
            clock,
            last,
            ceiling_us: AtomicI64::new(LATEST_US),
            ahead_us_max: AtomicI64::new(i64::MAX),
            said_s: AtomicI64::new(i64::MIN),
            watch: Arc::new(Mutex::new(watch)),
        }
    }

    /// The greatest timestamp assigned so far, for the log to read.
    pub(crate) fn last_given(&self) -> LastAssigned {
        self.last.clone()
    }

    /// The time of day for removing data, for the log to read.
    pub(crate) fn trusted_clock(&self) -> TrustedClock {
        TrustedClock { clock: self.clock.clone(), watch: self.watch.clone() }
    }

    /// The next timestamp, and the time of day.
    ///
    /// # Errors
    /// `ClockBeyond` if the wall clock is too late.
    #[inline]
    pub(crate) fn next(&self) -> Result<ServerTime> {
        let wall_us = self.clock.wall_us();
        if wall_us > self.ceiling_us.load(Ordering::Relaxed) {
            self.judge(wall_us)?;
        }
        let timestamp_us = self.give(wall_us);
        Ok(ServerTime { timestamp_us, wall_us, now_s: self.time_of_day(wall_us) })
    }

    /// The next timestamp, microseconds, for operations that need an order of their own and cannot be refused. If the
    /// wall clock is too late, it is one more than the last timestamp.
    pub(crate) fn next_always(&self) -> i64 {
        let wall_us = self.clock.wall_us();
        self.give(if self.says_too_much(wall_us) { i64::MIN } else { wall_us })
    }

    /// Sets the most microseconds that the wall clock may jump ahead; `None`, as at the start, for no limit. After a
    /// jump of more than an hour and more than this, the clock gives no timestamps until it is set right or accepted
    /// (`reset`).
    pub(crate) fn set_ahead_max(&self, ahead_us_max: Option<u64>) {
        let ahead_us_max = ahead_us_max.and_then(|us| i64::try_from(us).ok()).unwrap_or(i64::MAX);
        let _watch = self.watch.lock();
        self.ahead_us_max.store(ahead_us_max, Ordering::Relaxed);
        // The next caller must call `judge`.
        self.ceiling_us.store(i64::MIN, Ordering::Relaxed);
    }

    /// Whether the wall clock is too late to take a timestamp from it.
    fn says_too_much(&self, wall_us: i64) -> bool {
        wall_us > self.ceiling_us.load(Ordering::Relaxed) && self.judge(wall_us).is_err()
    }

    /// Sets the latest time that timestamps are taken from. Fails if `wall_us` is later.
    #[cold]
    fn judge(&self, wall_us: i64) -> Result<()> {
        let mut watch = self.watch.lock();
        let moment = (wall_us, self.clock.monotonic_ns());
        watch.observe(moment);
        let ahead_us_max = self.ahead_us_max.load(Ordering::Relaxed);
        let latest_us = LATEST_US.min(watch.expected_us(moment).saturating_add(ahead_us_max));
        self.ceiling_us.store(latest_us, Ordering::Relaxed);
        drop(watch);
        if wall_us <= latest_us { Ok(()) } else { Err(Error::ClockBeyond { wall_us, latest_us }) }
    }

    #[inline]
    fn give(&self, wall_us: i64) -> i64 {
        let after = |last: i64| wall_us.max(last.saturating_add(1));
        let given = self.last.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(after(last)));
        after(given.unwrap_or_else(|last| last))
    }

    /// The timestamp of a schema change: the last one of its millisecond, so that no later timestamp is in the same
    /// millisecond. The schema tables store the time of a column's drop in milliseconds, and writes to the next column
    /// of that name must come later.
    pub(crate) fn next_of_schema(&self) -> Result<i64> {
        let next_us = self.next()?.timestamp_us;
        let end_of_ms = |us: i64| us - us.rem_euclid(1000) + 999;
        // Another timestamp may have been assigned since, within the same millisecond.
        let given = self
            .last
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(end_of_ms(last.max(next_us))));
        Ok(end_of_ms(given.unwrap_or_else(|last| last).max(next_us)))
    }

    /// The last timestamp assigned.
    pub(crate) fn last_us(&self) -> i64 {
        self.last.get()
    }

    /// The wall clock, microseconds since the epoch.
    #[inline]
    pub(crate) fn wall_us(&self) -> i64 {
        self.clock.wall_us()
    }

    /// The greater of the wall clock and the last timestamp, microseconds. Assigns nothing.
    pub(crate) fn latest_us(&self) -> i64 {
        self.clock.wall_us().max(self.last.get())
    }

    /// The time of day for TTLs, expiry and deletions, seconds.
    #[inline]
    pub(crate) fn now_s(&self) -> i64 {
        self.time_of_day(self.clock.wall_us())
    }

    /// The wall clock in seconds, limited to what files can store. After a step back of less than a second, as by clock
    /// synchronisation, the last returned second is repeated until the clock has caught up, so that expired data does
    /// not reappear. A longer step back is followed.
    #[inline]
    fn time_of_day(&self, wall_us: i64) -> i64 {
        let now_s = wall_us.div_euclid(1_000_000).clamp(0, TIME_OF_DAY_MAX_S);
        let said_s = self.said_s.load(Ordering::Relaxed);
        if now_s == said_s || now_s == said_s.wrapping_sub(1) {
            return said_s;
        }
        self.said_s.store(now_s, Ordering::Relaxed);
        now_s
    }

    /// The time of day for removing data permanently (purging, stale index entries), seconds (`TrustedClock::now_s`).
    pub(crate) fn purge_now_s(&self) -> i64 {
        self.trusted_clock().now_s()
    }

    /// Compares the wall clock with the monotonic clock, and passes jumps found since the last call to `tell`. Called
    /// often, in the background.
    pub(crate) fn look(&self, tell: &mut dyn FnMut(ClockJump)) {
        let jump = {
            let mut watch = self.watch.lock();
            watch.observe((self.clock.wall_us(), self.clock.monotonic_ns()));
            watch.take_unreported()
        };
        if let Some(jump) = jump {
            tell(jump);
        }
    }

    /// Accepts the current wall clock: timestamps continue from it, even if that is back. Returns the status before.
    ///
    /// # Errors
    /// `ClockBeyond` if it is later than files can store.
    pub(crate) fn reset(&self) -> Result<ClockStatus> {
        let mut watch = self.watch.lock();
        let (wall_us, monotonic_ns) = (self.clock.wall_us(), self.clock.monotonic_ns());
        if wall_us > LATEST_US {
            return Err(Error::ClockBeyond { wall_us, latest_us: LATEST_US });
        }
        watch.accept((wall_us, monotonic_ns));
        drop(watch);
        let before = self.status();
        self.last.0.store(wall_us.max(0), Ordering::Relaxed);
        Ok(before)
    }

    /// The state of the clocks.
    pub(crate) fn status(&self) -> ClockStatus {
        let wall_us = self.clock.wall_us();
        let (jumps, last_jump) = self.watch.lock().jumps();
        let is_refused = self.says_too_much(wall_us);
        ClockStatus { wall_us, last_us: self.last.get(), jumps, last_jump, is_refused }
    }
}

#[cfg(test)]
mod tests;
