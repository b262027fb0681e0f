//! Metrics of the reads and writes of a table: all operations are counted, and one in `SAMPLED` is measured.
//!
//! An operation pays one relaxed addition on a cache line that few threads share. Only a sampled operation reads the
//! clock and takes a lock. `system_views`, `/metrics` and the admin tools all show these metrics. They are lost at a
//! restart, as in Cassandra.

use crate::decaying_histogram::Samples;
use crate::distribution::Distribution;
use crate::sharded::{self, Sharded};
use crate::top_partitions::TopPartitions;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// One of this number of requests is measured.
pub(crate) const SAMPLED: u64 = 16;

/// The metrics of one table.
#[derive(Default)]
pub struct TableMetrics {
    /// Reads of partitions by key, latency in nanoseconds.
    pub(crate) reads: Meter,
    /// Range reads, latency in nanoseconds.
    pub(crate) scans: Meter,
    /// Writes to a partition, latency in nanoseconds.
    pub(crate) writes: Meter,
    /// Rows returned by a read.
    pub(crate) rows: Meter,
    /// Dead rows and markers that a read passed.
    pub(crate) tombstones: Meter,
    /// SSTables that a read by key opened for each partition.
    pub(crate) sstables: Meter,
    /// The partitions that are read most often.
    pub(crate) top_reads: TopPartitions,
    /// The partitions that are written most often.
    pub(crate) top_writes: TopPartitions,
    /// Memtables that were flushed.
    pub(crate) flushes: AtomicU64,
    /// Bytes of the files that flushes wrote.
    pub(crate) flushed_bytes: AtomicU64,
    /// Finished compactions.
    pub(crate) compactions: AtomicU64,
    /// Bytes of the files that compactions wrote.
    pub(crate) compacted_bytes: AtomicU64,
}

/// A counter that many threads add to, on cache lines that few of them share.
#[derive(Default)]
pub(crate) struct Counter(Sharded<AtomicU64>);

/// Counts events and samples their values.
#[derive(Default)]
pub(crate) struct Meter {
    events: Counter,
    sampled: Mutex<Option<Box<Samples>>>,
}

/// The events that a summary covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Period {
    /// All events since the start.
    All,
    /// Recent events: the weight of an event halves every minute, as in Cassandra's tools.
    Recent {
        /// The monotonic clock.
        now_ns: u64,
    },
}

/// The summary of a meter. Percentiles and maximum are of the sampled events, rounded up by at most a fifth.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Summary {
    /// All events.
    pub count: u64,
    /// The median.
    pub p50: u64,
    /// The 99th percentile.
    pub p99: u64,
    /// The greatest value.
    pub max: u64,
}

/// The metrics of a table at one moment; times in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MetricSummaries {
    /// Reads of partitions by key.
    pub reads: Summary,
    /// Range reads.
    pub scans: Summary,
    /// Writes to a partition.
    pub writes: Summary,
    /// Rows returned by a read.
    pub rows: Summary,
    /// Dead rows and markers that a read passed.
    pub tombstones: Summary,
}

/// The distributions of a table at one moment; times in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Distributions {
    /// Reads of partitions by key.
    pub reads: Distribution,
    /// Range reads.
    pub scans: Distribution,
    /// Writes to a partition.
    pub writes: Distribution,
    /// Rows returned by a read.
    pub rows: Distribution,
    /// Dead rows and markers that a read passed.
    pub tombstones: Distribution,
    /// SSTables that a read by key opened for each partition.
    pub sstables: Distribution,
}

impl Counter {
    /// Adds `more` and returns the previous value of this thread's cell.
    #[inline]
    pub(crate) fn add(&self, more: u64) -> u64 {
        sharded::add(self.0.of_this_thread(), more)
    }

    /// The sum over all threads.
    pub(crate) fn value(&self) -> u64 {
        self.0.iter().map(|share| share.load(Ordering::Relaxed)).sum()
    }
}

impl Meter {
    /// Counts an event. Returns whether it is to be measured; the first one is.
    #[inline]
    pub(crate) fn count(&self) -> bool {
        self.events.add(1).is_multiple_of(SAMPLED)
    }

    /// Records the value of a measured event that ended at `now_ns` (monotonic clock).
    pub(crate) fn record(&self, value: u64, now_ns: u64) {
        let mut sampled = self.sampled.lock();
        sampled.get_or_insert_with(|| Box::new(Samples::new(now_ns))).add(value, now_ns);
    }

    /// The distribution of this span, for a total of `count` events.
    fn distribution(&self, count: u64, span: Period) -> Distribution {
        match (&*self.sampled.lock(), span) {
            (None, _) => Distribution { count, ..Distribution::default() },
            (Some(samples), Period::All) => samples.all(count),
            (Some(samples), Period::Recent { now_ns }) => samples.recent(count, now_ns),
        }
    }

    /// The distribution of a meter that counts its own events.
    pub(crate) fn counted_distribution(&self, span: Period) -> Distribution {
        self.distribution(self.events.value(), span)
    }
}

impl Summary {
    fn of(distribution: &Distribution) -> Summary {
        let (p50, p99) = (distribution.percentile(0.5), distribution.percentile(0.99));
        Summary { count: distribution.count, p50, p99, max: distribution.max() }
    }
}

impl std::fmt::Debug for TableMetrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Figures").field(&self.summaries(Period::All)).finish()
    }
}

impl TableMetrics {
    /// The distributions of reads and writes. Counts include all events since the start, whatever the span.
    pub fn distributions(&self, span: Period) -> Distributions {
        let (reads, scans) = (self.reads.counted_distribution(span), self.scans.counted_distribution(span));
        // Rows and tombstones are sampled with the reads, which are counted already.
        let all = reads.count + scans.count;
        Distributions {
            rows: self.rows.distribution(all, span),
            tombstones: self.tombstones.distribution(all, span),
            sstables: self.sstables.distribution(reads.count, span),
            writes: self.writes.counted_distribution(span),
            reads,
            scans,
        }
    }

    /// The summaries of this span.
    pub(crate) fn summaries(&self, span: Period) -> MetricSummaries {
        let Distributions { reads, scans, writes, rows, tombstones, .. } = self.distributions(span);
        MetricSummaries {
            reads: Summary::of(&reads),
            scans: Summary::of(&scans),
            writes: Summary::of(&writes),
            rows: Summary::of(&rows),
            tombstones: Summary::of(&tombstones),
        }
    }

    /// Counts the flush of a memtable, which wrote this many bytes.
    pub(crate) fn flushed(&self, bytes: u64) {
        self.flushes.fetch_add(1, Ordering::Relaxed);
        self.flushed_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts a compaction, which wrote this many bytes.
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
        let summary = Summary::of(&meter.counted_distribution(Period::All));
        assert_eq!((summary.count, measured), (160, 10));
        assert!((100..=120).contains(&summary.p50) && summary.p50 == summary.max, "{summary:?}");
        (0..20).for_each(|_| meter.record(0, 0));
        assert_eq!(Summary::of(&meter.counted_distribution(Period::All)).p50, 0);
    }

    #[test]
    fn a_distribution_tells_how_many_events_stay_below_a_value_and_adds_up() {
        let meter = Meter::default();
        [0, 0, 3, 50, 1_000_000].into_iter().for_each(|value| meter.record(value, 0));
        let one = meter.counted_distribution(Period::All);
        assert_eq!(one.at_most(&[0, 10, 100, 1_000, 2_000_000]), [2, 3, 4, 4, 5]);
        assert_eq!((one.min(), one.measured, one.sum), (0, 5, 1_000_053));
        let mut both = Distribution::default();
        both.add(&one);
        both.add(&one);
        assert_eq!(both.at_most(&[0, 100]), [4, 8]);
        assert_eq!((both.measured, both.percentile(0.5)), (10, one.percentile(0.5)));
    }
}
