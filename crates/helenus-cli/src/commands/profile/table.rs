//! The results as a table in the layout of "Cassandra Query Plans" (2011): a block for each case, a line for each row.

use super::results::{AtSize, Measured, Profile};
use super::small_rows::data_size;
use crate::commands::numbers::{figure, grouped, mean};
use std::fmt::Write;

/// The table. The text ends with a newline.
pub(super) fn text(profile: &Profile) -> String {
    let mut text = format!(
        "{}: {} queries a line, each answer checked. Microseconds: min, 80th percentile, 95th percentile and max.\n",
        profile.subject, profile.repeats
    );
    if profile.cases.iter().any(|measured| measured.touched.is_some()) {
        text.push_str("Beside them what a query touched: SSTables, nodes of their indexes, blocks, and bytes in those.\n");
    }
    if !profile.cases.is_empty() {
        let _ = writeln!(text, "Before: {}.", profile.settled.words());
    }
    for (case, rows) in profile.by_case() {
        let _ = write!(text, "\n{}, table {}\n", case.title, case.order.table());
        let probed = rows.iter().any(|row| row.touched.is_some());
        let _ = write!(
            text,
            "{:<18} {:>7} {:>9} {:>9} {:>9} {:>9}",
            "row", "columns", "min", "80th", "95th", "max"
        );
        if probed {
            let _ = write!(text, " {:>9} {:>11} {:>7} {:>9}", "sstables", "index nodes", "blocks", "bytes");
        }
        text.push('\n');
        for row in rows {
            text.push_str(&line(row));
            text.push('\n');
        }
    }
    text.push_str(&sizes(&profile.sizes));
    text
}

/// Reads by key, one line for each size; empty without sizes.
fn sizes(sizes: &[AtSize]) -> String {
    let mut text = String::new();
    if sizes.is_empty() {
        return text;
    }
    text.push_str("\nA row of five columns by its key, over the size of its table, compacted\n");
    let heads = ["rows", "min", "50th", "80th", "95th", "max", "sstables", "index nodes", "blocks", "read"];
    let _ = write!(text, "{:<10}", "data");
    for head in heads {
        let _ = write!(text, " {head:>11}");
    }
    text.push('\n');
    for size in sizes {
        let latency = &size.latency_us;
        let _ = write!(text, "{:<10} {:>11}", data_size(size.data_bytes), grouped(size.rows));
        for value in [latency.min, latency.p50, latency.p80, latency.p95, latency.max] {
            let _ = write!(text, " {:>11}", figure(value));
        }
        let touched = size.touched.unwrap_or_default();
        for value in [touched.sstables, touched.index_nodes, touched.blocks, touched.blocks_read] {
            let _ = write!(text, " {:>11}", mean(value));
        }
        text.push('\n');
    }
    text
}

fn line(row: &Measured) -> String {
    let latency = &row.latency_us;
    let mut line = format!("{:<18} {:>7}", row.row, grouped(row.columns));
    for value in [latency.min, latency.p80, latency.p95, latency.max] {
        let _ = write!(line, " {:>9}", figure(value));
    }
    if let Some(touched) = &row.touched {
        let _ = write!(
            line,
            " {:>9} {:>11} {:>7} {:>9}",
            mean(touched.sstables),
            mean(touched.index_nodes),
            mean(touched.blocks),
            mean(touched.bytes)
        );
    }
    line
}

#[cfg(test)]
mod tests {
    use super::super::cases::CASES;
    use super::super::results::TouchedMean;
    use super::super::rows::ROWS;
    use super::*;

    #[test]
    fn a_line_has_the_percentiles_and_what_was_touched_under_their_heads() {
        let mut profile = Profile::begin("a test".into(), "in-process", 0);
        let mut measured = Measured::new(&CASES[0], ROWS[6], 100, vec![10.0, 20.0, 1_234.5]);
        measured.touched =
            Some(TouchedMean { queries: 1, sstables: 1.0, blocks: 2.5, ..TouchedMean::default() });
        profile.cases.push(measured);
        let text = text(&profile);
        let lines: Vec<&str> = text.lines().collect();
        let [.., head, line] = lines[..] else { panic!("{text}") };
        assert!(line.starts_with("ten-million            100      10.0"), "{text}");
        for (name, value) in [("max", "1,235"), ("sstables", "1"), ("blocks", "2.5")] {
            let end = head.find(name).unwrap() + name.len();
            assert!(line[..end].ends_with(value), "{name}\n{text}");
        }
    }
}
