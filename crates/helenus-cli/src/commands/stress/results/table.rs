//! Results as text for people.

use super::run_result::{Latency, RunResult, StatementFigures};
use crate::commands::numbers::{grouped, times};
use std::fmt::Write;

/// The lines of a run: the workload, the results below their names, and notes.
pub(in super::super) fn table(figures: &RunResult) -> String {
    let mut columns: Vec<(String, String)> =
        vec![("ops/s".into(), whole(figures.ops_per_s)), ("rows/s".into(), whole(figures.rows_per_s))];
    let latencies = figures.latency_us.named();
    columns.extend(latencies.map(|(name, us)| (format!("{name} us"), micros(us))));
    columns.push(("errors".into(), grouped(figures.error_count())));
    columns.push(("client us/op".into(), format!("{:.2}", figures.client_cpu_us_per_op)));
    if let Some(server) = &figures.server {
        columns.push(("server us/op".into(), format!("{:.2}", server.cpu_us_per_op)));
        columns.push(("RSS MiB".into(), format!("{:.0}", server.resident_mib)));
    }
    let mut text = format!(
        "{} on {}, {}, {}, {} connections, {} in flight{}, {} operations in {:.2} s, {:.1} answers a read\n",
        figures.workload,
        figures.host,
        figures.interface.title(),
        figures.protocol,
        figures.connections,
        figures.in_flight,
        figures.rate.map(|rate| format!(", {}/s asked for", whole(rate.asked_per_s))).unwrap_or_default(),
        grouped(figures.operations),
        figures.seconds,
        figures.answers_per_read,
    );
    text.push_str(&columns_text(&columns));
    if let Some(service) = figures.service_us {
        let latencies =
            |latency: Latency| latency.named().map(|(name, us)| format!("{name} {}", micros(us))).join(", ");
        let _ = write!(
            text,
            "\nlatencies count from the moment a request was due; from the one it left, us: {}",
            latencies(service)
        );
    }
    if !figures.statements.is_empty() {
        let _ = write!(text, "\n{}", statements(&figures.statements));
    }
    for (kind, errors) in &figures.errors {
        let _ = write!(text, "\n{} {kind}, first: {}", times(errors.count), errors.first);
    }
    for note in notes(figures) {
        let _ = write!(text, "\n{note}");
    }
    text
}

/// The statements of a workload, one line each.
fn statements(statements: &[StatementFigures]) -> String {
    let mut lines = vec![
        ["", "ops/s", "operations", "mean us", "p50 us", "p95 us", "p99 us", "p99.9 us", "max us"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for statement in statements {
        let mut line =
            vec![statement.name.clone(), whole(statement.ops_per_s), grouped(statement.operations)];
        line.extend(statement.latency_us.named().map(|(_, us)| micros(us)));
        lines.push(line);
    }
    aligned(&lines, "  ")
}

/// Lines of cells in aligned columns: names to the left, numbers to the right.
fn aligned(lines: &[Vec<String>], gap: &str) -> String {
    let width = |at: usize| {
        lines.iter().filter_map(|line| line.get(at)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let text = |line: &Vec<String>| {
        let cells = line.iter().enumerate().map(|(at, cell)| match at {
            0 => format!("{cell:<0$}", width(0)),
            _ => format!("{cell:>0$}", width(at)),
        });
        cells.collect::<Vec<_>>().join(gap)
    };
    lines.iter().map(text).collect::<Vec<_>>().join("\n")
}

/// Reasons why the results may not reflect the server alone.
pub(super) fn notes(figures: &RunResult) -> Vec<String> {
    let mut notes = Vec::new();
    let client = figures.client;
    if client.is_limit() {
        let percent = |share: f64| (share * 100.0).round();
        let waited = if client.waited_share >= 0.05 {
            format!(" and waited for a core {} % of it", percent(client.waited_share))
        } else {
            String::new()
        };
        notes.push(format!(
            "THE CLIENT WAS THE LIMIT, not the server: its {} used {} % of a core's time{waited}. Give it more --threads, cores \
             of its own (taskset), or another machine",
            if figures.threads > 1 { "busiest thread" } else { "thread" },
            percent(client.cpu_share),
        ));
    }
    if let Some(rate) = figures.rate.filter(|rate| rate.late > 0) {
        notes.push(format!(
            "THE RATE WAS NOT KEPT: {} requests were due and had not left at the end. Ask for a lower --rate, or allow more \
             --in-flight",
            grouped(rate.late)
        ));
    }
    notes
}

/// Names above values, in aligned columns.
fn columns_text(columns: &[(String, String)]) -> String {
    let width = |(name, figure): &(String, String)| name.len().max(figure.len());
    let line = |pick: fn(&(String, String)) -> &String| {
        let cells = columns.iter().map(|column| format!("{:>1$}", pick(column), width(column)));
        cells.collect::<Vec<_>>().join("  ")
    };
    format!("{}\n{}", line(|(name, _)| name), line(|(_, figure)| figure))
}

/// Runs of one test over several interfaces in the layout of "CQL benchmarking" (2011): average rate and latency, each
/// with its difference from the first.
pub(in super::super) fn side_by_side(title: &str, runs: &[RunResult]) -> String {
    let mut lines = vec![
        ["", "average op rate", "average latency", "p50", "p95", "p99", "p99.9", "errors"]
            .map(str::to_owned)
            .to_vec(),
    ];
    let first = runs.first();
    for run in runs {
        let than = |value: f64, base: fn(&RunResult) -> f64| {
            let base = first.filter(|first| first.interface != run.interface).map(base);
            base.map(|base| format!(" ({})", difference(value, base))).unwrap_or_default()
        };
        let mean = run.latency_us.mean;
        let mut line = vec![
            run.interface.title().to_owned(),
            format!("{}/s{}", whole(run.ops_per_s), than(run.ops_per_s, |first| first.ops_per_s)),
            format!("{}{}", span(mean), than(mean, |first| first.latency_us.mean)),
        ];
        let Latency { p50, p95, p99, p999, .. } = run.latency_us;
        line.extend([p50, p95, p99, p999].map(span));
        line.push(grouped(run.error_count()));
        lines.push(line);
    }
    let mut text = format!("{title}\n");
    for line in aligned(&lines, "   ").lines() {
        let _ = writeln!(text, "  {line}");
    }
    for run in runs {
        for note in notes(run) {
            let _ = writeln!(text, "  {}: {note}", run.interface.title());
        }
    }
    text
}

/// The difference from the base, in whole percent.
pub(super) fn difference(value: f64, base: f64) -> String {
    if base <= 0.0 {
        return "-".to_owned();
    }
    let percent = ((value / base - 1.0) * 100.0).round();
    if percent == 0.0 { "0 %".to_owned() } else { format!("{percent:+} %") }
}

/// A whole number with commas.
pub(super) fn whole(number: f64) -> String {
    grouped(number.round().max(0.0) as u64)
}

/// Microseconds, with one decimal below 1,000.
pub(in super::super) fn micros(us: f64) -> String {
    if us < 1_000.0 { format!("{us:.1}") } else { whole(us) }
}

/// A latency with a fitting unit.
pub(super) fn span(us: f64) -> String {
    match us {
        us if us >= 1e6 => format!("{:.2} s", us / 1e6),
        us if us >= 1e3 => format!("{:.1} ms", us / 1e3),
        us => format!("{us:.0} us"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::interface::Interface;
    use super::super::run_result::{ClientUse, Errors, Paced};
    use super::*;

    fn run(interface: Interface, ops_per_s: f64, mean: f64) -> RunResult {
        let latency_us = Latency { mean, p50: 250.0, p999: 12_345.0, ..Latency::default() };
        RunResult { interface, ops_per_s, latency_us, threads: 1, ..RunResult::default() }
    }

    #[test]
    fn interfaces_stand_side_by_side_with_their_difference_to_the_first() {
        let runs = [run(Interface::Rpc, 20_953.0, 1_600.0), run(Interface::Cql, 19_176.0, 1_744.0)];
        let text = side_by_side("Insert 20M rows", &runs);
        let words = |line: &str| {
            line.split("  ")
                .map(str::trim)
                .filter(|word| !word.is_empty())
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        let lines: Vec<Vec<String>> = text.lines().map(words).collect();
        assert_eq!(lines[2][..3], ["RPC", "20,953/s", "1.6 ms"]);
        assert_eq!(lines[3][..3], ["CQL", "19,176/s (-8 %)", "1.7 ms (+9 %)"]);
        assert_eq!(lines[3].last().unwrap(), "0");
    }

    #[test]
    fn a_client_at_its_limit_and_a_rate_not_kept_are_said_loudly() {
        let mut figures = run(Interface::Prepared, 1.0, 1.0);
        assert!(notes(&figures).is_empty());
        figures.client = ClientUse { cpu_share: 0.80, waited_share: 0.19 };
        figures.rate = Some(Paced { asked_per_s: 5.0, late: 1_200 });
        figures.errors.insert("WRITE_TIMEOUT".into(), Errors { count: 3, first: "too late".into() });
        let text = table(&figures);
        assert!(
            text.contains("THE CLIENT WAS THE LIMIT") && text.contains("80 %") && text.contains("19 %"),
            "{text}"
        );
        assert!(text.contains("1,200 requests were due"), "{text}");
        assert!(text.contains("3 times WRITE_TIMEOUT, first: too late"), "{text}");
    }

    #[test]
    fn latencies_have_their_unit() {
        assert_eq!([3.06, 1_500.0].map(micros), ["3.1", "1,500"]);
        assert_eq!([350.2, 1_640.0, 2_500_000.0].map(span), ["350 us", "1.6 ms", "2.50 s"]);
        assert_eq!(
            [difference(9.0, 10.0), difference(10.0, 10.0), difference(1.0, 0.0)],
            ["-10 %", "0 %", "-"]
        );
    }
}
