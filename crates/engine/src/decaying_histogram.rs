//! Histograms of measured events: one of all events since the start, one of recent events.
//!
//! Recent events decay as in Cassandra's `DecayingEstimatedHistogramReservoir`: the weight of an event halves every
//! minute. Each bucket holds the sum of its events' weights, `2^(minutes since the landmark)`, so that nothing changes
//! as time passes; a query divides by the weight of the current time. The landmark moves every half hour, because
//! otherwise the weights would exceed the range of f64.

use crate::distribution::Distribution;
use helenus_sstable::statistics::EstimatedHistogram;

/// Buckets besides the one for zeros: up to 18 s in nanoseconds.
const BUCKETS: usize = 130;
/// Half-life of an event's weight, seconds (`HALF_TIME_IN_S`).
const HALF_LIFE_S: f64 = 60.0;
/// Seconds between two landmarks (`LANDMARK_RESET_INTERVAL_IN_NS`).
const LANDMARK_S: u64 = 30 * 60;
const SECOND_NS: u64 = 1_000_000_000;

/// The histograms of measured events.
pub(crate) struct Samples {
    /// Upper ends of the buckets: 0, those of Cassandra's histograms, `u64::MAX`.
    ends: Box<[u64]>,
    /// The number of events in each bucket.
    counts: Box<[u64]>,
    /// The sum of the weights of these events.
    weights: Box<[f64]>,
    /// The sum of all values.
    sum: u64,
    /// The time at which an event has weight 1, seconds of the monotonic clock.
    landmark_s: u64,
    /// The second for which the weight was last computed, and the weight.
    weighed: (u64, f64),
}

impl Samples {
    /// Empty histograms; `now_ns` is the monotonic clock.
    pub fn new(now_ns: u64) -> Samples {
        let zeros_and_others = EstimatedHistogram::new(BUCKETS);
        let ends: Box<[u64]> =
            std::iter::once(0).chain(zeros_and_others.buckets().map(|(end, _)| end)).collect();
        let now_s = now_ns / SECOND_NS;
        Samples {
            counts: vec![0; ends.len()].into(),
            weights: vec![0.0; ends.len()].into(),
            ends,
            sum: 0,
            landmark_s: now_s,
            weighed: (now_s, 1.0),
        }
    }

    /// Adds a value of this moment.
    pub fn add(&mut self, value: u64, now_ns: u64) {
        let now_s = now_ns / SECOND_NS;
        if now_s != self.weighed.0 {
            self.weigh(now_s);
        }
        let at = self.ends.partition_point(|end| *end < value);
        if let (Some(count), Some(weight)) = (self.counts.get_mut(at), self.weights.get_mut(at)) {
            *count += 1;
            *weight += self.weighed.1;
        }
        self.sum = self.sum.saturating_add(value);
    }

    #[cold]
    fn weigh(&mut self, now_s: u64) {
        if now_s.saturating_sub(self.landmark_s) > LANDMARK_S {
            let weight = self.weight(now_s);
            self.weights.iter_mut().for_each(|sum| *sum /= weight);
            self.landmark_s = now_s;
        }
        self.weighed = (now_s, self.weight(now_s));
    }

    /// The weight of an event in this second.
    fn weight(&self, now_s: u64) -> f64 {
        (now_s.saturating_sub(self.landmark_s) as f64 / HALF_LIFE_S).exp2()
    }

    /// The distribution since the start, for a total of `count` events.
    pub fn all(&self, count: u64) -> Distribution {
        Distribution {
            count,
            measured: self.counts.iter().sum(),
            sum: self.sum,
            buckets: self.ends.iter().copied().zip(self.counts.iter().copied()).collect(),
        }
    }

    /// The distribution of recent events, for a total of `count` events since the start. The events of each bucket are
    /// rounded, so that nothing remains some minutes after the last event. The sum takes each value as its bucket's
    /// upper end.
    pub fn recent(&self, count: u64, now_ns: u64) -> Distribution {
        let now = self.weight(now_ns / SECOND_NS);
        let events = self.weights.iter().map(|weight| (weight / now).round() as u64);
        let buckets: Vec<(u64, u64)> = self.ends.iter().copied().zip(events).collect();
        let sum =
            buckets.iter().fold(0_u64, |sum, (end, events)| sum.saturating_add(end.saturating_mul(*events)));
        Distribution { count, measured: buckets.iter().map(|(_, events)| events).sum(), sum, buckets }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE_NS: u64 = 60 * SECOND_NS;

    #[test]
    fn an_event_counts_half_as_much_after_a_minute_and_not_at_all_after_some() {
        let mut samples = Samples::new(5 * MINUTE_NS);
        (0..64).for_each(|_| samples.add(1_000, 5 * MINUTE_NS));
        (0..16).for_each(|_| samples.add(10, 7 * MINUTE_NS));
        let recent = |samples: &Samples, minutes: u64| {
            let found = samples.recent(80, minutes * MINUTE_NS);
            let events: Vec<u64> =
                found.buckets.iter().map(|(_, events)| *events).filter(|events| *events > 0).collect();
            (events, found.measured)
        };
        assert_eq!(recent(&samples, 7), (vec![16, 16], 32));
        assert_eq!(recent(&samples, 9), (vec![4, 4], 8));
        assert_eq!(recent(&samples, 30), (vec![], 0));
        let all = samples.all(80);
        assert_eq!((all.measured, all.sum), (80, 64_160));
    }

    #[test]
    fn weights_stay_the_same_when_the_landmark_moves() {
        let mut samples = Samples::new(0);
        for minute in 0..600 {
            (0..32).for_each(|_| samples.add(100, minute * MINUTE_NS));
        }
        // 32 + 16 + 8 + ... of the last minutes.
        let recent = samples.recent(0, 599 * MINUTE_NS);
        assert_eq!((recent.measured, recent.percentile(0.99)), (64, recent.max()));
        assert!((100..=120).contains(&recent.max()) && recent.mean() == recent.max() as f64, "{recent:?}");
    }
}
