//! The memtables and SSTables that take part in a read, and why the others do not.

use super::step::{Step, bytes_text, counted};
use crate::plan::select::{Forecast, ReadKind};
use helenus_engine::read::{Probe, SkipReason, SsTableCounts};

/// The most SSTables that get a line each, asked or skipped; the rest is summed.
const TABLES_SHOWN_MAX: usize = 24;

/// The lines of the sources, from the forecast or from the counts of a run. `memtables` is the number of memtables.
pub(crate) fn source_steps(forecast: &Forecast<'_>, memtables: usize, probe: &Probe) -> Vec<Step> {
    let Some(command) = &forecast.command else { return Vec::new() };
    let scans = matches!(forecast.kind, ReadKind::RangeScan | ReadKind::TokenRange);
    let detail = match (probe.memtables, scans) {
        (0, _) => "nothing of it in memory".to_owned(),
        (found, true) => format!("{found} of {} asked", counted(memtables as u64, "memtable")),
        (_, false) if probe.partitions <= 1 => "holds rows of the partition".to_owned(),
        (found, false) => format!("{} found in memory", counted(found, "partition")),
    };
    let mut steps = vec![Step::new("memtable", "memory", detail).count(probe.memtables)];
    let (asked, skipped): (Vec<&SsTableCounts>, Vec<&SsTableCounts>) =
        probe.tables.iter().partition(|table| table.asked > 0);
    for table in asked.iter().take(TABLES_SHOWN_MAX) {
        steps.push(asked_step(table));
    }
    if asked.len() > TABLES_SHOWN_MAX {
        let more = asked.len() - TABLES_SHOWN_MAX;
        let times = asked.iter().skip(TABLES_SHOWN_MAX).map(|table| table.asked).sum();
        steps.push(Step::new("sstable", format!("{more} more"), "asked as well").count(times));
    }
    for table in skipped.iter().take(TABLES_SHOWN_MAX) {
        let times = table.reasons().map(|(_, times)| times).sum();
        steps.push(Step::new("skip", table.descriptor.id.to_string(), reasons(table)).count(times));
    }
    if skipped.len() > TABLES_SHOWN_MAX {
        let rest = || skipped.iter().skip(TABLES_SHOWN_MAX);
        let times = rest().flat_map(|table| table.reasons()).map(|(_, times)| times).sum();
        steps.push(
            Step::new("skip", format!("{} more", rest().count()), "for reasons like these").count(times),
        );
    }
    if probe.sstables_elsewhere > 0 {
        steps.push(
            Step::new("skip", "others", SkipReason::KeyRange.describe()).count(probe.sstables_elsewhere),
        );
    }
    if !asked.is_empty() {
        steps.push(index(forecast.kind, command.reversed));
    }
    steps
}

fn asked_step(table: &SsTableCounts) -> Step {
    let mut detail =
        format!("{} in {}", counted(table.partitions, "partition"), bytes_text(table.size_bytes));
    let reasons = reasons(table);
    if !reasons.is_empty() {
        detail.push_str(&format!("; skipped for others: {reasons}"));
    }
    Step::new("sstable", table.descriptor.id.to_string(), detail).count(table.asked)
}

fn reasons(table: &SsTableCounts) -> String {
    let reasons: Vec<String> = table
        .reasons()
        .map(|(reason, times)| match times {
            1 => reason.describe().to_owned(),
            times => format!("{} ({times} times)", reason.describe()),
        })
        .collect();
    reasons.join(", ")
}

fn index(kind: ReadKind, reversed: bool) -> Step {
    let (target, detail) = match kind {
        ReadKind::Point | ReadKind::Names => {
            ("Partitions.db, Rows.db", "to each row; a narrow partition has no row index and is read whole")
        }
        ReadKind::Slice if reversed => {
            ("Partitions.db, Rows.db", "to the end of the slice; narrow partitions have no row index")
        }
        ReadKind::Slice => {
            ("Partitions.db, Rows.db", "to the start of the slice; narrow partitions have no row index")
        }
        ReadKind::Partition if reversed => ("Partitions.db, Rows.db", "to the last block of the partition"),
        ReadKind::Partition => ("Partitions.db", "to the start of the partition"),
        ReadKind::Index => ("Partitions.db, Rows.db", "to the partitions and rows that the entries name"),
        ReadKind::RangeScan | ReadKind::TokenRange | ReadKind::Nothing | ReadKind::Virtual => {
            ("Partitions.db", "to the first partition; then the files are read through, past the cache")
        }
    };
    Step::new("index", target, detail)
}
