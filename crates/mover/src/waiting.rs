//! Since when changes of a table wait to be sent: what `status` calls its lag, and what a cut looks at.
//!
//! The lag is told from the oldest change that is not sent, at the moment of the question: it grows while a request waits, for a node that
//! is down for instance. The age of a change is that of its timestamp, held within the time since the table was last at the end of its
//! changes, because a client's timestamp may be any. A change without a timestamp, as TRUNCATE, waits since it was read.

/// What waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Waiting {
    /// When the table was last at the end of its changes, microseconds since the epoch; `None` before its tail.
    end_us: Option<i64>,
    /// Since when changes wait; `None` if none does.
    since_us: Option<i64>,
}

impl Waiting {
    /// The table is at the end of its changes.
    pub(crate) fn end(&mut self, now_us: i64) {
        *self = Waiting { end_us: Some(now_us), since_us: None };
    }

    /// Changes were read, and are sent now. `first_us`: the timestamp of the first, if it has one.
    pub(crate) fn read(&mut self, first_us: Option<i64>, now_us: i64) {
        let earliest_us = self.end_us.unwrap_or(i64::MIN).min(now_us);
        let first_us = first_us.unwrap_or(now_us).clamp(earliest_us, now_us);
        // What was read before is sent.
        self.since_us = Some(first_us);
    }

    /// Something of the table waits that is no change of a page: it is not older than what waits already.
    pub(crate) fn waits(&mut self, now_us: i64) {
        self.since_us.get_or_insert(now_us);
    }

    /// Seconds by which the target is behind; `None` before the tail has read anything.
    pub(crate) fn lag_s(&self, now_us: i64) -> Option<f64> {
        match self.since_us {
            Some(since_us) => Some(now_us.saturating_sub(since_us).max(0) as f64 / 1e6),
            None => self.end_us.map(|_| 0.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000;

    #[test]
    fn a_lag_grows_while_a_change_waits_and_is_held_within_what_is_known() {
        let mut waiting = Waiting::default();
        assert_eq!(waiting.lag_s(5 * S), None);
        waiting.read(Some(3 * S), 5 * S);
        assert_eq!((waiting.lag_s(5 * S), waiting.lag_s(65 * S)), (Some(2.0), Some(62.0)));
        waiting.end(70 * S);
        assert_eq!(waiting.lag_s(90 * S), Some(0.0));
        // Timestamps of clients: from long ago, and from the future.
        for (first_us, lag_s) in [(Some(1), 20.0), (Some(i64::MAX), 0.0), (Some(80 * S), 10.0), (None, 0.0)] {
            let mut waiting = waiting;
            waiting.read(first_us, 90 * S);
            assert_eq!(waiting.lag_s(90 * S), Some(lag_s));
            waiting.waits(95 * S);
            assert_eq!(waiting.lag_s(100 * S), Some(lag_s + 10.0));
        }
        waiting.waits(90 * S);
        assert_eq!(waiting.lag_s(91 * S), Some(1.0));
    }
}
