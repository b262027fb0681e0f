//! The server's two clocks: timestamps of writes, which never go back, and the time of day, by which things expire.
//!
//! A timestamp is the wall clock, or one more than the last where the wall clock has not moved on or was set back. The
//! time of day is the wall clock alone: a TTL of 8 s ends when the wall clock has gone on by 8 s, whatever timestamps do.
//!
//! Across a restart timestamps go on behind the last one that the log names. Each piece of the log that is handed to the
//! operating system begins with a record of the greatest timestamp given out by then (`commitlog/append.rs`). Why that
//! suffices: a write takes its timestamp before its record is appended, and the piece is handed over after that, so the
//! first record of the piece names that timestamp or a later one. Replay keeps a beginning of the log, so where a write
//! survives, the record before it does. What was given out and not named belongs to writes that no piece holds; they were
//! not acknowledged, and nothing on the disk has their timestamps. They may be given out again:
//!
//! - cells, deletions, counter shards and list elements with them are gone with their writes;
//! - a change of the schema is a write like any other, and the ids it makes are time UUIDs;
//! - time UUIDs that a client has seen (`now()` in a SELECT) are still told apart: clock sequence and node are drawn anew at
//!   each start.
//!
//! So a start adds nothing: it goes on from the greater of the wall clock and the last timestamp of a write. Timestamps that
//! clients give never count. The segment that a log goes on in names the last timestamp at its head before older segments
//! go, so a flush of everything does not lose it.

use crate::clock_watch::{ClockJump, Watch};
use crate::error::{Error, Result};
use crate::lanes::Line;
use helenus_host::Clock;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// Latest time of day that files can hold, seconds: 2106-02-07T06:28:13 (`Cell.MAX_DELETION_TIME`). No timestamp is taken
/// from a wall clock that says more: it is wrong, and what was written by it would stay newer than all that follows.
pub const TIME_OF_DAY_MAX_S: i64 = u32::MAX as i64 - 2;

const LATEST_US: i64 = TIME_OF_DAY_MAX_S * 1_000_000;

/// The greatest timestamp given out, microseconds: shared with the log, which writes it down.
#[derive(Clone, Default)]
pub(crate) struct LastGiven(Arc<Line<AtomicI64>>);

impl LastGiven {
    pub(crate) fn get(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl std::fmt::Debug for LastGiven {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("LastGiven").field(&self.get()).finish()
    }
}

/// The two clocks at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerTime {
    /// A timestamp that nothing else was given, microseconds.
    pub timestamp_us: i64,
    /// The wall clock, microseconds since the epoch.
    pub wall_us: i64,
    /// The time of day for TTLs, expiry and deletions: seconds since the epoch.
    pub now_s: i64,
}

/// How the clocks are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockStatus {
    /// The wall clock, microseconds since the epoch.
    pub wall_us: i64,
    /// The greatest timestamp that this server has given to a write; 0 before the first.
    pub last_us: i64,
    /// How often the wall clock jumped by more than an hour since the start, a jump found at the start among them.
    pub jumps: u64,
    /// The last of these jumps.
    pub last_jump: Option<ClockJump>,
    /// Whether timestamps are refused, since the wall clock says more than `TIME_OF_DAY_MAX_S` or than is allowed.
    pub is_refused: bool,
}

impl ClockStatus {
    /// How far timestamps are ahead of the wall clock, microseconds.
    pub fn ahead_us(&self) -> i64 {
        self.last_us.saturating_sub(self.wall_us).max(0)
    }
}

/// Gives out timestamps and the time of day.
pub(crate) struct Timestamps {
    clock: Arc<dyn Clock>,
    last: LastGiven,
    /// No timestamp is taken from a wall clock later than this, before it is judged anew.
    ceiling_us: AtomicI64,
    /// How far the wall clock may be ahead of where it would be without its jumps; the greatest number for any distance.
    ahead_us_max: AtomicI64,
    /// What `now_s` last said.
    said_s: AtomicI64,
    watch: Mutex<Watch>,
}

impl Timestamps {
    /// Goes on behind `known_us`, the last timestamp that the log names; 0 when it names none.
    pub(crate) fn new(clock: Arc<dyn Clock>, known_us: i64) -> Timestamps {
        let watch = Watch::new((clock.wall_us(), clock.monotonic_ns()), known_us);
        let last = LastGiven::default();
        last.0.store(known_us, Ordering::Relaxed);
        Timestamps {
            clock,
            last,
            ceiling_us: AtomicI64::new(LATEST_US),
            ahead_us_max: AtomicI64::new(i64::MAX),
            said_s: AtomicI64::new(i64::MIN),
            watch: Mutex::new(watch),
        }
    }

    /// The greatest timestamp given out, as the log reads it.
    pub(crate) fn last_given(&self) -> LastGiven {
        self.last.clone()
    }

    /// The next timestamp, and the time of day.
    ///
    /// # Errors
    /// `ClockBeyond` when the wall clock says more than it may.
    #[inline]
    pub(crate) fn next(&self) -> Result<ServerTime> {
        let wall_us = self.clock.wall_us();
        if wall_us > self.ceiling_us.load(Ordering::Relaxed) {
            self.judge(wall_us)?;
        }
        let timestamp_us = self.give(wall_us);
        Ok(ServerTime { timestamp_us, wall_us, now_s: self.time_of_day(wall_us) })
    }

    /// The next timestamp, microseconds, whatever the wall clock says: one more than the last where that says too much. For
    /// what must have an order of its own and cannot be refused.
    pub(crate) fn next_unrefused(&self) -> i64 {
        let wall_us = self.clock.wall_us();
        self.give(if self.says_too_much(wall_us) { i64::MIN } else { wall_us })
    }

    /// A wall clock that jumps ahead by more than an hour and by more than this, microseconds, gives no timestamps until it is set
    /// right or believed (`reset`). At first there is no such bound.
    pub(crate) fn set_ahead_max(&self, ahead_us_max: Option<u64>) {
        let ahead_us_max = ahead_us_max.and_then(|us| i64::try_from(us).ok()).unwrap_or(i64::MAX);
        let _watch = self.watch.lock();
        self.ahead_us_max.store(ahead_us_max, Ordering::Relaxed);
        // Whoever comes next judges.
        self.ceiling_us.store(i64::MIN, Ordering::Relaxed);
    }

    /// Whether no timestamp is taken from the wall clock now.
    fn says_too_much(&self, wall_us: i64) -> bool {
        wall_us > self.ceiling_us.load(Ordering::Relaxed) && self.judge(wall_us).is_err()
    }

    /// Sets the latest time that timestamps are taken from, and says whether this is one of those.
    #[cold]
    fn judge(&self, wall_us: i64) -> Result<()> {
        let mut watch = self.watch.lock();
        let moment = (wall_us, self.clock.monotonic_ns());
        watch.look(moment);
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

    /// The timestamp of a change of the schema: the last of its millisecond, none of which is given out again. The schema
    /// tables say in milliseconds when a column was dropped, and what is written to the next one of its name comes later.
    ///
    /// # Errors
    /// As `next`.
    pub(crate) fn next_of_schema(&self) -> Result<i64> {
        let next_us = self.next()?.timestamp_us;
        let end_of_ms = |us: i64| us - us.rem_euclid(1000) + 999;
        // Another may have been given out since, within the same millisecond.
        let given = self
            .last
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(end_of_ms(last.max(next_us))));
        Ok(end_of_ms(given.unwrap_or_else(|last| last).max(next_us)))
    }

    /// The last timestamp given out.
    pub(crate) fn last_us(&self) -> i64 {
        self.last.get()
    }

    /// The wall clock, microseconds since the epoch.
    #[inline]
    pub(crate) fn wall_us(&self) -> i64 {
        self.clock.wall_us()
    }

    /// The greater of the wall clock and the last timestamp, microseconds. Nothing is given out.
    pub(crate) fn latest_us(&self) -> i64 {
        self.clock.wall_us().max(self.last.get())
    }

    /// The time of day for TTLs, expiry and deletions, seconds.
    #[inline]
    pub(crate) fn now_s(&self) -> i64 {
        self.time_of_day(self.clock.wall_us())
    }

    /// The wall clock within what files can hold. A step back of less than a second, as of a clock that is corrected, is waited
    /// out, so that what has expired does not come back for it; a longer one is followed.
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

    /// The time of day for what removes things for good (purging, stale entries of indexes), seconds: as `now_s`, but a jump
    /// forward counts only once it has stood for an hour, and one beyond what files can hold never does: then it is 0, and
    /// nothing is over. A clock that is wrong for a moment must not cost data.
    pub(crate) fn purge_now_s(&self) -> i64 {
        let mut watch = self.watch.lock();
        let moment = (self.clock.wall_us(), self.clock.monotonic_ns());
        watch.look(moment);
        let trusted_us = watch.trusted_us(moment);
        if trusted_us > LATEST_US { 0 } else { trusted_us.div_euclid(1_000_000).max(0) }
    }

    /// Compares the wall clock with the monotonic one. The jumps found since this was last called go to `tell`; called often, in
    /// the background.
    pub(crate) fn look(&self, tell: &mut dyn FnMut(ClockJump)) {
        let jump = {
            let mut watch = self.watch.lock();
            watch.look((self.clock.wall_us(), self.clock.monotonic_ns()));
            watch.take_news()
        };
        if let Some(jump) = jump {
            tell(jump);
        }
    }

    /// Takes the wall clock as it is for right: timestamps go on from it, also where that is back. What it was like before.
    ///
    /// # Errors
    /// `ClockBeyond` when it says more than files can hold.
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

    /// How the clocks are.
    pub(crate) fn status(&self) -> ClockStatus {
        let wall_us = self.clock.wall_us();
        let (jumps, last_jump) = self.watch.lock().jumps();
        let is_refused = self.says_too_much(wall_us);
        ClockStatus { wall_us, last_us: self.last.get(), jumps, last_jump, is_refused }
    }
}

#[cfg(test)]
mod tests;
