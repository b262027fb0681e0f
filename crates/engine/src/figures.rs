//! What the reads and writes of a table cost: all are counted, one in `SAMPLED` is timed.
//!
//! The data path pays one relaxed addition on a cache line that threads share rarely; only a sampled request reads the
//! clock and takes a lock. Shown by `system_views`; forgotten at a restart, as Cassandra's are.

use crate::top::Top;
use helenus_sstable::statistics::EstimatedHistogram;
use parking_lot::Mutex;
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

/// One request in so many is measured.
pub(crate) const SAMPLED: u64 = 16;
/// Counters of a meter; a thread keeps to one.
const SHARDS: usize = 8;
/// Buckets of a histogram: up to 18 s in nanoseconds.
const BUCKETS: usize = 130;

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
    /// The partitions that are read most.
    pub(crate) top_reads: Top,
    /// Those that are written most.
    pub(crate) top_writes: Top,
}

/// Counts events and keeps the values of some.
#[derive(Default)]
pub(crate) struct Meter {
    shards: [Shard; SHARDS],
    sampled: Mutex<Option<Box<Samples>>>,
}

/// Values of measured events. The histogram's first bucket is of 1, so zeros are counted apart.
struct Samples {
    zeros: u64,
    others: EstimatedHistogram,
}

impl Samples {
    fn percentile(&self, part: f64) -> u64 {
        let others = self.others.count();
        let wanted = (self.zeros + others) as f64 * part - self.zeros as f64;
        if wanted <= 0.0 || others == 0 { 0 } else { self.others.percentile(wanted / others as f64) }
    }
}

/// A counter on a cache line of its own.
#[derive(Default)]
#[repr(align(64))]
struct Shard(AtomicU64);

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

thread_local! {
    /// Its address tells threads apart.
    static PLACE: Cell<u64> = const { Cell::new(0) };
}

impl Meter {
    /// Counts an event; whether it is one to measure. The first is.
    pub(crate) fn count(&self) -> bool {
        let address = PLACE.with(|place| std::ptr::from_ref(place).addr());
        // Stacks and thread-local blocks lie pages apart: the bits above a page tell threads from each other.
        let shard = (address >> 12 ^ address >> 16) % SHARDS;
        self.shards.get(shard).is_some_and(|shard| shard.0.fetch_add(1, Ordering::Relaxed) % SAMPLED == 0)
    }

    /// Keeps the value of a measured event.
    pub(crate) fn record(&self, value: u64) {
        let mut sampled = self.sampled.lock();
        let samples = sampled
            .get_or_insert_with(|| Box::new(Samples { zeros: 0, others: EstimatedHistogram::new(BUCKETS) }));
        if value == 0 {
            samples.zeros += 1;
        } else {
            samples.others.add(value);
        }
    }

    fn summary(&self) -> Summary {
        let count = self.shards.iter().map(|shard| shard.0.load(Ordering::Relaxed)).sum();
        match &*self.sampled.lock() {
            None => Summary { count, ..Summary::default() },
            Some(sampled) => Summary {
                count,
                p50: sampled.percentile(0.5),
                p99: sampled.percentile(0.99),
                max: sampled.others.max(),
            },
        }
    }
}

impl Figures {
    /// What they say now.
    pub(crate) fn summaries(&self) -> FigureSummaries {
        let reads = self.reads.summary();
        let scans = self.scans.summary();
        let count = reads.count + scans.count;
        FigureSummaries {
            reads,
            scans,
            writes: self.writes.summary(),
            // Sampled with the reads, which are counted already.
            rows: Summary { count, ..self.rows.summary() },
            tombstones: Summary { count, ..self.tombstones.summary() },
        }
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
                meter.record(100);
            }
        }
        let summary = meter.summary();
        assert_eq!((summary.count, measured), (160, 10));
        assert!((100..=120).contains(&summary.p50) && summary.p50 == summary.max, "{summary:?}");
        (0..20).for_each(|_| meter.record(0));
        assert_eq!(meter.summary().p50, 0);
    }
}
