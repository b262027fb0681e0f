//! What one thread counts while it runs.

use anyhow::Result;
use hdrhistogram::Histogram;
use std::collections::BTreeMap;

/// Longest latency told apart, nanoseconds: longer ones count as this one.
const LATENCY_MAX: u64 = 100_000_000_000;

/// Counts and latencies of answers.
#[derive(Debug)]
pub(super) struct Tally {
    /// Latencies of right answers, nanoseconds, three digits.
    pub latency: Histogram<u64>,
    /// Rows written or read by them.
    pub rows: u64,
    /// Reads of a socket that brought something.
    pub reads: u64,
    /// All other answers, by kind: how many, and the text of the first.
    pub faults: BTreeMap<String, Fault>,
}

/// Answers that were not right.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    pub count: u64,
    pub first: String,
}

impl Tally {
    pub fn new() -> Result<Tally> {
        let latency = Histogram::new_with_bounds(1, LATENCY_MAX, 3)?;
        Ok(Tally { latency, rows: 0, reads: 0, faults: BTreeMap::new() })
    }

    /// A right answer.
    #[inline]
    pub fn right(&mut self, latency_ns: u128, rows: u64) {
        self.latency.saturating_record(u64::try_from(latency_ns).unwrap_or(LATENCY_MAX));
        self.rows += rows;
    }

    /// Any other.
    pub fn fault(&mut self, kind: &str, text: impl FnOnce() -> String) {
        match self.faults.get_mut(kind) {
            Some(fault) => fault.count += 1,
            None => {
                self.faults.insert(kind.to_owned(), Fault { count: 1, first: text() });
            }
        }
    }

    /// Forgets everything but faults: the measurement begins.
    pub fn begin(&mut self) {
        self.latency.reset();
        self.rows = 0;
        self.reads = 0;
    }

    /// Adds what another thread counted.
    pub fn add(&mut self, other: &Tally) -> Result<()> {
        self.latency.add(&other.latency)?;
        self.rows += other.rows;
        self.reads += other.reads;
        for (kind, fault) in &other.faults {
            let sum =
                self.faults.entry(kind.clone()).or_insert(Fault { count: 0, first: fault.first.clone() });
            sum.count += fault.count;
        }
        Ok(())
    }

    /// How many answers were not right.
    pub fn fault_count(&self) -> u64 {
        self.faults.values().map(|fault| fault.count).sum()
    }
}
