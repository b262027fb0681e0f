//! Finds jumps of the wall clock by comparison with the monotonic clock, and decides which time may be trusted for
//! removing data.
//!
//! This file reads no clock. Its user does, often enough that a jump of an hour does not arrive in several smaller
//! steps (`Timestamps::observe`).

/// A change of the wall clock that does not match the time that has passed. Times in microseconds since the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockJump {
    /// The expected wall clock time.
    pub expected_us: i64,
    /// The actual wall clock time.
    pub found_us: i64,
    /// Whether the jump happened while the database was closed. `expected_us` is then the last timestamp of the
    /// previous run.
    pub between_runs: bool,
}

/// Smallest jump that is reported, microseconds.
const JUMP_US: i64 = 3_600_000_000;
/// Time after a jump forward until the new time is trusted for removing data, nanoseconds.
const DOUBT_NS: u64 = 3_600_000_000_000;
/// Longest time between the last write of one run and the next start that is not taken for a clock jump, microseconds.
const REST_US_MAX: i64 = 366 * 24 * 3_600_000_000;

/// Wall clock (microseconds since the epoch) and monotonic clock (nanoseconds), read together.
type Moment = (i64, u64);

/// The state of the comparison of the clocks.
pub(crate) struct Watch {
    seen: Moment,
    /// The jump forward that is not trusted yet, if there is one.
    doubted: Option<UntrustedJump>,
    news: Option<ClockJump>,
    jumps: u64,
    last_jump: Option<ClockJump>,
}

struct UntrustedJump {
    /// A moment before the jump.
    before: Moment,
    since_ns: u64,
}

impl Watch {
    /// Begins at the start of the database. `known_us` is the last timestamp of the previous run, 0 without one.
    pub(crate) fn new(now: Moment, known_us: i64) -> Watch {
        let (wall_us, monotonic_ns) = now;
        let mut watch = Watch { seen: now, doubted: None, news: None, jumps: 0, last_jump: None };
        let rest_us = wall_us.saturating_sub(known_us);
        if known_us > 0 && !(-JUMP_US..=REST_US_MAX).contains(&rest_us) {
            watch.jumped(ClockJump { expected_us: known_us, found_us: wall_us, between_runs: true });
            if rest_us > 0 {
                watch.doubted =
                    Some(UntrustedJump { before: (known_us, monotonic_ns), since_ns: monotonic_ns });
            }
        }
        watch
    }

    /// Compares the clocks with their last known values.
    pub(crate) fn observe(&mut self, now: Moment) {
        let (wall_us, monotonic_ns) = now;
        let expected_us = expected_at(self.seen, monotonic_ns);
        let ahead_us = wall_us.saturating_sub(expected_us);
        if !(-JUMP_US..=JUMP_US).contains(&ahead_us) {
            self.jumped(ClockJump { expected_us, found_us: wall_us, between_runs: false });
            if ahead_us > 0 {
                let before = self.doubted.take().map_or(self.seen, |doubt| doubt.before);
                self.doubted = Some(UntrustedJump { before, since_ns: monotonic_ns });
            }
        }
        let is_ahead =
            |doubt: &UntrustedJump| wall_us.saturating_sub(expected_at(doubt.before, monotonic_ns)) > JUMP_US;
        self.doubted = self.doubted.take().filter(is_ahead);
        self.seen = now;
    }

    /// The time to remove data by, microseconds, at a moment just passed to `observe`. A jump forward is included only
    /// after an hour.
    pub(crate) fn trusted_us(&self, now: Moment) -> i64 {
        match &self.doubted {
            Some(doubt) if now.1.saturating_sub(doubt.since_ns) < DOUBT_NS => self.expected_us(now),
            _ => now.0,
        }
    }

    /// The wall clock time without unaccepted jumps forward, microseconds, at a moment just passed to `observe`.
    pub(crate) fn expected_us(&self, (wall_us, monotonic_ns): Moment) -> i64 {
        self.doubted.as_ref().map_or(wall_us, |doubt| wall_us.min(expected_at(doubt.before, monotonic_ns)))
    }

    /// Accepts the wall clock as correct.
    pub(crate) fn accept(&mut self, now: Moment) {
        (self.seen, self.doubted) = (now, None);
    }

    /// The last jump that has not been reported yet.
    pub(crate) fn take_unreported(&mut self) -> Option<ClockJump> {
        self.news.take()
    }

    /// The number of jumps, and the last one.
    pub(crate) fn jumps(&self) -> (u64, Option<ClockJump>) {
        (self.jumps, self.last_jump)
    }

    fn jumped(&mut self, jump: ClockJump) {
        self.jumps += 1;
        (self.news, self.last_jump) = (Some(jump), Some(jump));
    }
}

/// The wall clock time of a later moment if the wall clock had advanced like the monotonic clock.
fn expected_at((wall_us, since_ns): Moment, monotonic_ns: u64) -> i64 {
    let passed_us = monotonic_ns.saturating_sub(since_ns) / 1000;
    wall_us.saturating_add(i64::try_from(passed_us).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_US: i64 = 3_600_000_000;
    const HOUR_NS: u64 = 3_600_000_000_000;
    const START: Moment = (1_800_000_000_000_000, 5);

    fn later(hours: i64, jumped_us: i64) -> Moment {
        (START.0 + hours * HOUR_US + jumped_us, START.1 + hours.unsigned_abs() * HOUR_NS)
    }

    #[test]
    fn time_that_passes_is_no_jump_nor_is_a_correction_of_an_hour() {
        let mut watch = Watch::new(START, 0);
        for moment in [later(3, 0), later(4, HOUR_US), later(5, 0), later(5_000, 0)] {
            watch.observe(moment);
            assert_eq!((watch.take_unreported(), watch.trusted_us(moment)), (None, moment.0));
        }
    }

    #[test]
    fn jumps_are_told_once_and_those_forward_doubted_for_an_hour() {
        let year_us = 365 * 24 * HOUR_US;
        let mut watch = Watch::new(START, START.0 - 1);
        let jumped = later(1, 80 * year_us);
        watch.observe(jumped);
        let jump = ClockJump { expected_us: later(1, 0).0, found_us: jumped.0, between_runs: false };
        assert_eq!((watch.take_unreported(), watch.take_unreported()), (Some(jump), None));
        assert_eq!(watch.trusted_us(jumped), later(1, 0).0, "as if it had not jumped");
        // The clock is right again before the hour is over.
        watch.observe(later(1, 5));
        assert_eq!(watch.trusted_us(later(1, 5)), later(1, 5).0);
        assert_eq!(watch.jumps().0, 2);
        // A jump that lasts.
        watch.observe(later(2, year_us));
        assert_eq!(watch.trusted_us(later(2, year_us)), later(2, 5).0);
        watch.observe(later(3, year_us));
        assert_eq!(watch.trusted_us(later(3, year_us)), later(3, year_us).0);
        assert_eq!(watch.expected_us(later(3, year_us)), later(3, 5).0, "nobody has accepted it");
        // An accepted jump is trusted at once.
        watch.observe(later(4, 2 * year_us));
        watch.accept(later(4, 2 * year_us));
        assert_eq!(watch.trusted_us(later(4, 2 * year_us)), later(4, 2 * year_us).0);
    }

    #[test]
    fn a_start_finds_a_clock_that_is_behind_the_last_timestamp_or_years_after_it() {
        let found = |known_us| Watch::new(START, known_us).take_unreported().map(|jump| jump.between_runs);
        assert_eq!(found(0), None);
        assert_eq!(found(START.0 - 300 * 24 * HOUR_US), None, "a rest");
        assert_eq!(found(START.0 + HOUR_US), None);
        assert_eq!(found(START.0 + HOUR_US + 1), Some(true));
        assert_eq!(found(START.0 - 400 * 24 * HOUR_US), Some(true));
    }
}
