//! Shows the progress of a pull, and what it has copied.

use crate::commands::progress::{Progress, size};
use helenus_cql::counted;
use helenus_mover::PullReport;

/// A progress line.
pub(super) struct Line(Option<Progress>);

impl Line {
    pub(super) fn new() -> Line {
        Line(None)
    }

    /// Shows a report.
    pub(super) fn show(&mut self, report: &PullReport) {
        let all: usize = report.tables.iter().map(|table| table.parts).sum();
        let done: usize = report.tables.iter().map(|table| table.parts_done).sum();
        let rows: u64 = report.tables.iter().map(|table| table.rows).sum();
        let bytes: u64 = report.tables.iter().map(|table| table.bytes).sum();
        if all == 0 {
            return;
        }
        let progress = self.0.get_or_insert_with(|| Progress::of_items("pulling", all as u64, "parts"));
        progress.name(format!("pulling  {}, {}", counted(rows, "row"), size(bytes)));
        progress.at(done as u64);
    }
}

/// The report for people.
pub(super) fn words(report: &PullReport) -> String {
    let mut text = String::new();
    for table in &report.tables {
        if let Some(error) = table.error.as_ref().filter(|_| table.parts == 0) {
            text.push_str(&format!("{}: not copied: {error}\n", table.table));
            continue;
        }
        text.push_str(&format!("{}: {}, {}", table.table, counted(table.rows, "row"), size(table.bytes)));
        if table.parts_done < table.parts {
            text.push_str(&format!(
                "; not copied: {} of {}",
                table.parts - table.parts_done,
                counted(table.parts, "part")
            ));
        }
        text.push('\n');
    }
    for note in &report.notes {
        text.push_str(&format!("  {note}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use helenus_mover::PulledTable;

    #[test]
    fn a_report_says_what_was_copied_and_what_was_not() {
        let table = PulledTable {
            table: "ks.t".to_owned(),
            parts: 4,
            parts_done: 3,
            rows: 7,
            bytes: 2048,
            error: None,
        };
        let report = PullReport {
            tables: vec![table],
            notes: vec!["ks.t: the view v is left out".to_owned()],
            ..PullReport::default()
        };
        assert_eq!(
            words(&report),
            "ks.t: 7 rows, 2.0 KiB; not copied: 1 of 4 parts\n  ks.t: the view v is left out\n"
        );
    }
}
