//! Prints the answers of a move for people.

use crate::commands::numbers::utc;
use anyhow::Result;
use helenus_cql::counted;
use helenus_mover::{MoveAnswer, PlanReport, StatusReport, TableReport};
use std::io::Write;

/// Cells of a progress bar.
const BAR: usize = 20;

/// Prints an answer.
///
/// # Errors
/// The output is gone.
pub(super) fn print(answer: &MoveAnswer) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match answer {
        MoveAnswer::Plan(report) => out.write_all(plan(report).as_bytes())?,
        MoveAnswer::Status(report) => out.write_all(status(report).as_bytes())?,
        MoveAnswer::Verified(report) => out.write_all(super::verify::words(report).as_bytes())?,
        MoveAnswer::Done(text) => writeln!(out, "{text}")?,
    }
    Ok(())
}

fn plan(report: &PlanReport) -> String {
    let mut text = format!("target: {} ({})", report.cluster, report.version);
    for (datacenter, nodes) in &report.nodes {
        text.push_str(&format!(", {datacenter}: {}", counted(*nodes, "node")));
    }
    text.push('\n');
    let mut part = |name: &str, lines: Vec<String>| {
        if !lines.is_empty() {
            text.push_str(&format!("\n{name}\n"));
            lines.iter().for_each(|line| text.push_str(&format!("  {line}\n")));
        }
    };
    part("limits there", report.limits.iter().map(|(name, value)| format!("{name} = {value}")).collect());
    let table = |of: &helenus_mover::PlannedTable| {
        format!("{}  about {}, {}", of.table, counted(of.rows, "row"), size(of.bytes))
    };
    part("tables", report.tables.iter().map(table).collect());
    let first_line = |statement: &String| statement.lines().next().unwrap_or_default().to_owned();
    part("made there", report.to_make.iter().map(first_line).collect());
    part("time", report.estimate.clone());
    part("notes", report.notes.clone());
    let left_out = |(table, reasons): (&String, &Vec<String>)| format!("{table}: {}", reasons.join("; "));
    part("left out", report.left_out.iter().map(left_out).collect());
    part("problems", report.problems.clone());
    text
}

fn status(report: &StatusReport) -> String {
    let moment = |ms: i64| utc(u64::try_from(ms / 1000).unwrap_or_default());
    let state = match (&report.reason, report.is_running) {
        (Some(reason), _) => reason.clone(),
        (None, _) if report.cut_at_ms.is_some() => format!(
            "cut over {}; clients are served by the target. A rollback is allowed until {}",
            moment(report.cut_at_ms.unwrap_or_default()),
            moment(report.rollback_until_ms.unwrap_or_default())
        ),
        (None, true) if report.tables_made.is_some() => format!(
            "schema is made: {} of {}",
            report.tables_made.unwrap_or_default(),
            counted(report.tables.len(), "table")
        ),
        (None, true) => format!(
            "{} rows/s, target p99 {:.1} ms, at most {} in flight",
            report.rows_per_second,
            report.target_p99_ms,
            counted(report.in_flight_max, "request")
        ),
        (None, false) => "ended".to_owned(),
    };
    let mut text = format!("move to {}: {state}\n", report.to.join(", "));
    let width = report.tables.iter().map(|table| table.table.len()).max().unwrap_or_default();
    for table in &report.tables {
        text.push_str(&format!("  {:width$}  {}\n", table.table, table_line(table)));
    }
    if !report.differences.is_empty() {
        text.push_str("definitions differ at the target:\n");
        report.differences.iter().for_each(|line| text.push_str(&format!("  {line}\n")));
    }
    if report.repeated > 0 {
        let last = report.last_error.as_deref().unwrap_or_default();
        text.push_str(&format!(
            "{} sent again; the last error: {last}\n",
            counted(report.repeated, "request")
        ));
    }
    text
}

fn table_line(table: &TableReport) -> String {
    match (&*table.phase, &table.reason) {
        (_, Some(reason)) => format!("stopped: {reason}"),
        ("tail", _) => {
            let lag = table.lag_s.map_or("not read yet".to_owned(), |lag| format!("{lag:.1} s behind"));
            let to_verify = if table.is_to_verify { "; helenus move verify is to compare it" } else { "" };
            format!(
                "tail: {lag}; {} and {} sent{}{to_verify}",
                counted(table.rows, "row"),
                counted(table.changes, "change"),
                anew(table)
            )
        }
        ("back-fill", _) => {
            let filled = (table.ranges_done * BAR).checked_div(table.ranges).unwrap_or_default();
            let bar: String = (0..BAR).map(|cell| if cell < filled { '#' } else { '.' }).collect();
            let (done, all) = (table.ranges_done, table.ranges);
            format!(
                "[{bar}] {done} of {}; {}, {}{}",
                counted(all, "range"),
                counted(table.rows, "row"),
                size(table.bytes),
                anew(table)
            )
        }
        (phase, _) => phase.to_owned(),
    }
}

/// How often a table was begun anew, if it was.
fn anew(table: &TableReport) -> String {
    match table.begun_anew {
        0 => String::new(),
        times => format!("; begun anew {}", counted(times, "time")),
    }
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        _ => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_shows_a_bar_a_lag_and_the_reason_of_a_stop() {
        let table = |phase: &str| TableReport {
            table: "ks.t".to_owned(),
            phase: phase.to_owned(),
            ranges: 256,
            ranges_done: 128,
            rows: 10,
            bytes: 2048,
            lag_s: Some(0.25),
            ..TableReport::default()
        };
        assert_eq!(
            table_line(&table("back-fill")),
            "[##########..........] 128 of 256 ranges; 10 rows, 2.0 KiB"
        );
        assert_eq!(table_line(&table("tail")), "tail: 0.2 s behind; 10 rows and 0 changes sent");
        let anew = TableReport { begun_anew: 2, ..table("tail") };
        assert_eq!(table_line(&anew), "tail: 0.2 s behind; 10 rows and 0 changes sent; begun anew 2 times");
        let begun = StatusReport {
            is_running: true,
            tables_made: Some(3),
            tables: vec![table("waits"); 31],
            ..StatusReport::default()
        };
        assert!(status(&begun).starts_with("move to : schema is made: 3 of 31 tables\n"));
        let stopped = TableReport { reason: Some("dropped".to_owned()), ..table("stopped") };
        assert_eq!(table_line(&stopped), "stopped: dropped");
    }
}
