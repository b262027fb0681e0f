//! Reads all that a range of partitions holds, dead or alive: for copies in which nothing may come back that was deleted.
//!
//! Called by `Database::scan_unfiltered`. It uses the sources and the merge of a range read, and drops nothing that the
//! merge keeps: expired cells, tombstones, rows without a live cell, range tombstones and partition deletions.

use super::command::{Partitions, ReadCommand};
use super::range::RangeSources;
use super::scratch::ReadScratch;
use crate::error::Result;
use crate::table::View;
use helenus_model::deletion::DeletionTime;
use helenus_model::filter::{ClusteringFilter, Limits, Slice};
use helenus_model::partitions::KeyRange;
use helenus_model::row::RowView;
use helenus_model::schema::Table;
use helenus_model::unfiltered::{Source, Unfiltered};
use std::sync::Arc;

/// Receives all that partitions hold, in the order of the ring and of the clustering. An error ends the read.
pub trait UnfilteredSink {
    /// A partition begins: its serialised key, its deletion, and its static row, which may have dead cells.
    ///
    /// # Errors
    /// Those of the sink.
    fn partition(
        &mut self,
        key: &[u8],
        deletion: DeletionTime,
        static_row: Option<RowView<'_>>,
    ) -> Result<()>;

    /// A row or a range tombstone marker of the current partition. Rows come without their ordered encoding.
    ///
    /// # Errors
    /// Those of the sink.
    fn element(&mut self, element: Unfiltered<'_>) -> Result<()>;

    /// The partition is finished.
    ///
    /// # Errors
    /// Those of the sink.
    fn partition_end(&mut self) -> Result<()>;
}

/// Passes the partitions of a range of a view to a sink.
pub(crate) fn scan_unfiltered(
    table: &Arc<Table>,
    view: &View,
    range: &KeyRange,
    sink: &mut dyn UnfilteredSink,
    scratch: &mut ReadScratch,
) -> Result<()> {
    let command = ReadCommand {
        table: table.clone(),
        partitions: Partitions::Range(range.clone()),
        filter: Arc::new(ClusteringFilter::Slices(vec![Slice::all()])),
        reversed: false,
        statics: true,
        columns: None,
        limits: Limits::NONE,
        now_s: 0,
        resume: None,
        page_rows: None,
    };
    let mut sources = RangeSources::open(&command, view, range, None);
    while sources.next_partition(&command, &mut scratch.cx)? {
        sources.take(&command, scratch)?;
        scratch.start_merge(table, false);
        let passed = partition(sources.key(), sink, scratch);
        scratch.end_merge();
        sources.give_back(&mut scratch.found.sources);
        scratch.close_sources();
        passed?;
    }
    Ok(())
}

fn partition(key: &[u8], sink: &mut dyn UnfilteredSink, scratch: &mut ReadScratch) -> Result<()> {
    let ReadScratch { cx, found, merge, .. } = scratch;
    let static_row = Some(found.static_row.view()).filter(|row| !row.is_empty());
    sink.partition(key, found.deletion, static_row)?;
    if let Some(merge) = merge {
        while merge.advance(cx)? {
            helenus_host::account::settle()?;
            sink.element(merge.current())?;
        }
    }
    sink.partition_end()
}
