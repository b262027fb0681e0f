//! Each figure of the machine, its bound and its trend.

use super::super::layout::file_size;
use super::trend::Trend;
use helenus_server::admin::Growth;
use helenus_server::history::Sample;
use serde::Serialize;

/// The part of the processors that may be busy on an hour's average: beyond it, the peaks within the hour wait.
const BUSY_MAX: f64 = 0.7;
/// Samples of a day.
const DAY: usize = 24;

/// A figure beside its bound.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Limit {
    /// What it is: disk, CPU, memory, reads or writes.
    pub what: &'static str,
    /// The figure now.
    pub now: String,
    /// Its bound; `None` if it has none of its own.
    pub bound: Option<String>,
    /// Its trend, for a person.
    pub trend: String,
    /// The change of the figure in a day, in bytes, processors or microseconds; `None` while it is not known.
    pub per_day: Option<f64>,
    /// Days until the bound is reached; 0 if it is now, `None` if that is not in sight or not known.
    pub days_left: Option<f64>,
    /// How the bound was computed.
    pub because: String,
}

/// All figures.
pub fn limits(growth: &Growth) -> Vec<Limit> {
    let Some(present) = growth.samples.last() else { return Vec::new() };
    let mut found = Vec::new();
    if growth.is_in_memory {
        // Without a directory there is no disk to fill.
    } else if present.disk_bytes > 0 {
        found.push(disk(growth, present));
    }
    found.push(cpu(&growth.samples, present));
    found.push(memory(&growth.samples, present));
    found.push(latency("reads p99", &growth.samples, |sample| sample.read_p99_us));
    found.push(latency("writes p99", &growth.samples, |sample| sample.write_p99_us));
    found
}

/// The points of a figure (seconds, figure), where it is known.
pub fn points(samples: &[Sample], of: impl Fn(&Sample) -> Option<f64>) -> Vec<(i64, f64)> {
    samples.iter().filter_map(|sample| Some((sample.time_s, of(sample)?))).collect()
}

/// The greatest value of the last day.
pub fn peak(samples: &[Sample], of: impl Fn(&Sample) -> Option<f64>) -> Option<f64> {
    samples.iter().rev().take(DAY).filter_map(of).max_by(f64::total_cmp)
}

fn trend_text(trend: Option<Trend>, amount: impl Fn(f64) -> String) -> String {
    match trend {
        None => "not known: less than a day of history".to_owned(),
        Some(trend) => {
            if amount(trend.per_day.abs()) == amount(0.0) {
                return format!("steady over {:.0} days", trend.days);
            }
            let sign = if trend.per_day < 0.0 { "-" } else { "+" };
            let loose = if trend.fit < 0.5 { ", not steady" } else { "" };
            format!("{sign}{} a day over {:.0} days{loose}", amount(trend.per_day.abs()), trend.days)
        }
    }
}

fn disk(growth: &Growth, present: &Sample) -> Limit {
    let trend = Trend::of(&points(&growth.samples, |sample| Some(sample.data_bytes as f64)));
    let all = present.data_bytes + present.disk_free_bytes;
    let (name, largest) = growth.largest_table.clone().unwrap_or_else(|| ("the largest table".to_owned(), 0));
    // A compaction of the largest table writes it anew beside the old files. Its part of the data is taken to stay the same.
    let part = if present.data_bytes == 0 { 0.0 } else { largest as f64 / present.data_bytes as f64 };
    let bound = all as f64 / (1.0 + part.min(1.0));
    let size = |bytes: f64| file_size(bytes.max(0.0) as u64);
    Limit {
        what: "disk",
        now: size(present.data_bytes as f64),
        bound: Some(size(bound)),
        trend: trend_text(trend, size),
        per_day: trend.map(|trend| trend.per_day),
        days_left: days_left(trend, present.data_bytes as f64, bound),
        because: format!(
            "{} of data + {} free = {}; a compaction of {name} ({:.0} % of the data) needs its size again: / {:.2}",
            size(present.data_bytes as f64),
            size(present.disk_free_bytes as f64),
            size(all as f64),
            part * 100.0,
            1.0 + part.min(1.0)
        ),
    }
}

fn days_left(trend: Option<Trend>, present: f64, bound: f64) -> Option<f64> {
    match trend {
        None => (present >= bound).then_some(0.0),
        Some(trend) => trend.days_until(present, bound),
    }
}

fn cpu(samples: &[Sample], present: &Sample) -> Limit {
    let busy = |sample: &Sample| sample.cores_busy;
    let trend = Trend::of(&points(samples, busy));
    let now = peak(samples, busy);
    let bound = f64::from(present.cores) * BUSY_MAX;
    let cores = |cores: f64| format!("{cores:.2} cores");
    Limit {
        what: "CPU",
        now: now.map_or_else(|| "not known yet".to_owned(), cores),
        bound: Some(cores(bound)),
        trend: trend_text(trend, cores),
        per_day: trend.map(|trend| trend.per_day),
        days_left: now.and_then(|now| days_left(trend, now, bound)),
        because: format!("{} cores * {BUSY_MAX}; now is the busiest hour of the last day", present.cores),
    }
}

fn memory(samples: &[Sample], present: &Sample) -> Limit {
    let refused = peak(samples, |sample| sample.refused_per_s).unwrap_or_default();
    Limit {
        what: "memory",
        now: file_size(present.resident_bytes),
        bound: None,
        trend: match refused {
            0.0 => "no request was refused for lack of memory in the last day".to_owned(),
            refused => format!("{refused:.2} requests a second were refused for lack of it"),
        },
        per_day: None,
        days_left: (refused > 0.0).then_some(0.0),
        because:
            "the server keeps to memory_limit whatever the data; what does not fit is read from the disk"
                .to_owned(),
    }
}

fn latency(what: &'static str, samples: &[Sample], of: fn(&Sample) -> u64) -> Limit {
    let used = |sample: &Sample| Some(of(sample)).filter(|us| *us > 0).map(|us| us as f64);
    let trend = Trend::of(&points(samples, used));
    let micros = |us: f64| format!("{us:.0} us");
    Limit {
        what,
        now: peak(samples, used).map_or_else(|| "no requests".to_owned(), micros),
        bound: None,
        trend: if peak(samples, used).is_none() { "-".to_owned() } else { trend_text(trend, micros) },
        per_day: trend.map(|trend| trend.per_day),
        days_left: None,
        because: "the slowest hour of the last day; its bound is your application's".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn growth(bytes: impl Fn(u64) -> u64, largest: u64) -> Growth {
        let sample = |hour: u64| Sample {
            time_s: i64::try_from(hour).unwrap() * 3600,
            data_bytes: bytes(hour),
            disk_free_bytes: 1000 * GIB - bytes(hour),
            disk_bytes: 1000 * GIB,
            cores: 4,
            cores_busy: Some(0.5),
            ..Sample::default()
        };
        Growth {
            samples: (0..240).map(sample).collect(),
            largest_table: Some(("ks.t".to_owned(), largest)),
            is_in_memory: false,
        }
    }

    #[test]
    fn a_disk_is_full_where_the_largest_table_cannot_be_compacted_any_more() {
        // 10 GiB a day; all of it in one table: half the disk is the bound.
        let bytes = |hour| 100 * GIB + hour * 10 * GIB / 24;
        let found = limits(&growth(bytes, bytes(239)));
        let disk = &found[0];
        assert_eq!((disk.what, disk.bound.as_deref()), ("disk", Some("500 GiB")), "{disk:?}");
        let days = disk.days_left.unwrap();
        assert!((29.0..32.0).contains(&days), "{days}");
        // Half of it in one table: two thirds.
        let found = limits(&growth(bytes, bytes(239) / 2));
        let days = found[0].days_left.unwrap();
        assert!((45.0..48.0).contains(&days), "{days}");
    }

    #[test]
    fn what_does_not_grow_is_never_too_much() {
        let found = limits(&growth(|_| 100 * GIB, 50 * GIB));
        assert!(found.iter().all(|limit| limit.days_left.is_none()), "{found:?}");
    }
}
