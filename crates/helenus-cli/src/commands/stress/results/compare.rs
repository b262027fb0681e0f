//! `helenus stress compare`: prints two results side by side, run by run, with ratios.

use super::files::Results;
use super::run_result::RunResult;
use super::table::{micros, notes, whole};
use anyhow::{Result, ensure};
use serde_json::{Value, json};
use std::fmt::Write;

/// A line of the comparison.
struct Line {
    name: &'static str,
    a: f64,
    b: f64,
    /// Formats a value.
    text: fn(f64) -> String,
}

/// The compared values of two runs.
fn lines(a: &RunResult, b: &RunResult) -> Vec<Line> {
    let cost = |us: f64| format!("{us:.2}");
    let mut lines = vec![
        Line { name: "ops/s", a: a.ops_per_s, b: b.ops_per_s, text: whole },
        Line { name: "rows/s", a: a.rows_per_s, b: b.rows_per_s, text: whole },
    ];
    let names = ["mean us", "p50 us", "p95 us", "p99 us", "p99.9 us", "max us"];
    let latencies = a.latency_us.named().into_iter().zip(b.latency_us.named()).zip(names);
    lines.extend(latencies.map(|(((_, a), (_, b)), name)| Line { name, a, b, text: micros }));
    lines.push(Line { name: "errors", a: a.error_count() as f64, b: b.error_count() as f64, text: whole });
    lines.push(Line {
        name: "client us/op",
        a: a.client_cpu_us_per_op,
        b: b.client_cpu_us_per_op,
        text: cost,
    });
    if let (Some(a), Some(b)) = (a.server, b.server) {
        lines.push(Line { name: "server us/op", a: a.cpu_us_per_op, b: b.cpu_us_per_op, text: cost });
        lines.push(Line { name: "RSS MiB", a: a.resident_mib, b: b.resident_mib, text: whole });
    }
    lines
}

/// Pairs the runs of the same test over the same interface. If both results have a single run, these are compared in
/// any case.
fn pairs<'r>(a: &'r Results, b: &'r Results) -> Vec<(&'r RunResult, &'r RunResult)> {
    if let ([a], [b]) = (&a.runs[..], &b.runs[..]) {
        return vec![(a, b)];
    }
    let mut left: Vec<&RunResult> = b.runs.iter().collect();
    let mut pairs = Vec::new();
    for run in &a.runs {
        let is_same =
            |other: &&RunResult| (&other.workload, other.interface) == (&run.workload, run.interface);
        if let Some(at) = left.iter().position(is_same) {
            pairs.push((run, left.remove(at)));
        }
    }
    pairs
}

/// The comparison as text and as JSON. A ratio is the second value divided by the first.
///
/// # Errors
/// The results have no run in common.
pub(in super::super) fn compare(a: &Results, b: &Results) -> Result<(String, Value)> {
    let pairs = pairs(a, b);
    ensure!(!pairs.is_empty(), "the two have no test over the same interface in common");
    let alone = (a.runs.len() - pairs.len(), b.runs.len() - pairs.len());
    let (mut text, mut told) = (String::new(), Vec::new());
    for (a, b) in &pairs {
        if !text.is_empty() {
            text.push('\n');
        }
        for (name, run) in [("A", a), ("B", b)] {
            let _ = writeln!(
                text,
                "{name}  {} on {}, {}, {} connections, {} in flight, {:.1} s",
                run.title(),
                run.host,
                run.protocol,
                run.connections,
                run.in_flight,
                run.seconds
            );
        }
        let _ = writeln!(text, "{:<12} {:>12} {:>12} {:>8}", "", "A", "B", "B/A");
        let mut ratios = serde_json::Map::new();
        for Line { name, a, b, text: shown } in lines(a, b) {
            let ratio = (a > 0.0).then(|| b / a);
            let ratio_text = ratio.map_or("-".into(), |ratio| format!("{ratio:.2}x"));
            let _ = writeln!(text, "{name:<12} {:>12} {:>12} {ratio_text:>8}", shown(a), shown(b));
            ratios.insert(name.to_owned(), json!({"a": a, "b": b, "ratio": ratio}));
        }
        for (name, run) in [("A", a), ("B", b)] {
            for note in notes(run) {
                let _ = writeln!(text, "{name}: {note}");
            }
        }
        told.push(json!({"workload": a.workload, "interface": a.interface, "figures": ratios}));
    }
    for (count, name) in [(alone.0, "A"), (alone.1, "B")] {
        if count > 0 {
            let _ = writeln!(text, "\nRuns in {name} alone: {count}.");
        }
    }
    Ok((text, json!({"compared": told})))
}

#[cfg(test)]
mod tests {
    use super::super::super::interface::Interface;
    use super::*;

    fn run(workload: &str, interface: Interface, ops_per_s: f64) -> RunResult {
        RunResult { workload: workload.into(), interface, ops_per_s, ..RunResult::default() }
    }

    #[test]
    fn the_same_tests_are_compared_and_others_named() {
        let a =
            Results { runs: vec![run("insert", Interface::Rpc, 10.0), run("insert", Interface::Cql, 20.0)] };
        let b = Results { runs: vec![run("read", Interface::Cql, 5.0), run("insert", Interface::Cql, 30.0)] };
        let (text, json) = compare(&a, &b).unwrap();
        let ops = text.lines().find(|line| line.starts_with("ops/s")).unwrap();
        assert_eq!(ops.split_whitespace().collect::<Vec<_>>(), ["ops/s", "20", "30", "1.50x"]);
        assert!(text.contains("Runs in A alone: 1") && text.contains("Runs in B alone: 1"), "{text}");
        assert_eq!(json["compared"][0]["figures"]["ops/s"]["ratio"], 1.5);
    }

    #[test]
    fn single_runs_are_compared_whatever_they_are_and_strangers_refused() {
        let one = |workload| Results { runs: vec![run(workload, Interface::Rpc, 1.0)] };
        assert!(compare(&one("read"), &one("insert")).is_ok());
        let two =
            |name| Results { runs: vec![run(name, Interface::Rpc, 1.0), run(name, Interface::Cql, 1.0)] };
        assert!(compare(&two("read"), &two("insert")).is_err());
    }
}
