//! The counts of one thread during a run.

use super::schedule::Took;
use anyhow::Result;
use hdrhistogram::Histogram;
use std::collections::BTreeMap;
use std::time::Duration;

/// The greatest latency that is distinguished, in nanoseconds; longer ones count as this one.
const LATENCY_MAX: u64 = 100_000_000_000;

/// Counts and latencies of answers.
#[derive(Debug)]
pub(super) struct Tally {
    /// Latencies of correct answers by kind of request, in nanoseconds with three significant digits, measured from the
    /// time at which a request was due.
    kinds: Vec<Histogram<u64>>,
    /// The latencies of all kinds, measured from the time at which a request was sent. Recorded only at a fixed rate,
    /// where the two times differ.
    pub service: Option<Histogram<u64>>,
    /// Number of rows that the correct answers wrote or read.
    pub rows: u64,
    /// Number of socket reads that returned data.
    pub reads: u64,
    /// All other answers by kind: their number, and the text of the first.
    pub faults: BTreeMap<String, Fault>,
}

/// Incorrect answers of one kind.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    pub count: u64,
    pub first: String,
}

fn histogram() -> Result<Histogram<u64>> {
    Ok(Histogram::new_with_bounds(1, LATENCY_MAX, 3)?)
}

impl Tally {
    /// Counts for `kinds` kinds of requests.
    pub fn new(kinds: usize, has_schedule: bool) -> Result<Tally> {
        let kinds = (0..kinds.max(1)).map(|_| histogram()).collect::<Result<_>>()?;
        let service = has_schedule.then(histogram).transpose()?;
        Ok(Tally { kinds, service, rows: 0, reads: 0, faults: BTreeMap::new() })
    }

    /// An empty tally for the same requests.
    pub fn another(&self) -> Result<Tally> {
        Tally::new(self.kinds.len(), self.service.is_some())
    }

    /// Counts a correct answer.
    #[inline]
    pub fn right(&mut self, kind: usize, took: Took, rows: u64) {
        let ns = |span: Duration| u64::try_from(span.as_nanos()).unwrap_or(LATENCY_MAX);
        if let Some(histogram) = self.kinds.get_mut(kind) {
            histogram.saturating_record(ns(took.latency));
        }
        if let Some(service) = &mut self.service {
            service.saturating_record(ns(took.service));
        }
        self.rows += rows;
    }

    /// Counts an incorrect answer.
    pub fn fault(&mut self, kind: &str, text: impl FnOnce() -> String) {
        match self.faults.get_mut(kind) {
            Some(fault) => fault.count += 1,
            None => {
                self.faults.insert(kind.to_owned(), Fault { count: 1, first: text() });
            }
        }
    }

    /// Resets everything except faults: the measurement begins.
    pub fn begin(&mut self) {
        self.kinds.iter_mut().chain(&mut self.service).for_each(Histogram::reset);
        self.rows = 0;
        self.reads = 0;
    }

    /// Adds the counts of another tally.
    pub fn add(&mut self, other: &Tally) -> Result<()> {
        for (ours, theirs) in self.kinds.iter_mut().zip(&other.kinds) {
            ours.add(theirs)?;
        }
        if let (Some(ours), Some(theirs)) = (&mut self.service, &other.service) {
            ours.add(theirs)?;
        }
        self.rows += other.rows;
        self.reads += other.reads;
        for (kind, fault) in &other.faults {
            let sum =
                self.faults.entry(kind.clone()).or_insert(Fault { count: 0, first: fault.first.clone() });
            sum.count += fault.count;
        }
        Ok(())
    }

    /// The latencies by kind of request.
    pub fn kinds(&self) -> &[Histogram<u64>] {
        &self.kinds
    }

    /// The latencies of all kinds together.
    pub fn latency(&self) -> Result<Histogram<u64>> {
        let mut all = histogram()?;
        self.kinds.iter().try_for_each(|kind| all.add(kind))?;
        Ok(all)
    }

    /// The number of incorrect answers.
    pub fn fault_count(&self) -> u64 {
        self.faults.values().map(|fault| fault.count).sum()
    }
}
