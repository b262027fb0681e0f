//! The report: figures beside their bounds, the verdict in words, and the cluster that would do.

use super::super::layout::Columns;
use super::cluster::{Cluster, Load, NodeSize};
use super::limits::{Limit, limits, peak, points};
use super::trend::Trend;
use helenus_cql::counted;
use helenus_server::admin::Growth;
use helenus_server::history::Sample;
use serde::Serialize;
use std::io::{self, Write};

/// The report of `outgrow`.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Hours of history.
    pub history_hours: f64,
    /// Days that were looked ahead.
    pub days_ahead: u32,
    /// Each figure beside its bound.
    pub limits: Vec<Limit>,
    /// In words, whether and when the machine will be too small.
    pub verdict: String,
    /// What a cluster would need at the end of that time.
    pub cluster: Cluster,
    /// The load it is computed for.
    pub load: Load,
}

impl Report {
    /// Computes the report.
    pub fn new(growth: &Growth, days: u32, (replicas, size): (u32, NodeSize)) -> Report {
        let samples = &growth.samples;
        let found = limits(growth);
        let (first, last) = (samples.first(), samples.last());
        let history_s = first.zip(last).map_or(0, |(first, last)| last.time_s - first.time_s);
        let load = load(samples, f64::from(days));
        Report {
            history_hours: history_s as f64 / 3600.0,
            days_ahead: days,
            verdict: verdict(&found, f64::from(days)),
            limits: found,
            cluster: Cluster::of(&load, replicas, size),
            load,
        }
    }

    /// Prints it for a person.
    pub fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}\n", self.verdict)?;
        let mut table = Columns::new("  ");
        table.row(["Figure", "Now", "Bound", "Reached in", "Trend"]);
        for limit in &self.limits {
            let left = match limit.days_left {
                None => "-".to_owned(),
                Some(days) if days < 1.0 => "now".to_owned(),
                Some(days) => days_text(days),
            };
            let bound = limit.bound.clone().unwrap_or_else(|| "-".to_owned());
            table.row([limit.what.to_owned(), limit.now.clone(), bound, left, limit.trend.clone()]);
        }
        table.print(out)?;
        writeln!(out, "\nBounds:")?;
        for limit in &self.limits {
            writeln!(out, "  {}: {}", limit.what, limit.because)?;
        }
        let cluster = &self.cluster;
        writeln!(
            out,
            "\nA cluster for the load of {}: {}, {}, {} a node",
            match self.days_ahead {
                0 => "today".to_owned(),
                days => format!("{} from now", counted(days, "day")),
            },
            counted(cluster.nodes, "node"),
            counted(cluster.replicas, "copy"),
            counted(cluster.tokens, "token")
        )?;
        for line in &cluster.because {
            writeln!(out, "  {line}")?;
        }
        writeln!(out, "\nhelenus move plan says how the data would go there.")
    }
}

fn verdict(limits: &[Limit], days: f64) -> String {
    let soonest = limits.iter().filter_map(|limit| Some((limit.days_left?, limit.what)));
    let soonest = soonest.min_by(|one, other| one.0.total_cmp(&other.0));
    let is_known = limits.iter().any(|limit| limit.per_day.is_some());
    match soonest {
        Some((left, what)) if left < 1.0 => format!("This machine is too small now: {what}."),
        Some((left, what)) if left <= days => {
            format!("This machine will be too small in {}, by its {what}.", days_text(left))
        }
        _ if is_known => format!("This machine is large enough for the next {}.", days_text(days)),
        _ => {
            "This machine is large enough today. Trends are shown once there is a day of history.".to_owned()
        }
    }
}

fn days_text(days: f64) -> String {
    if days < 60.0 {
        format!("{days:.0} days")
    } else if days < 730.0 {
        format!("{:.0} months", days / 30.4)
    } else {
        format!("{:.0} years", days / 365.25)
    }
}

/// The load at the end of that time: the present one and its trends.
fn load(samples: &[Sample], days: f64) -> Load {
    let ahead = |of: &dyn Fn(&Sample) -> Option<f64>| {
        let more = Trend::of(&points(samples, of)).map_or(0.0, |trend| trend.per_day.max(0.0) * days);
        peak(samples, of).unwrap_or_default() + more
    };
    Load {
        data_bytes: ahead(&|sample| Some(sample.data_bytes as f64)),
        reads_per_s: ahead(&|sample| sample.reads_per_s),
        writes_per_s: ahead(&|sample| sample.writes_per_s),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(hour: i64) -> Sample {
        Sample {
            time_s: hour * 3600,
            data_bytes: 50_000_000_000 + u64::try_from(hour).unwrap() * 100_000_000,
            disk_free_bytes: 400_000_000_000,
            disk_bytes: 500_000_000_000,
            cores: 4,
            cores_busy: Some(1.0),
            reads_per_s: Some(1000.0),
            writes_per_s: Some(2000.0),
            read_p99_us: 500,
            write_p99_us: 300,
            ..Sample::default()
        }
    }

    fn report(samples: Vec<Sample>, days: u32) -> (Report, String) {
        let growth =
            Growth { samples, largest_table: Some(("ks.t".to_owned(), 20_000_000_000)), is_in_memory: false };
        let report = Report::new(&growth, days, (3, NodeSize { disk_bytes: 1 << 40, cores: 8 }));
        let mut out = Vec::new();
        report.print(&mut out).unwrap();
        (report, String::from_utf8(out).unwrap())
    }

    #[test]
    fn a_growing_disk_is_said_in_words() {
        let (found, text) = report((0..100).map(sample).collect(), 365);
        assert!(text.starts_with("This machine will be too small in 4 months, by its disk."), "{text}");
        assert!(text.contains("2.24 GiB a day over 4 days"), "{text}");
        assert_eq!(found.cluster.nodes, 6, "{text}");
        let (_, text) = report((0..100).map(sample).collect(), 30);
        assert!(text.starts_with("This machine is large enough for the next 30 days."), "{text}");
    }

    #[test]
    fn a_server_without_history_says_that_trends_come_later() {
        let (_, text) = report(vec![sample(0)], 365);
        assert!(text.starts_with("This machine is large enough today. Trends are shown"), "{text}");
        let (_, text) = report(Vec::new(), 365);
        assert!(text.contains("3 nodes"), "{text}");
    }
}
