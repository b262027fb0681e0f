//! Server timestamps: never twice the same, never going back, not across a restart either.

use crate::commitlog::CommitLog;
use crate::error::Result;
use helenus_host::Clock;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// How far ahead timestamps are reserved in the log. After a crash they continue behind the reserve, so at most this
/// much in the future.
const RESERVE_US: i64 = 1_000_000;

/// Gives out timestamps.
pub struct Timestamps {
    clock: Arc<dyn Clock>,
    last_us: AtomicI64,
    reserved_us: AtomicI64,
}

impl Timestamps {
    /// Continues behind `reserved_us`, which the log says may have been given out.
    pub fn new(clock: Arc<dyn Clock>, reserved_us: i64) -> Timestamps {
        Timestamps { clock, last_us: AtomicI64::new(reserved_us), reserved_us: AtomicI64::new(reserved_us) }
    }

    /// The next timestamp, microseconds: the wall clock, or one more than the last. Reserves ahead in `log`; the
    /// record goes before that of the write it is for, so it is as durable.
    pub fn next(&self, log: Option<&Arc<CommitLog>>) -> Result<i64> {
        let wall = self.clock.wall_us();
        let previous =
            self.last_us.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(wall.max(last + 1)));
        let given = wall.max(previous.unwrap_or_else(|last| last) + 1);
        self.reserve(given, log)?;
        Ok(given)
    }

    /// The timestamp of a change of the schema: the last of its millisecond, none of which is given out again. The schema
    /// tables say in milliseconds when a column was dropped, and what is written to the next one of its name comes later.
    pub fn next_of_schema(&self, log: Option<&Arc<CommitLog>>) -> Result<i64> {
        let next = self.next(log)?;
        let given = next - next.rem_euclid(1000) + 999;
        self.last_us.fetch_max(given, Ordering::Relaxed);
        self.reserve(given, log)?;
        Ok(given)
    }

    fn reserve(&self, given: i64, log: Option<&Arc<CommitLog>>) -> Result<()> {
        if given > self.reserved_us.load(Ordering::Relaxed)
            && let Some(log) = log
        {
            let reserve = given + RESERVE_US;
            // The write's own ticket, which comes after this record in the log, stands for both.
            drop(log.reserve_timestamps(reserve)?);
            self.reserved_us.fetch_max(reserve, Ordering::Relaxed);
        }
        Ok(())
    }

    /// The last timestamp given out.
    pub fn last_us(&self) -> i64 {
        self.last_us.load(Ordering::Relaxed)
    }

    /// Now, microseconds: the wall clock, never behind a timestamp given out. Nothing is given out.
    pub fn now_us(&self) -> i64 {
        self.clock.wall_us().max(self.last_us.load(Ordering::Relaxed))
    }

    /// Now for TTLs and expiry, seconds.
    pub fn now_s(&self) -> i64 {
        self.now_us() / 1_000_000
    }
}
