//! The advice of EXPLAIN: one sentence for each cost that a better schema, a bound or a limit would avoid. Often none.

use super::step::{Step, counted};
use super::writing::Written;
use crate::plan::select::{Forecast, ReadKind};
use helenus_engine::read::{Partitions, Probe};
use helenus_model::types::quote_identifier;

/// The number of partitions in an IN from which separate statements are better.
const KEYS_MANY: usize = 10;
/// The number of SSTables read for one partition from which advice is given.
const SOURCES_MANY: u64 = 4;
/// The number of tombstones from which advice is given.
const TOMBSTONES_MANY: u64 = 100;

fn advice(target: &'static str, detail: impl Into<String>) -> Step {
    Step::new("advice", target, detail)
}

/// Advice about a SELECT. `probe` holds the forecast or, if the statement `ran`, its counts.
pub(crate) fn advise_read(forecast: &Forecast<'_>, probe: &Probe, ran: bool) -> Vec<Step> {
    let Some(command) = &forecast.command else { return Vec::new() };
    let mut steps = Vec::new();
    let scans = matches!(forecast.kind, ReadKind::RangeScan | ReadKind::TokenRange);
    let filters = !forecast.where_text.filters.is_empty();
    if scans && filters {
        let text = "reads all partitions to find some rows; make a table keyed by what is asked for";
        steps.push(advice("filter", text));
    } else if scans && forecast.kind == ReadKind::RangeScan && forecast.limit == u64::MAX {
        steps.push(advice("range scan", "costs as much as the table is large; name a partition or a LIMIT"));
    } else if filters && forecast.indexes.is_empty() {
        let text = "a clustering column or a table of its own would bound the rows instead of testing them";
        steps.push(advice("filter", text));
    }
    if let Partitions::Keys(keys) = &command.partitions {
        if keys.len() >= KEYS_MANY {
            let text = format!(
                "{} partitions wait for each other; separate statements run side by side",
                keys.len()
            );
            steps.push(advice("partition", text));
        }
        if probe.sstables > SOURCES_MANY * probe.partitions.max(1) {
            steps.push(advice("sstable", "rows lie in many SSTables; a compaction brings them together"));
        }
    }
    if forecast.is_sorted {
        steps.push(advice("sort", "cannot be paged; ask partition by partition and merge in the client"));
    }
    if command.reversed
        && let Some(first) = command.table.clustering.first()
    {
        let word = if first.reversed { "ASC" } else { "DESC" };
        let name = quote_identifier(&first.name);
        let text = format!("the usual way round? CLUSTERING ORDER BY ({name} {word}) reads it forwards");
        steps.push(advice("order", text));
    }
    if ran {
        steps.extend(advise_ran(probe));
    }
    steps
}

fn advise_ran(probe: &Probe) -> Vec<Step> {
    let mut steps = Vec::new();
    if probe.tombstones >= TOMBSTONES_MANY && probe.tombstones > probe.rows {
        let text =
            "most of what was passed is deleted; begin the slice behind it, or let compaction purge it";
        steps.push(advice("tombstones", text));
    }
    let touched = &probe.touched;
    if touched.blocks_read > 0 && touched.blocks_cached == 0 {
        steps.push(advice(
            "disk",
            "blocks came from files; read again, they come from the cache if it has room",
        ));
    }
    steps
}

/// Advice about a write.
pub(crate) fn advise_write(written: &Written) -> Vec<Step> {
    let mut steps = Vec::new();
    if written.range_deletions > 0 {
        let text = "a range tombstone: reads of the range pass it until compaction has purged what it hides";
        steps.push(advice("delete", text));
    }
    if written.nulls > 0 {
        let text = format!(
            "{} a tombstone, which reads pass; leave a column unset instead of null",
            if written.nulls == 1 { "a null writes" } else { "each null writes" }
        );
        steps.push(advice("null", text));
    }
    if written.partitions >= KEYS_MANY as u64 {
        let text =
            format!("{} in one record: atomic, and no faster", counted(written.partitions, "partition"));
        steps.push(advice("batch", text));
    }
    steps
}
