//! The distribution of a meter's events over their values.

/// The distribution of events' values. `count` counts all events; everything else describes the sampled ones. Values
/// are accurate to a fifth.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Distribution {
    /// All events.
    pub count: u64,
    /// Events that were measured.
    pub measured: u64,
    /// The sum of the measured values.
    pub sum: u64,
    /// Upper end and number of events of each bucket, ascending; empty without a measured event. The last end is
    /// `u64::MAX`.
    pub buckets: Vec<(u64, u64)>,
}

impl Distribution {
    /// The value that this part (0 to 1) of the events does not exceed; 0 without events.
    pub fn percentile(&self, part: f64) -> u64 {
        let wanted = (self.measured as f64 * part).ceil() as u64;
        let mut seen = 0;
        for (end, events) in &self.buckets {
            seen += events;
            if seen >= wanted && wanted > 0 {
                return *end;
            }
        }
        0
    }

    /// The greatest value; 0 without events.
    pub fn max(&self) -> u64 {
        self.buckets.iter().rev().find(|(_, events)| *events > 0).map_or(0, |(end, _)| *end)
    }

    /// The upper end of the lowest bucket with an event; 0 without events.
    pub fn min(&self) -> u64 {
        self.buckets.iter().find(|(_, events)| *events > 0).map_or(0, |(end, _)| *end)
    }

    /// The mean of the measured values; 0 without events.
    pub fn mean(&self) -> f64 {
        if self.measured == 0 { 0.0 } else { self.sum as f64 / self.measured as f64 }
    }

    /// For each of these ascending values, the number of measured events up to it. An event counts as the upper end of
    /// its bucket.
    pub fn at_most(&self, values: &[u64]) -> Vec<u64> {
        let mut buckets = self.buckets.iter().peekable();
        let mut seen = 0;
        let up_to = |value: &u64| {
            while let Some((_, events)) = buckets.next_if(|(end, _)| end <= value) {
                seen += events;
            }
            seen
        };
        values.iter().map(up_to).collect()
    }

    /// Adds the events of another distribution.
    pub fn add(&mut self, other: &Distribution) {
        self.count += other.count;
        self.measured += other.measured;
        self.sum = self.sum.saturating_add(other.sum);
        if self.buckets.is_empty() {
            self.buckets.clone_from(&other.buckets);
            return;
        }
        for ((_, events), (_, more)) in self.buckets.iter_mut().zip(&other.buckets) {
            *events += more;
        }
    }
}
