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

/// What one store reached.
pub enum Figure {
    /// Median and 95th percentile of single calls, microseconds.
    Latency(f64, f64),
    /// Things a second.
    Rate(f64),
}

impl Figure {
    /// The latencies of single calls.
    pub fn latency(samples: &mut Samples) -> Figure {
        Figure::Latency(samples.quantile_us(0.5), samples.quantile_us(0.95))
    }

    /// The rate of calls of so many things each.
    pub fn rate(samples: &Samples, things: u64) -> Figure {
        Figure::Rate(samples.count() as f64 * things as f64 / samples.seconds())
    }

    /// Time of a call or a thing, to be divided by another's.
    fn time(&self) -> f64 {
        match self {
            Figure::Latency(p50, _) => *p50,
            Figure::Rate(rate) => 1.0 / rate,
        }
    }

    /// A cell.
    pub fn text(&self) -> String {
        match self {
            Figure::Latency(p50, p95) => format!("{} ({})", digits(*p50), digits(*p95)),
            Figure::Rate(rate) => format!("{}/s", millions(*rate)),
        }
    }

    /// The cell of a target of ours: what it is and whether it is met.
    fn against(&self, target: f64) -> String {
        match self {
            Figure::Latency(p50, _) => format!("<= {} us: {}", digits(target), met(*p50 <= target)),
            Figure::Rate(rate) => format!(">= {}/s: {}", millions(target), met(*rate >= target)),
        }
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
            "| p50 (p95), us | {} | of RocksDB's time | of LMDB's time | own target |",
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
        assert_eq!(Figure::Latency(9.876, 123.4).text(), "9.88 (123)");
        assert_eq!(Figure::Rate(3_210_000.0).text(), "3.21M/s");
        assert_eq!(Figure::Rate(410_000.0).against(400e3), ">= 400k/s: yes");
        assert_eq!(Figure::Latency(9.0, 9.0).against(8.0), "<= 8.00 us: **no**");
    }
}
