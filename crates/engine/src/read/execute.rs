//! Runs a read: its partitions in order, until there is nothing more, the limit is reached or the page is full.

use super::command::{KeyRange, PartitionKey, Partitions, ReadCommand, filter_after};
use super::partition::{PartitionEnd, Progress};
use super::probe::Probe;
use super::range::RangeSources;
use super::scratch::ReadScratch;
use super::sink::{ReadEnd, RowSink};
use super::source::open;
use crate::error::Result;
use crate::table::View;
use helenus_model::filter::ClusteringFilter;
use helenus_sstable::stopwatch::Stage;
use std::sync::Arc;

/// Runs `command` over `view`.
///
/// `interrupt` is called from time to time; its error (deadline, cancellation) ends the read. After any error,
/// `WouldBlock` included, the caller must discard what the sink has received.
pub fn execute(
    command: &ReadCommand,
    view: &View,
    sink: &mut dyn RowSink,
    (scratch, mut probe): (&mut ReadScratch, Option<&mut Probe>),
    interrupt: &dyn Fn() -> Result<()>,
) -> Result<ReadEnd> {
    let rows_max = command.rows_left();
    let mut progress = Progress {
        command,
        rows_in_page: 0,
        rows_max,
        rows_filtered: 0,
        tombstones: 0,
        left_out: 0,
        tombstone_limit: sink.tombstone_limit(),
        counted_from: (0, 0),
        interrupt,
    };
    if rows_max == 0 {
        return Ok(ReadEnd::Complete);
    }
    let end = match &command.partitions {
        Partitions::Keys(keys) => read_keys(&mut progress, keys, view, sink, (scratch, probe.as_deref_mut())),
        Partitions::Range(range) => {
            read_range(&mut progress, range, view, sink, (scratch, probe.as_deref_mut()))
        }
    };
    (scratch.rows_returned, scratch.tombstones_passed) = (progress.rows_in_page, progress.tombstones);
    if let Some(probe) = probe {
        probe.reads += 1;
        probe.touched.add(&scratch.cx.touched);
        probe.rows += progress.rows_in_page;
        probe.rows_filtered += progress.rows_filtered;
        probe.tombstones += progress.tombstones;
        if let Some(watch) = scratch.cx.stopwatch.take() {
            probe.times.add_all(&watch.stop());
        }
    }
    end
}

fn read_range(
    progress: &mut Progress<'_>,
    range: &KeyRange,
    view: &View,
    sink: &mut dyn RowSink,
    (scratch, mut probe): (&mut ReadScratch, Option<&mut Probe>),
) -> Result<ReadEnd> {
    let mut sources = RangeSources::open(progress.command, view, range, probe.as_deref_mut());
    let end = sources.run(progress, sink, scratch);
    if let Some(probe) = probe {
        probe.partitions += sources.partitions();
    }
    end
}

/// Partitions read by key between two deadline checks.
const KEYS_PER_LOOK: usize = 32;

fn read_keys(
    progress: &mut Progress<'_>,
    keys: &[PartitionKey],
    view: &View,
    sink: &mut dyn RowSink,
    (scratch, mut probe): (&mut ReadScratch, Option<&mut Probe>),
) -> Result<ReadEnd> {
    let command = progress.command;
    let mut resume = command.resume.as_ref();
    for (index, key) in keys.iter().enumerate() {
        // A partition of few rows does not look at the deadline by itself.
        if index % KEYS_PER_LOOK == KEYS_PER_LOOK - 1 {
            (progress.interrupt)()?;
        }
        let (mut resumed, mut left) = (None, None);
        if let Some(at) = resume {
            if at.key != key.bytes {
                continue;
            }
            resume = None;
            let Some(clustering) = &at.clustering else { continue };
            resumed = Some(Arc::new(filter_after(&command.filter, clustering, command.reversed)));
            left = Some(at.rows_left_in_partition);
        }
        if let Some(probe) = probe.as_deref_mut() {
            probe.partitions += 1;
        }
        let filter = resumed.as_ref().unwrap_or(&command.filter);
        open(command, filter, view, key, (scratch, probe.as_deref_mut()))?;
        if scratch.found.sources.is_empty() {
            continue;
        }
        let before_merge = scratch.cx.enter(Stage::Merge);
        let end = progress.run(&key.bytes, left, sink, scratch)?;
        scratch.cx.leave(before_merge);
        scratch.close_sources();
        match end {
            PartitionEnd::Finished => {}
            PartitionEnd::ReadComplete => return Ok(ReadEnd::Complete),
            PartitionEnd::Page(at) => return Ok(ReadEnd::Page(at)),
        }
    }
    Ok(ReadEnd::Complete)
}

/// The rest of the command's filter for the partition in which the last page ended, and the rest of that partition's
/// limit.
pub(super) fn resumed_filter(command: &ReadCommand) -> Option<(Arc<ClusteringFilter>, u64)> {
    let resume = command.resume.as_ref()?;
    let clustering = resume.clustering.as_ref()?;
    let filter = filter_after(&command.filter, clustering, command.reversed);
    Some((Arc::new(filter), resume.rows_left_in_partition))
}
