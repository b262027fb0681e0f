//! Notices a commit log that is too long and gets no shorter, although every flush succeeds: a fault of the engine, which
//! would end in a full disk. Called by the flusher at each of its looks; the journal is told once.

use super::flush_choice::SEGMENTS_MAX;

/// Nanoseconds for which the oldest segment stays before the log counts as stalled.
const STALLED_NS: u64 = 60_000_000_000;
/// Looks that the flusher must have had in that time: a flush of a large table may take longer than a minute.
const LOOKS_MIN: u32 = 60;

/// A log as the flusher sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct SeenLog {
    /// The number of its oldest segment before the active one.
    pub(super) oldest: Option<u32>,
    /// The tables for which that segment stays.
    pub(super) keepers: usize,
    /// The number of segments.
    pub(super) segments: usize,
}

/// What the flusher has seen of the log.
#[derive(Debug, Default)]
pub(super) struct StalledLog {
    /// The oldest segment of a log that is too long.
    oldest: Option<u32>,
    /// The tables for which it stays.
    keepers: usize,
    since_ns: u64,
    looks: u32,
    is_told: bool,
}

impl StalledLog {
    /// Takes note of a log. Returns whether it has stalled, once each time. `is_explained` says that a flush or a removal
    /// fails, or that the disk is full: that is known otherwise.
    pub(super) fn look(&mut self, now_ns: u64, seen: SeenLog, is_explained: bool) -> bool {
        let SeenLog { oldest, keepers, segments } = seen;
        let oldest = oldest.filter(|_| segments > SEGMENTS_MAX && !is_explained);
        // One look flushes few of thousands of little tables.
        let is_on_the_way = oldest == self.oldest && keepers < self.keepers;
        if oldest.is_none() || oldest != self.oldest || is_on_the_way {
            *self = StalledLog { oldest, keepers, since_ns: now_ns, looks: 0, is_told: false };
            return false;
        }
        self.looks = self.looks.saturating_add(1);
        let has_stalled = now_ns.saturating_sub(self.since_ns) >= STALLED_NS && self.looks >= LOOKS_MIN;
        has_stalled && !std::mem::replace(&mut self.is_told, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: usize = SEGMENTS_MAX + 1;
    const SECOND_NS: u64 = 1_000_000_000;

    /// The seconds at which the log is found stalled, if `seen` says for each second what is there.
    fn told(seen: impl Fn(u64) -> (Option<u32>, usize, bool)) -> Vec<u64> {
        let mut log = StalledLog::default();
        let is_told = |second: &u64| {
            let (oldest, segments, is_explained) = seen(*second);
            log.look(second * SECOND_NS, SeenLog { oldest, keepers: 1, segments }, is_explained)
        };
        (0..400).filter(is_told).collect()
    }

    #[test]
    fn a_log_that_is_too_long_and_keeps_its_oldest_segment_for_a_minute_is_told_once() {
        assert_eq!(told(|_| (Some(7), LONG, false)), [60]);
        // It gets shorter for a moment, and stalls again.
        assert_eq!(told(|second| (Some(7), LONG - usize::from(second == 100), false)), [60, 161]);
        assert_eq!(told(|second| (Some(second as u32 / 200), LONG, false)), [60, 260]);
    }

    #[test]
    fn a_log_that_loses_its_oldest_segment_in_time_is_short_or_has_a_known_cause_is_none() {
        let none: [u64; 0] = [];
        assert_eq!(told(|second| (Some(second as u32 / 50), LONG, false)), none);
        assert_eq!(told(|_| (Some(7), SEGMENTS_MAX, false)), none);
        assert_eq!(told(|_| (Some(7), LONG, true)), none);
        assert_eq!(told(|_| (None, LONG, false)), none);
        // One flush of two minutes: the flusher does not look meanwhile.
        let mut log = StalledLog::default();
        let seen = SeenLog { oldest: Some(7), keepers: 1, segments: LONG };
        assert!(!log.look(0, seen, false) && !log.look(120 * SECOND_NS, seen, false));
        // Thousands of little tables, of which some are flushed in each minute.
        let mut log = StalledLog::default();
        for second in 0..4000_u64 {
            let keepers = 10_000 - usize::try_from(second / 30).unwrap_or_default();
            assert!(!log.look(second * SECOND_NS, SeenLog { keepers, ..seen }, false), "{second}");
        }
    }
}
