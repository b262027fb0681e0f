//! What the reads and writes of a table cost: all are counted, one in `SAMPLED` is measured.
//!
//! The data path pays one relaxed addition on a cache line that threads share rarely; only a sampled request reads the
//! clock and takes a lock. `system_views`, `/metrics` and the admin tools show these same figures; they are forgotten at a
//! restart, as Cassandra's are.

use crate::lanes::{self, Lanes};
use crate::samples::Samples;
use crate::top::Top;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// One request in so many is measured.
pub(crate) const SAMPLED: u64 = 16;

/// The figures of one table.
#[derive(Default)]
pub struct Figures {
    /// Reads of partitions by key; nanoseconds.
    pub(crate) reads: Meter,
    /// Reads over partitions; nanoseconds.
    pub(crate) scans: Meter,
    /// Writes into a partition; nanoseconds.
    pub(crate) writes: Meter,
    /// Rows that a read gave.
    pub(crate) rows: Meter,
    /// Dead rows and markers that a read passed.
    pub(crate) tombstones: Meter,
    /// SSTables that a read by key asked, a partition.
    pub(crate) sstables: Meter,
    /// The partitions that are read most.
    pub(crate) top_reads: Top,
    /// Those that are written most.
    pub(crate) top_writes: Top,
    /// Memtables that were flushed.
    pub(crate) flushes: AtomicU64,
    /// Bytes of the files that flushes wrote.
    pub(crate) flushed_bytes: AtomicU64,
    /// Compactions that have ended.
    pub(crate) compactions: AtomicU64,
    /// Bytes of the files that compactions wrote.
    pub(crate) compacted_bytes: AtomicU64,
}

/// A counter that many threads add to, each on a cache line that it shares with few.
#[derive(Default)]
pub(crate) struct Counter(Lanes<AtomicU64>);

/// Counts events and keeps the values of some.
#[derive(Default)]
pub(crate) struct Meter {
    events: Counter,
    sampled: Mutex<Option<Box<Samples>>>,
}

/// Of which events something is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// Of all since the start.
    All,
    /// Of the recent ones, each counted half as much for each minute that has passed, as Cassandra's tools show them.
    Recent {
        /// The monotonic clock.
        now_ns: u64,
    },
}

/// What a meter says. Percentiles and maximum are of the sampled events, rounded up by a fifth at most.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Summary {
    /// Events, all of them.
    pub count: u64,
    /// Value that half of them do not exceed.
    pub p50: u64,
    /// Value that 99 of a hundred do not exceed.
    pub p99: u64,
    /// Greatest value.
    pub max: u64,
}

/// The figures of a table at one moment; times in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FigureSummaries {
    /// Reads of partitions by key.
    pub reads: Summary,
    /// Reads over partitions.
    pub scans: Summary,
    /// Writes into a partition.
    pub writes: Summary,
    /// Rows that a read gave.
    pub rows: Summary,
    /// Dead rows and markers that a read passed.
    pub tombstones: Summary,
}

/// How the values of events are spread. Of many events a sample is measured: what is asked here is said of the sample,
/// `count` alone of all. Values are known to a fifth.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Distribution {
    /// Events, all of them.
    pub count: u64,
    /// Events that were measured.
    pub measured: u64,
    /// Sum of the measured values.
    pub sum: u64,
    /// Upper end and events of each bucket, ascending; empty without a measured event. `u64::MAX` is the last end.
    pub buckets: Vec<(u64, u64)>,
}

/// The distributions of a table at one moment; times in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Distributions {
    /// Reads of partitions by key.
    pub reads: Distribution,
    /// Reads over partitions.
    pub scans: Distribution,
    /// Writes into a partition.
    pub writes: Distribution,
    /// Rows that a read gave.
    pub rows: Distribution,
    /// Dead rows and markers that a read passed.
    pub tombstones: Distribution,
    /// SSTables that a read by key asked, a partition.
    pub sstables: Distribution,
}

impl Counter {
    /// Adds; what this thread's share was before.
    #[inline]
    pub(crate) fn add(&self, more: u64) -> u64 {
        lanes::add(self.0.mine(), more)
    }

    /// What has been added so far.
    pub(crate) fn value(&self) -> u64 {
        self.0.iter().map(|share| share.load(Ordering::Relaxed)).sum()
    }
}

impl Meter {
    /// Counts an event; whether it is one to measure. The first is.
    #[inline]
    pub(crate) fn count(&self) -> bool {
        self.events.add(1).is_multiple_of(SAMPLED)
    }

    /// Keeps the value of a measured event, which ended now (the monotonic clock).
    pub(crate) fn record(&self, value: u64, now_ns: u64) {
        let mut sampled = self.sampled.lock();
        sampled.get_or_insert_with(|| Box::new(Samples::new(now_ns))).add(value, now_ns);
    }

    /// What is known of this span, of so many events.
    fn distribution(&self, count: u64, span: Span) -> Distribution {
        match (&*self.sampled.lock(), span) {
            (None, _) => Distribution { count, ..Distribution::default() },
            (Some(samples), Span::All) => samples.all(count),
            (Some(samples), Span::Recent { now_ns }) => samples.recent(count, now_ns),
        }
    }

    /// Of a meter that counts its own events.
    pub(crate) fn counted(&self, span: Span) -> Distribution {
        self.distribution(self.events.value(), span)
    }
}

impl Distribution {
    /// The value that this part (0 to 1) of the events do not exceed; 0 without any.
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

    /// The greatest value; 0 without any.
    pub fn max(&self) -> u64 {
        self.buckets.iter().rev().find(|(_, events)| *events > 0).map_or(0, |(end, _)| *end)
    }

    /// The end of the lowest bucket with a value; 0 without any.
    pub fn min(&self) -> u64 {
        self.buckets.iter().find(|(_, events)| *events > 0).map_or(0, |(end, _)| *end)
    }

    /// The mean of the measured values; 0 without any.
    pub fn mean(&self) -> f64 {
        if self.measured == 0 { 0.0 } else { self.sum as f64 / self.measured as f64 }
    }

    /// The measured events of at most each of these values, which ascend. An event counts where its bucket ends.
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

    /// Adds the events of another.
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

    fn summary(&self) -> Summary {
        let (p50, p99) = (self.percentile(0.5), self.percentile(0.99));
        Summary { count: self.count, p50, p99, max: self.max() }
    }
}

impl std::fmt::Debug for Figures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Figures").field(&self.summaries(Span::All)).finish()
    }
}

impl Figures {
    /// How reads and writes are spread. Counts are of all since the start in either case.
    pub fn distributions(&self, span: Span) -> Distributions {
        let (reads, scans) = (self.reads.counted(span), self.scans.counted(span));
        // Sampled with the reads, which are counted already.
        let all = reads.count + scans.count;
        Distributions {
            rows: self.rows.distribution(all, span),
            tombstones: self.tombstones.distribution(all, span),
            sstables: self.sstables.distribution(reads.count, span),
            writes: self.writes.counted(span),
            reads,
            scans,
        }
    }

    /// What they say of this span, in short.
    pub(crate) fn summaries(&self, span: Span) -> FigureSummaries {
        let Distributions { reads, scans, writes, rows, tombstones, .. } = self.distributions(span);
        FigureSummaries {
            reads: reads.summary(),
            scans: scans.summary(),
            writes: writes.summary(),
            rows: rows.summary(),
            tombstones: tombstones.summary(),
        }
    }

    /// Notes the flush of a memtable, which wrote this many bytes.
    pub(crate) fn flushed(&self, bytes: u64) {
        self.flushes.fetch_add(1, Ordering::Relaxed);
        self.flushed_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Notes a compaction, which wrote this many bytes.
    pub(crate) fn compacted(&self, bytes: u64) {
        self.compactions.fetch_add(1, Ordering::Relaxed);
        self.compacted_bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_events_are_counted_and_some_measured() {
        let meter = Meter::default();
        let mut measured = 0;
        for _ in 0..160 {
            if meter.count() {
                measured += 1;
                meter.record(100, 0);
            }
        }
        let summary = meter.counted(Span::All).summary();
        assert_eq!((summary.count, measured), (160, 10));
        assert!((100..=120).contains(&summary.p50) && summary.p50 == summary.max, "{summary:?}");
        (0..20).for_each(|_| meter.record(0, 0));
        assert_eq!(meter.counted(Span::All).summary().p50, 0);
    }

    #[test]
    fn a_distribution_tells_how_many_events_stay_below_a_value_and_adds_up() {
        let meter = Meter::default();
        [0, 0, 3, 50, 1_000_000].into_iter().for_each(|value| meter.record(value, 0));
        let one = meter.counted(Span::All);
        assert_eq!(one.at_most(&[0, 10, 100, 1_000, 2_000_000]), [2, 3, 4, 4, 5]);
        assert_eq!((one.min(), one.measured, one.sum), (0, 5, 1_000_053));
        let mut both = Distribution::default();
        both.add(&one);
        both.add(&one);
        assert_eq!(both.at_most(&[0, 100]), [4, 8]);
        assert_eq!((both.measured, both.percentile(0.5)), (10, one.percentile(0.5)));
    }
}
