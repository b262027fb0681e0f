//! The counts of a run: one line for each counter, with the time of a stage at the stage's first line.

use super::step::{Step, bytes_text, counted};
use helenus_engine::read::{Probe, SkipReason, Stage};

/// The results of a run that its probe does not hold.
pub(crate) struct RunStats {
    /// From binding the values to the last row, or to the acknowledgement of a write, nanoseconds.
    pub(crate) total_ns: u64,
    /// The wait until the log was as safe as its mode requires, nanoseconds.
    pub(crate) acknowledge_ns: Option<u64>,
    /// Rows of the answer.
    pub(crate) rows: u64,
    /// Bytes of their values.
    pub(crate) bytes: u64,
}

/// The lines of a run.
pub(crate) fn count_steps(probe: &Probe, ran: &RunStats) -> Vec<Step> {
    let us = |stage| probe.times.us(stage);
    let mut steps =
        vec![Step::new("plan", "statement", "values bound, bounds made").count(1).time(us(Stage::Plan))];
    if probe.reads > 0 {
        steps.extend(reading(probe));
        let answer = format!("{} in {}", bytes_text(ran.bytes), counted(probe.reads, "page"));
        steps.push(Step::new("answer", "rows", answer).count(ran.rows).time(us(Stage::Sink)));
    }
    if let Some(acknowledge_ns) = ran.acknowledge_ns {
        let written = Step::new("write", "partitions", "one log record, then the memtables");
        steps.push(written.count(probe.partitions_written).time(us(Stage::Write)));
        steps.push(Step::new("write", "bytes", "keys and changes").count(probe.bytes_written));
        let waited = Step::new("acknowledge", "log", "until the write is as safe as the sync mode says");
        steps.push(waited.time((acknowledge_ns + 500) / 1000));
    }
    let whole =
        if probe.reads > 0 { "from its values to the last row" } else { "from its values to its answer" };
    steps.push(Step::new("total", "statement", whole).count(1).time((ran.total_ns + 500) / 1000));
    steps
}

fn reading(probe: &Probe) -> Vec<Step> {
    let touched = &probe.touched;
    let us = |stage| probe.times.us(stage);
    let mut steps = Vec::new();
    if probe.index_reads > 0 {
        let detail = format!(
            "read from the index and {} of its SSTables; {} stale ones taken out",
            probe.index_sstables, probe.index_stale
        );
        steps.push(Step::new("index", "entries", detail).count(probe.index_entries));
    }
    let considered = probe.sstables + probe.sstables_skipped;
    let sources = format!("{} asked, {} skipped{}", probe.sstables, probe.sstables_skipped, reasons(probe));
    steps.push(Step::new("sources", "sstables", sources).count(considered).time(us(Stage::Sources)));
    // An SSTable may have been searched and found not to contain the partition.
    if probe.sstables > 0 || touched.index_nodes > 0 {
        steps.extend(files(probe));
    }
    let dead = "dead rows and range tombstones, after merging";
    steps.push(Step::new("merge", "passed", dead).count(probe.tombstones).time(us(Stage::Merge)));
    if probe.sstables > 0 {
        steps.push(Step::new("merge", "rows", "decoded from SSTables").count(touched.rows_decoded));
        steps.push(Step::new("merge", "cells", "decoded from SSTables").count(touched.cells_decoded));
        steps.push(Step::new("merge", "tombstones", "in what was decoded").count(touched.tombstones));
    }
    if probe.rows_filtered > 0 {
        steps.push(Step::new("filter", "dropped", "rows read for nothing").count(probe.rows_filtered));
    }
    steps
}

fn files(probe: &Probe) -> Vec<Step> {
    let touched = &probe.touched;
    let us = |stage| probe.times.us(stage);
    let pages = format!("{} from the cache, {} read", touched.index_pages_cached, touched.index_pages_read);
    let pages_all = touched.index_pages_cached + touched.index_pages_read;
    let out = format!("{} came out; the time includes checksums", bytes_text(touched.bytes_decompressed));
    let key_cache = Step::new("index", "key cache", "partitions whose position was in the key cache")
        .count(touched.keys_cached);
    let mut steps = vec![
        Step::new("index", "nodes", "visited in Partitions.db and Rows.db")
            .count(touched.index_nodes)
            .time(us(Stage::Index)),
        Step::new("index", "pages", pages).count(pages_all),
        Step::new("cache", "blocks", "of Data.db, found in memory").count(touched.blocks_cached),
        Step::new("disk", "blocks", "of Data.db, read from files")
            .count(touched.blocks_read)
            .time(us(Stage::Disk)),
        Step::new("disk", "bytes", "of data and index").count(touched.bytes_read),
        Step::new("decompress", "blocks", out).count(touched.blocks_decompressed).time(us(Stage::Decompress)),
    ];
    if touched.index_blocks_cached > 0 {
        let blocks = Step::new("index", "blocks", "of wide partitions, found in memory without a walk");
        steps.insert(0, blocks.count(touched.index_blocks_cached));
    }
    if touched.keys_cached > 0 {
        steps.insert(0, key_cache);
    }
    steps
}

fn reasons(probe: &Probe) -> String {
    let reasons: Vec<String> = SkipReason::ALL
        .iter()
        .map(|reason| (probe.skipped(*reason), reason.describe()))
        .filter(|(times, _)| *times > 0)
        .map(|(times, words)| format!("{times} {words}"))
        .collect();
    if reasons.is_empty() { String::new() } else { format!(": {}", reasons.join(", ")) }
}
