//! Samples of single calls, and the table of what they came to.

use anyhow::Result;
use std::time::{Duration, Instant};

/// What a workload must reach (design: performance).
#[derive(Clone, Copy, Debug)]
pub enum Target {
    /// Half of the calls take at most so many microseconds.
    MedianAtMost(f64),
    /// At least so many things a second.
    RateAtLeast(f64),
    /// None is set.
    None,
}

/// Turns of those that are to be compared, and turns before any is measured.
const TURNS: u32 = 8;
const WARM_TURNS: u32 = 2;

/// One row of the table after another.
pub struct Report {
    /// What the names of rows must hold.
    pub only: String,
    span: Duration,
    calls: Option<u64>,
}

impl Report {
    /// Prints the table's head. Rows whose name does not hold `only` are not printed.
    /// Reads are repeated for `span`, or for so many calls.
    pub fn begin(only: &str, span: Duration, calls: Option<u64>) -> Report {
        println!("| workload | p50 us | p99 us | rate/s | of | target | met |");
        println!("|---|---|---|---|---|---|---|");
        Report { only: only.to_owned(), span, calls }
    }

    /// Whether a workload of this name is wanted.
    pub fn wants(&self, name: &str) -> bool {
        name.contains(&self.only)
    }

    /// Prints a line of facts below the table's rows.
    pub fn note(&self, name: &str, fact: &str) {
        if self.wants(name) {
            println!("| {name} | | | | {fact} | | |");
        }
    }

    /// Calls `call` with 0, 1, 2, ... for a while unmeasured, then measured. `call` times what it wants.
    pub fn repeat(&self, call: impl FnMut(u64, &mut Samples) -> Result<()>) -> Result<Samples> {
        match self.calls {
            Some(calls) => Samples::count(calls, call),
            None => Samples::repeat(self.span, call),
        }
    }

    /// The same for several calls, which take turns: what the machine does meanwhile is shared by all, and they can be compared.
    /// `call` is told which it is to do.
    pub fn in_turns(
        &self,
        several: usize,
        mut call: impl FnMut(usize, u64, &mut Samples) -> Result<()>,
    ) -> Result<Vec<Turns>> {
        let mut all = vec![Turns::default(); several];
        if let Some(calls) = self.calls {
            for (which, turns) in all.iter_mut().enumerate() {
                turns.0.push(Samples::count(calls, |number, samples| call(which, number, samples))?);
            }
            return Ok(all);
        }
        let mut number = 0;
        for turn in 0..WARM_TURNS + TURNS {
            for (which, turns) in all.iter_mut().enumerate() {
                let (mut samples, begin) = (Samples::default(), Instant::now());
                while begin.elapsed() < self.span / TURNS {
                    call(which, number, &mut samples)?;
                    number += 1;
                }
                if turn >= WARM_TURNS {
                    turns.0.push(samples);
                }
            }
        }
        Ok(all)
    }

    /// Prints a workload's row. Each call is worth `things` of what `unit` says.
    pub fn row(&self, name: &str, mut samples: Samples, (things, unit): (f64, &str), target: Target) {
        if !self.wants(name) || samples.nanoseconds.is_empty() {
            return;
        }
        samples.nanoseconds.sort_unstable();
        let (p50, p99) = (samples.quantile_us(0.5), samples.quantile_us(0.99));
        let sum: u64 = samples.nanoseconds.iter().sum();
        let rate = samples.nanoseconds.len() as f64 * things / (sum as f64 / 1e9);
        let (target, met) = match target {
            Target::MedianAtMost(us) => (format!("p50 <= {us} us"), p50 <= us),
            Target::RateAtLeast(least) => (format!(">= {}", count(least)), rate >= least),
            Target::None => (String::new(), true),
        };
        let met = if target.is_empty() {
            ""
        } else if met {
            "yes"
        } else {
            "**no**"
        };
        println!("| {name} | {p50:.2} | {p99:.2} | {} | {unit} | {target} | {met} |", count(rate));
    }

    /// Prints how many times longer one thing takes than another, beside what it may be.
    pub fn ratio(&self, name: &str, ratio: f64, most: f64) {
        if self.wants(name) && ratio > 0.0 {
            let met = if ratio <= most { "yes" } else { "**no**" };
            println!("| {name} | {ratio:.2} x | | | | <= {most} x | {met} |");
        }
    }
}

fn count(number: f64) -> String {
    match number {
        n if n >= 10e6 => format!("{:.1}M", n / 1e6),
        n if n >= 1e6 => format!("{:.2}M", n / 1e6),
        n if n >= 1e3 => format!("{:.0}k", n / 1e3),
        n => format!("{n:.0}"),
    }
}

/// What was measured in each turn.
#[derive(Clone, Default)]
pub struct Turns(Vec<Samples>);

impl Turns {
    /// How many times longer these calls took than others that took turns with them: the median of what each turn says, for
    /// the machine may be half as fast in the next.
    pub fn ratio_to(&self, others: &Turns) -> f64 {
        let pairs = self.0.iter().cloned().zip(others.0.iter().cloned());
        let mut ratios: Vec<f64> = pairs.map(|(one, other)| one.median_us() / other.median_us()).collect();
        ratios.sort_unstable_by(f64::total_cmp);
        ratios.get(ratios.len() / 2).copied().unwrap_or(0.0)
    }

    /// All of them together.
    pub fn samples(&self) -> Samples {
        Samples { nanoseconds: self.0.iter().flat_map(|turn| turn.nanoseconds.iter().copied()).collect() }
    }
}

/// Times of single calls.
#[derive(Clone, Default)]
pub struct Samples {
    nanoseconds: Vec<u64>,
}

impl Samples {
    /// Times one call.
    #[inline]
    pub fn time<T>(&mut self, call: impl FnOnce() -> Result<T>) -> Result<T> {
        let begin = Instant::now();
        let result = call()?;
        self.nanoseconds.push(begin.elapsed().as_nanos() as u64);
        Ok(result)
    }

    fn count(calls: u64, mut call: impl FnMut(u64, &mut Samples) -> Result<()>) -> Result<Samples> {
        let mut samples = Samples::default();
        (0..calls).try_for_each(|number| call(number, &mut samples))?;
        Ok(samples)
    }

    pub fn repeat(span: Duration, mut call: impl FnMut(u64, &mut Samples) -> Result<()>) -> Result<Samples> {
        let mut samples = Samples::default();
        let (warm, begin) = (span / 4, Instant::now());
        let mut number = 0;
        while begin.elapsed() < warm {
            call(number, &mut samples)?;
            number += 1;
        }
        samples.nanoseconds.clear();
        let begin = Instant::now();
        while begin.elapsed() < span {
            call(number, &mut samples)?;
            number += 1;
        }
        Ok(samples)
    }

    /// Half of the calls took at most so long.
    pub fn median_us(mut self) -> f64 {
        self.nanoseconds.sort_unstable();
        self.quantile_us(0.5)
    }

    fn quantile_us(&self, quantile: f64) -> f64 {
        let last = self.nanoseconds.len().saturating_sub(1);
        let at = (last as f64 * quantile) as usize;
        self.nanoseconds.get(at).map_or(0.0, |ns| *ns as f64 / 1e3)
    }
}
