//! The table: a line a read, a column a store, and ours against the peers' and the targets.

use crate::samples::Samples;

/// What ours must reach (design: performance).
#[derive(Clone, Copy, Default)]
pub struct Targets {
    /// Our time at most so many times RocksDB's.
    pub of_rocksdb: Option<f64>,
    /// Our time at most so many times LMDB's.
    pub of_lmdb: Option<f64>,
    /// Our median in microseconds, or for rates things a second.
    pub own: Option<f64>,
}

/// What one store reached. The machine's speed swings, so the best of many turns is what stores are compared by.
pub enum Figure {
    /// Of single calls, microseconds.
    Latency {
        /// Median of the best turn.
        best: f64,
        /// Median of all.
        p50: f64,
        /// 95th percentile of all.
        p95: f64,
    },
    /// Things a second.
    Rate {
        /// In the best call, or all together if there was but one turn.
        best: f64,
        /// In the call in the middle, if there were several.
        p50: Option<f64>,
    },
}

impl Figure {
    /// The latencies of single calls.
    pub fn latency(samples: &Samples) -> Figure {
        Figure::Latency {
            best: samples.best_turn_us(),
            p50: samples.quantile_us(0.5),
            p95: samples.quantile_us(0.95),
        }
    }

    /// The rates of calls of so many things each, a turn each.
    pub fn rates(samples: &Samples, things: u64) -> Figure {
        let rate = |quantile| things as f64 * 1e6 / samples.quantile_us(quantile);
        Figure::Rate { best: rate(0.0), p50: Some(rate(0.5)) }
    }

    /// The rate of things in so many seconds.
    pub fn rate(things: u64, seconds: f64) -> Figure {
        Figure::Rate { best: things as f64 / seconds, p50: None }
    }

    /// Time of a call or a thing, to be divided by another's.
    fn time(&self) -> f64 {
        match self {
            Figure::Latency { best, .. } => *best,
            Figure::Rate { best, .. } => 1.0 / best,
        }
    }

    /// A cell.
    pub fn text(&self) -> String {
        match self {
            Figure::Latency { best, p50, p95 } => {
                format!("{} ({}, {})", digits(*best), digits(*p50), digits(*p95))
            }
            Figure::Rate { best, p50: Some(p50) } => format!("{}/s ({})", millions(*best), millions(*p50)),
            Figure::Rate { best, p50: None } => format!("{}/s", millions(*best)),
        }
    }

    /// The cell of a target of ours: what it is and whether it is met.
    fn against(&self, target: f64) -> String {
        let (text, best, all) = match self {
            Figure::Latency { best, p50, .. } => {
                (format!("<= {} us", digits(target)), *best <= target, *p50 <= target)
            }
            Figure::Rate { best, p50 } => {
                (format!(">= {}/s", millions(target)), *best >= target, p50.unwrap_or(*best) >= target)
            }
        };
        let met = if best && !all { "in the best turn" } else { met(best) };
        format!("{text}: {met}")
    }
}

/// The table in Markdown, printed line by line.
pub struct Table {
    stores: Vec<String>,
}

impl Table {
    /// Prints the head.
    pub fn begin(stores: Vec<String>) -> Table {
        println!(
            "| best turn (p50, p95), us | {} | of RocksDB's time | of LMDB's time | own target |",
            stores.join(" | ")
        );
        println!("|---{}", "|---".repeat(stores.len() + 3) + "|");
        Table { stores }
    }

    /// Prints a line: a figure each store, in the order of the head.
    pub fn line(&self, what: &str, figures: &[Figure], targets: Targets) {
        let cells: Vec<String> = figures.iter().map(Figure::text).collect();
        let ours = figures.first();
        let of = |name: &str, most: Option<f64>| {
            let theirs = self.stores.iter().zip(figures).skip(1).find(|(store, _)| *store == name);
            let (Some(ours), Some((_, theirs))) = (ours, theirs) else { return String::new() };
            let ratio = ours.time() / theirs.time();
            let target = most.map(|most| format!(" (<= {most:.1}: {})", met(ratio <= most)));
            format!("{ratio:.2}{}", target.unwrap_or_default())
        };
        let own = ours.zip(targets.own).map(|(ours, target)| ours.against(target)).unwrap_or_default();
        println!(
            "| {what} | {} | {} | {} | {own} |",
            cells.join(" | "),
            of("RocksDB", targets.of_rocksdb),
            of("LMDB", targets.of_lmdb),
        );
    }
}

fn met(is_met: bool) -> &'static str {
    if is_met { "yes" } else { "**no**" }
}

fn digits(number: f64) -> String {
    match number {
        n if n >= 100.0 => format!("{n:.0}"),
        n if n >= 10.0 => format!("{n:.1}"),
        n => format!("{n:.2}"),
    }
}

fn millions(rate: f64) -> String {
    if rate >= 1e6 { format!("{}M", digits(rate / 1e6)) } else { format!("{}k", digits(rate / 1e3)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_shown_with_three_digits() {
        assert_eq!(Figure::Latency { best: 9.8, p50: 9.876, p95: 123.4 }.text(), "9.80 (9.88, 123)");
        assert_eq!(Figure::Rate { best: 3_210_000.0, p50: Some(2e6) }.text(), "3.21M/s (2.00M)");
        assert_eq!(Figure::rate(410_000, 2.0).text(), "205k/s");
    }

    #[test]
    fn a_target_met_only_by_the_best_turn_is_told_apart() {
        let figure = Figure::Latency { best: 7.0, p50: 9.0, p95: 9.0 };
        assert_eq!(figure.against(9.0), "<= 9.00 us: yes");
        assert_eq!(figure.against(8.0), "<= 8.00 us: in the best turn");
        assert_eq!(figure.against(6.0), "<= 6.00 us: **no**");
        assert_eq!(Figure::rate(410_000, 1.0).against(400e3), ">= 400k/s: yes");
    }
}
