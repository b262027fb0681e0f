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
    /// Where each turn begins in it.
    turns: Vec<usize>,
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

    /// A turn: calls `call` as long as wanted.
    pub fn repeat(&mut self, long: Long, mut call: impl FnMut(&mut Samples) -> Result<()>) -> Result<()> {
        self.turns.push(self.nanoseconds.len());
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

    /// The sum, seconds.
    pub fn seconds(&self) -> f64 {
        self.nanoseconds.iter().sum::<u64>() as f64 / 1e9
    }

    /// What so large a part of the calls took at most, microseconds.
    pub fn quantile_us(&self, quantile: f64) -> f64 {
        quantile_us(&self.nanoseconds, quantile)
    }

    /// The median of the turn in which it was least, microseconds: the machine at its fastest.
    pub fn best_turn_us(&self) -> f64 {
        let ends = self.turns.iter().skip(1).copied().chain([self.nanoseconds.len()]);
        let turns = self.turns.iter().zip(ends).filter_map(|(begin, end)| self.nanoseconds.get(*begin..end));
        turns.map(|turn| quantile_us(turn, 0.5)).reduce(f64::min).unwrap_or_default()
    }
}

fn quantile_us(nanoseconds: &[u64], quantile: f64) -> f64 {
    let mut sorted = nanoseconds.to_vec();
    sorted.sort_unstable();
    let last = sorted.len().saturating_sub(1);
    sorted.get((last as f64 * quantile) as usize).map_or(0.0, |ns| *ns as f64 / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_turn_is_the_one_with_the_least_median() {
        let samples =
            Samples { nanoseconds: vec![5_000, 9_000, 7_000, 2_000, 3_000, 90_000], turns: vec![0, 3] };
        assert_eq!(samples.best_turn_us(), 3.0);
        assert_eq!(samples.quantile_us(0.5), 5.0);
    }
}
