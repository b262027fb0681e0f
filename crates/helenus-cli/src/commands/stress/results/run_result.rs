//! The results of a run, in the JSON that `--json` writes. Fields are only added; if a field changes its meaning,
//! `format` changes.
//!
//! Latencies are in microseconds, of correct answers only. At a fixed rate, `latency_us` counts from the time at which
//! a request was due, and `service_us` from the time at which it was sent; otherwise the two times are the same.

use super::super::interface::Interface;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The name and number of the file format.
pub(in super::super) const FORMAT: &str = "helenus-stress-1";
/// Number of histogram buckets for each factor of ten.
const BUCKETS: f64 = 20.0;
/// A client that is busy for this share of its time is considered the limit of the run.
const BUSY: f64 = 0.9;

/// The results of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(in super::super) struct RunResult {
    pub format: String,
    /// The version of the program that measured.
    pub program: String,
    /// The `--label`.
    pub label: Option<String>,
    /// Begin of the run, in seconds since the epoch.
    pub begun_s: u64,
    /// The machine of the client, in words.
    pub machine: String,
    pub workload: String,
    pub host: String,
    /// `RPC`, or the version of the native protocol.
    pub protocol: String,
    pub interface: Interface,
    pub connections: usize,
    pub in_flight: u32,
    pub threads: usize,
    pub rate: Option<Paced>,
    /// Number of correct answers.
    pub operations: u64,
    pub rows: u64,
    /// Time from the beginning of the measurement to the last answer.
    pub seconds: f64,
    pub ops_per_s: f64,
    pub rows_per_s: f64,
    pub latency_us: Latency,
    pub service_us: Option<Latency>,
    pub answers_per_read: f64,
    /// All other answers, by kind.
    pub errors: BTreeMap<String, Errors>,
    pub client_cpu_us_per_op: f64,
    pub client: ClientUse,
    pub server: Option<ServerFigures>,
    /// The results of each statement, for a workload with several statements.
    pub statements: Vec<StatementFigures>,
    /// Each second of the run.
    pub series: Vec<Second>,
    /// Upper end of each bucket in microseconds, and the number of correct answers in it.
    pub histogram: Vec<(f64, u64)>,
    /// Quantiles and their latencies in microseconds, as far as there were enough answers.
    pub spectrum: Vec<(f64, f64)>,
}

/// The parameters and outcome of a fixed rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(in super::super) struct Paced {
    /// The requested rate, in requests a second.
    pub asked_per_s: f64,
    /// Number of requests that were due and not sent at the end, because the server did not keep up.
    pub late: u64,
}

/// Quantiles of latencies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(in super::super) struct Latency {
    pub mean: f64,
    pub p50: f64,
    pub p95: f64,
    pub p99: f64,
    #[serde(rename = "p99.9")]
    pub p999: f64,
    pub max: f64,
}

/// Incorrect answers of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in super::super) struct Errors {
    pub count: u64,
    /// The text of the first answer.
    pub first: String,
}

/// The load of the client: shares of the time of its busiest thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(in super::super) struct ClientUse {
    /// Share in which it ran.
    pub cpu_share: f64,
    /// Share in which it was runnable and waited for a processor.
    pub waited_share: f64,
}

/// The server's use of resources, if `--server-pid` names its process on this machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(in super::super) struct ServerFigures {
    pub cpu_us_per_op: f64,
    pub cpu_s: f64,
    pub resident_mib: f64,
    pub resident_peak_mib: f64,
}

/// The results of one of several statements.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(in super::super) struct StatementFigures {
    pub name: String,
    pub operations: u64,
    pub ops_per_s: f64,
    pub latency_us: Latency,
}

/// The results of one second.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(in super::super) struct Second {
    /// The end of the second, in seconds after the measurement began.
    pub at_s: f64,
    pub operations: u64,
    pub ops_per_s: f64,
    pub latency_us: Latency,
    pub errors: u64,
}

impl RunResult {
    /// The number of incorrect answers.
    pub fn error_count(&self) -> u64 {
        self.errors.values().map(|errors| errors.count).sum()
    }

    /// The name of the run in tables and pages.
    pub fn title(&self) -> String {
        self.label.clone().unwrap_or_else(|| format!("{}, {}", self.workload, self.interface.title()))
    }
}

impl Latency {
    /// From a histogram of nanoseconds.
    pub fn of(histogram: &Histogram<u64>) -> Latency {
        let us = |quantile| histogram.value_at_quantile(quantile) as f64 / 1e3;
        Latency {
            mean: histogram.mean() / 1e3,
            p50: us(0.5),
            p95: us(0.95),
            p99: us(0.99),
            p999: us(0.999),
            max: histogram.max() as f64 / 1e3,
        }
    }

    /// The values with their names.
    pub fn named(&self) -> [(&'static str, f64); 6] {
        [
            ("mean", self.mean),
            ("p50", self.p50),
            ("p95", self.p95),
            ("p99", self.p99),
            ("p99.9", self.p999),
            ("max", self.max),
        ]
    }
}

impl ClientUse {
    /// Whether the client rather than the server was the limit.
    pub fn is_limit(&self) -> bool {
        self.cpu_share + self.waited_share >= BUSY
    }
}

/// The buckets of a histogram of nanoseconds: upper end in microseconds, and count. Includes empty buckets between
/// others.
pub(in super::super) fn buckets(histogram: &Histogram<u64>) -> Vec<(f64, u64)> {
    let mut counts: BTreeMap<i32, u64> = BTreeMap::new();
    for value in histogram.iter_recorded() {
        let us = value.value_iterated_to() as f64 / 1e3;
        *counts.entry((us.log10() * BUCKETS).ceil() as i32).or_default() += value.count_at_value();
    }
    let (Some((first, _)), Some((last, _))) = (counts.first_key_value(), counts.last_key_value()) else {
        return Vec::new();
    };
    let upper = |bucket: i32| 10_f64.powf(f64::from(bucket) / BUCKETS);
    (*first..=*last).map(|bucket| (upper(bucket), counts.get(&bucket).copied().unwrap_or(0))).collect()
}

/// Quantiles that approach 1, as long as the histogram has a value above them.
pub(in super::super) fn spectrum(histogram: &Histogram<u64>) -> Vec<(f64, f64)> {
    let count = histogram.len() as f64;
    (0..28)
        .map(|step| 10_f64.powf(f64::from(step) / 4.0))
        .take_while(|ones| *ones <= count)
        .map(|ones| 1.0 - 1.0 / ones)
        .map(|quantile| (quantile, histogram.value_at_quantile(quantile) as f64 / 1e3))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(values_us: &[u64]) -> Histogram<u64> {
        let mut histogram = Histogram::new_with_bounds(1, 100_000_000_000, 3).unwrap();
        values_us.iter().for_each(|us| histogram.record(us * 1_000).unwrap());
        histogram
    }

    #[test]
    fn buckets_count_every_answer_in_its_place() {
        let buckets = buckets(&histogram(&[100, 101, 5_000, 5_001, 5_002]));
        assert_eq!(buckets.iter().map(|(_, count)| count).sum::<u64>(), 5);
        assert_eq!(
            buckets.iter().filter(|(upper, _)| *upper > 4_000.0).map(|(_, count)| count).sum::<u64>(),
            3
        );
        assert!(buckets.iter().map(|(upper, _)| upper).is_sorted(), "{buckets:?}");
        assert!(super::buckets(&histogram(&[])).is_empty());
    }

    #[test]
    fn the_spectrum_ends_where_answers_end() {
        let spectrum = spectrum(&histogram(&(1..=1_000).collect::<Vec<_>>()));
        let (quantile, us) = *spectrum.last().unwrap();
        assert!((quantile - 0.999).abs() < 1e-9 && (998.0..1_002.0).contains(&us), "{spectrum:?}");
        assert!(spectrum.iter().map(|(_, us)| us).is_sorted());
    }

    #[test]
    fn figures_come_back_from_json_and_older_files_lack_fields() {
        let latency_us = Latency { p999: 7.5, ..Latency::default() };
        let figures = RunResult { format: FORMAT.into(), latency_us, ops_per_s: 5.0, ..RunResult::default() };
        let json = serde_json::to_value(&figures).unwrap();
        assert_eq!(json["latency_us"]["p99.9"], 7.5);
        let back: RunResult = serde_json::from_value(json).unwrap();
        assert_eq!(back.latency_us, figures.latency_us);
        let old: RunResult =
            serde_json::from_str(r#"{"ops_per_s": 5.0, "latency_us": {"p50": 1.0}}"#).unwrap();
        assert_eq!((old.ops_per_s, old.latency_us.p50, old.series.len()), (5.0, 1.0, 0));
    }

    #[test]
    fn a_client_that_never_waits_is_the_limit() {
        let is_limit = |cpu_share, waited_share| ClientUse { cpu_share, waited_share }.is_limit();
        assert!(is_limit(0.97, 0.0) && is_limit(0.5, 0.45) && !is_limit(0.6, 0.1));
    }
}
