//! Times of single calls.

use anyhow::Result;
use std::time::{Duration, Instant};

/// How long to read.
#[derive(Clone, Copy, Debug)]
pub enum Long {
    /// Until so much time has passed.
    Span(Duration),
    /// So many times.
    Calls(u64),
}

/// Nanoseconds of calls of one kind in one store.
#[derive(Default)]
pub struct Samples {
    nanoseconds: Vec<u64>,
}

impl Samples {
    /// Times one read. The clock costs about 0.05 us of it. `run.py --instructions` counts what happens in here, so it
    /// stays a function of its own, and nothing but the reads that are measured comes through it.
    #[inline(never)]
    pub fn read(&mut self, call: impl FnOnce() -> Result<()>) -> Result<()> {
        self.time(call)
    }

    /// Times anything.
    #[inline]
    pub fn time<T>(&mut self, call: impl FnOnce() -> Result<T>) -> Result<T> {
        let begin = Instant::now();
        let result = call()?;
        self.nanoseconds.push(begin.elapsed().as_nanos() as u64);
        Ok(result)
    }

    /// Calls `call` as long as wanted.
    pub fn repeat(&mut self, long: Long, mut call: impl FnMut(&mut Samples) -> Result<()>) -> Result<()> {
        let begin = Instant::now();
        for number in 1_u64.. {
            call(self)?;
            let enough = match long {
                Long::Span(span) => begin.elapsed() >= span,
                Long::Calls(calls) => number >= calls,
            };
            if enough {
                break;
            }
        }
        Ok(())
    }

    /// So many calls.
    pub fn count(&self) -> usize {
        self.nanoseconds.len()
    }

    /// The sum, seconds.
    pub fn seconds(&self) -> f64 {
        self.nanoseconds.iter().sum::<u64>() as f64 / 1e9
    }

    /// What so large a part of the calls took at most, microseconds.
    pub fn quantile_us(&mut self, quantile: f64) -> f64 {
        self.nanoseconds.sort_unstable();
        let last = self.nanoseconds.len().saturating_sub(1);
        self.nanoseconds.get((last as f64 * quantile) as usize).map_or(0.0, |ns| *ns as f64 / 1e3)
    }
}
