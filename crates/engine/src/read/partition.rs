//! Reads one partition: merges its sources, passes the live rows to the sink, and stops at limits and at the page's
//! end.
//!
//! Rows reach the sink in three ways, the fastest that applies first:
//! 1. Row batches (`batches`): a single SSTable has the rows, no deletion covers them, and they have no expiry.
//! 2. Single rows without a merge (`AnySource::plain_rows`): one source has the rows, and no deletion covers them.
//! 3. The merge (`Merge::advance`): all other rows and all range tombstone markers.
//!
//! `look` checks every condition that ends the read or its page: limits, page size, deadline. It computes the number of
//! rows until it must be called again, so that it does not run for each row. Work for what is not returned (dead rows,
//! markers, rows that deletions hide) is bounded too: a page ends after so many of them, also between two markers
//! (`page_position`).

use super::command::{ReadCommand, Resume, left_of};
use super::page_position::PositionAhead;
use super::scratch::ReadScratch;
use super::sink::{RowOutcome, RowSink, TombstoneLimit};
use super::source::AnySource;
use crate::error::{Error, Result};
use helenus_host::account;
use helenus_model::byte_comparable::clustering_key;
use helenus_model::cell::Cell;
use helenus_model::filter::ClusteringFilter;
use helenus_model::merge::{Merge, MergeStep};
use helenus_model::row::RowView;
use helenus_model::row_batch::RowBatch;
use helenus_model::schema::Table;
use helenus_model::unfiltered::{Source, Unfiltered};
use helenus_sstable::block::ReadContext;
use helenus_sstable::stopwatch::Stage;
use std::ops::ControlFlow;

/// The number of dead rows and range tombstones after which a page ends if there is no tombstone limit. A read over
/// garbage then makes progress page by page instead of running into its deadline.
pub const PAGE_TOMBSTONES_MAX: u64 = 10_000;

/// The number of dead rows, markers and rows hidden by deletions after which any page ends. Twice the tombstones at
/// which a read fails by default (`tombstone_failure_threshold`), which must come first: Cassandra does not end a page
/// before.
pub const PAGE_LEFT_OUT_MAX: u64 = 200_000;

/// Progress of a read, and the limits that stop it.
pub(super) struct Progress<'a> {
    pub(super) command: &'a ReadCommand,
    /// Rows counted in this page.
    pub(super) rows_in_page: u64,
    /// Most rows of this page: the limit minus the rows of earlier pages.
    pub(super) rows_max: u64,
    /// Rows that the sink refused in this page.
    pub(super) rows_filtered: u64,
    /// Dead rows and markers passed in this page.
    pub(super) tombstones: u64,
    /// Rows that deletions hide, and markers without effect, passed in this page.
    pub(super) left_out: u64,
    /// The most dead rows and markers before the read fails.
    pub(super) tombstone_limit: Option<TombstoneLimit>,
    /// Where the count for `tombstone_limit` last restarted: the number of the group of `TombstoneLimit::rows` rows,
    /// and the tombstones passed before it.
    pub(super) counted_from: (u64, u64),
    /// Called from time to time; an error ends the read (deadline, cancellation).
    pub(super) interrupt: &'a dyn Fn() -> Result<()>,
}

/// How a partition ended.
pub(super) enum PartitionEnd {
    /// All of it was read, or its own limit is reached.
    Finished,
    /// The limit of the read is reached, or the sink wants nothing more.
    ReadComplete,
    /// The page ends here.
    Page(Resume),
}

/// Counters of one partition, which `settle` adds to `Progress` from time to time.
#[derive(Default)]
struct PartitionCounters {
    /// Rows of the partition counted in this page.
    given: u64,
    /// Most rows of the partition: its limit minus the rows of earlier pages.
    most: u64,
    /// Whether an earlier page has returned rows of the partition.
    continues: bool,
    /// Rows counted since the last `settle`.
    counted: u64,
    /// Rows that the sink refused since then.
    skipped: u64,
    /// Rows until the next call of `look`.
    left: u64,
    /// Elements since the last deadline check.
    looked: u64,
    /// Rows counted or refused up to the last marker.
    rows_at_marker: u64,
    /// Where the page can end at the next marker.
    ahead: PositionAhead,
    /// Where the page ends, if that is not at the element at which it ends.
    ends_at: Option<Vec<u8>>,
}

/// What the read does after a row.
enum After {
    GoOn,
    /// Nothing more of this partition.
    Leave,
    End(EndsAt),
}

/// Where a read ends within a partition.
#[derive(Clone, Copy)]
enum EndsAt {
    /// The read is complete.
    Complete,
    /// The next page begins after the row, or at `PartitionCounters::ends_at`.
    Page,
}

/// Rows between two deadline checks.
const ROWS_PER_LOOK: u64 = 256;
/// Elements that a merge leaves out between two deadline checks.
const LEFT_OUT_PER_LOOK: u64 = 256;

impl Progress<'_> {
    /// Reads one partition, whose sources are in `scratch.found` before and after. `left` is the rest of the
    /// partition's limit, if an earlier page has begun the partition.
    pub(super) fn run(
        &mut self,
        key: &[u8],
        left: Option<u64>,
        sink: &mut dyn RowSink,
        scratch: &mut ReadScratch,
    ) -> Result<PartitionEnd> {
        scratch.start_merge(&self.command.table, self.command.reversed);
        let end = self.merged(key, left, sink, scratch);
        scratch.end_merge();
        end
    }

    fn merged(
        &mut self,
        key: &[u8],
        left: Option<u64>,
        sink: &mut dyn RowSink,
        scratch: &mut ReadScratch,
    ) -> Result<PartitionEnd> {
        let ReadScratch { cx, found, merge, .. } = scratch;
        let now_s = self.command.now_s;
        let table = &self.command.table;
        let has_static = found.static_row.cells.iter().any(|cell| shows(table, cell, now_s));
        let merging = cx.enter(Stage::Sink);
        sink.partition(key, has_static.then(|| found.static_row.view()))?;
        cx.leave(merging);
        if !found.deletion.is_live() {
            sink.dead(found.deletion.timestamp_us);
        }
        if !has_static && !found.static_row.view().is_empty() {
            sink.dead_static_row(found.static_row.view());
        }
        let most = left.unwrap_or(self.command.limits.per_partition);
        let continues = left.is_some() && self.command.resume.as_ref().is_some_and(|at| at.has_given);
        let mut pace = PartitionCounters { most, continues, ..PartitionCounters::default() };
        self.look(None, &mut pace, sink)?;
        // A file that was opened before a column was dropped still returns the column's values, which must not make a
        // row alive. Rows selected by name come one at a time anyway.
        let is_sliced = matches!(*self.command.filter, ClusteringFilter::Slices(_));
        let in_runs = is_sliced && table.dropped.is_empty();
        if let Some(merge) = merge {
            loop {
                if in_runs {
                    match self.batches(merge, key, &mut pace, sink, cx)? {
                        ControlFlow::Continue(()) => {}
                        ControlFlow::Break(None) => break,
                        ControlFlow::Break(Some(end)) => return Ok(end),
                    }
                }
                // Rows that only one source has and no deletion covers bypass the merge.
                if let Some(source) = merge.only_source() {
                    let mut left = Ok(None);
                    let flow = source.plain_rows(cx, |row, data, cx| {
                        let element = Unfiltered::Row(RowView { row, data });
                        left = match self.offer(element, &mut pace, sink, cx) {
                            Ok(After::GoOn) => return ControlFlow::Continue(()),
                            Ok(After::Leave) => Ok(None),
                            Ok(After::End(end)) => {
                                Ok(Some(self.ended(end, key, || self.position(element), &mut pace)))
                            }
                            Err(error) => Err(error),
                        };
                        ControlFlow::Break(())
                    })?;
                    if flow.is_break() {
                        match left? {
                            None => break,
                            Some(end) => return Ok(end),
                        }
                    }
                }
                let after = match merge.advance_some(LEFT_OUT_PER_LOOK as usize, cx)? {
                    MergeStep::Element => self.offer(merge.current(), &mut pace, sink, cx)?,
                    MergeStep::LeftOut => self.leave_out(merge.current(), &mut pace, sink)?,
                    MergeStep::Ended => break,
                };
                match after {
                    After::GoOn => {}
                    After::Leave => break,
                    After::End(end) => {
                        return Ok(self.ended(end, key, || self.position(merge.current()), &mut pace));
                    }
                }
            }
        }
        self.settle(&mut pace);
        match sink.partition_end(pace.given.max(u64::from(pace.continues)))? {
            RowOutcome::Counted => self.rows_in_page += 1,
            RowOutcome::EndRead => return Ok(PartitionEnd::ReadComplete),
            RowOutcome::Skipped | RowOutcome::EndPartition => {}
        }
        if self.rows_in_page >= self.rows_max {
            return Ok(PartitionEnd::ReadComplete);
        }
        if self.page_ends(sink) {
            return Ok(PartitionEnd::Page(self.resume(key, None, (0, true))));
        }
        Ok(PartitionEnd::Finished)
    }

    /// Passes row batches to the sink, as long as only one source has the rows, no deletion covers them, and the sink
    /// takes batches. Breaks if the read of the partition ends here.
    fn batches(
        &mut self,
        merge: &mut Merge<AnySource>,
        key: &[u8],
        pace: &mut PartitionCounters,
        sink: &mut dyn RowSink,
        cx: &mut ReadContext,
    ) -> Result<ControlFlow<Option<PartitionEnd>>> {
        while let Some(batch_sink) = sink.batches() {
            let Some(source) = merge.only_source() else { break };
            let Some(batch) = source.batch(usize::try_from(pace.left).unwrap_or(usize::MAX), cx)? else {
                break;
            };
            let merging = cx.enter(Stage::Sink);
            let is_counted = batch_sink.batch(&batch)?;
            cx.leave(merging);
            let rows = batch.len() as u64;
            *if is_counted { &mut pace.counted } else { &mut pace.skipped } += rows;
            pace.left -= rows;
            if pace.left > 0 && (self.command.page_rows.is_none() || !sink.is_full()) {
                continue;
            }
            match self.look(None, pace, sink)? {
                After::GoOn => {}
                After::Leave => return Ok(ControlFlow::Break(None)),
                After::End(end) => {
                    let last = || self.position_of_last(&batch);
                    return Ok(ControlFlow::Break(Some(self.ended(end, key, last, pace))));
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Passes an element to the sink if it is alive. Returns what the read does next.
    #[inline(always)]
    fn offer(
        &mut self,
        element: Unfiltered<'_>,
        pace: &mut PartitionCounters,
        sink: &mut dyn RowSink,
        cx: &mut ReadContext,
    ) -> Result<After> {
        let row = match element {
            Unfiltered::Row(row) if is_alive(&self.command.table, row, self.command.now_s) => row,
            _ => {
                self.tombstones += 1;
                match element {
                    Unfiltered::Row(row) => sink.dead_row(row),
                    _ => sink.dead(newest_us(element)),
                }
                let after = self.look(None, pace, sink)?;
                self.check_tombstones()?;
                return Ok(self.end_beside(element, after, pace));
            }
        };
        // Settles the memory that the previous row took in sources, merge and sink.
        account::settle()?;
        let merging = cx.enter(Stage::Sink);
        let taken = sink.row(row)?;
        cx.leave(merging);
        match taken {
            RowOutcome::Counted => pace.counted += 1,
            RowOutcome::Skipped => pace.skipped += 1,
            _ => return self.look(Some(taken), pace, sink),
        }
        pace.left -= 1;
        if pace.left == 0 || (self.command.page_rows.is_some() && sink.is_full()) {
            return self.look(None, pace, sink);
        }
        Ok(After::GoOn)
    }

    /// Counts elements that the merge has left out; `element` is the last of them.
    #[cold]
    fn leave_out(
        &mut self,
        element: Unfiltered<'_>,
        pace: &mut PartitionCounters,
        sink: &dyn RowSink,
    ) -> Result<After> {
        self.left_out += LEFT_OUT_PER_LOOK;
        pace.looked += LEFT_OUT_PER_LOOK;
        let after = self.look(None, pace, sink)?;
        Ok(self.end_beside(element, after, pace))
    }

    /// What the read does after an element that is not part of the answer, where `look` has said `after`. If the page
    /// should end there but cannot, the read goes on.
    fn end_beside(&self, element: Unfiltered<'_>, after: After, pace: &mut PartitionCounters) -> After {
        if !matches!(after, After::End(EndsAt::Page)) {
            return after;
        }
        let Unfiltered::Marker(marker) = element else { return after };
        let rows = self.rows_in_page + self.rows_filtered;
        if std::mem::replace(&mut pace.rows_at_marker, rows) != rows {
            pace.ahead.clear();
        }
        pace.ends_at = pace.ahead.at(marker, &self.command.table, self.command.reversed);
        if pace.ends_at.is_some() { after } else { After::GoOn }
    }

    /// Fails if the read has passed too many tombstones.
    fn check_tombstones(&mut self) -> Result<()> {
        let Some(limit) = self.tombstone_limit else { return Ok(()) };
        let turn = self.rows_in_page / limit.rows.max(1);
        if turn != self.counted_from.0 {
            self.counted_from = (turn, self.tombstones - 1);
        }
        if self.tombstones - self.counted_from.1 > limit.count {
            Err(Error::TooManyTombstones)
        } else {
            Ok(())
        }
    }

    /// Checks every condition that ends a read, and computes the number of rows until the next check.
    #[inline(never)]
    fn look(
        &mut self,
        taken: Option<RowOutcome>,
        pace: &mut PartitionCounters,
        sink: &dyn RowSink,
    ) -> Result<After> {
        self.settle(pace);
        pace.looked += 1;
        if pace.looked >= ROWS_PER_LOOK {
            pace.looked = 0;
            (self.interrupt)()?;
        }
        match taken {
            Some(RowOutcome::EndPartition) => {
                self.rows_filtered += 1;
                return Ok(After::Leave);
            }
            Some(RowOutcome::EndRead) => {
                self.rows_filtered += 1;
                return Ok(After::End(EndsAt::Complete));
            }
            _ => {}
        }
        let page_left = self.command.page_rows.map(|rows| rows.saturating_sub(self.rows_in_page));
        let all_left = self.rows_max.saturating_sub(self.rows_in_page);
        let left = all_left.min(pace.most.saturating_sub(pace.given));
        pace.left = left.min(page_left.unwrap_or(u64::MAX)).min(ROWS_PER_LOOK - pace.looked).max(1);
        Ok(if all_left == 0 {
            After::End(EndsAt::Complete)
        } else if pace.given >= pace.most {
            After::Leave
        } else if self.page_ends(sink) {
            After::End(EndsAt::Page)
        } else {
            After::GoOn
        })
    }

    /// Moves the counters of `pace` to the totals.
    fn settle(&mut self, pace: &mut PartitionCounters) {
        let (counted, skipped) = (std::mem::take(&mut pace.counted), std::mem::take(&mut pace.skipped));
        self.rows_in_page += counted;
        self.rows_filtered += skipped;
        pace.given += counted;
        pace.looked += counted + skipped;
    }

    #[cold]
    fn ended(
        &self,
        ends: EndsAt,
        key: &[u8],
        at: impl FnOnce() -> Vec<u8>,
        pace: &mut PartitionCounters,
    ) -> PartitionEnd {
        match ends {
            EndsAt::Complete => PartitionEnd::ReadComplete,
            EndsAt::Page => {
                let position = pace.ends_at.take().unwrap_or_else(at);
                let has_given = pace.given > 0 || pace.continues;
                let left = (left_of(pace.most, pace.given), has_given);
                PartitionEnd::Page(self.resume(key, Some(position), left))
            }
        }
    }

    /// The byte-comparable position of an element. A row of a single source may come without its key, which is then
    /// encoded again.
    fn position(&self, element: Unfiltered<'_>) -> Vec<u8> {
        let mut position = element.key().to_vec();
        if let Unfiltered::Row(row) = element
            && position.is_empty()
        {
            self.encode(
                (0..self.command.table.clustering.len()).map(|index| row.clustering(index)),
                &mut position,
            );
        }
        position
    }

    /// The byte-comparable position of the last row of a row batch.
    fn position_of_last(&self, batch: &RowBatch<'_>) -> Vec<u8> {
        let mut position = Vec::new();
        let last = batch.rows().next_back().unwrap_or_default();
        self.encode(last.iter().take(batch.clustering).map(|value| Some(batch.bytes(value))), &mut position);
        position
    }

    fn encode<'v>(&self, values: impl Iterator<Item = Option<&'v [u8]>>, position: &mut Vec<u8>) {
        let encoded = clustering_key(values, &self.command.table.clustering, position);
        assert!(encoded.is_ok(), "a page ends at a row whose clustering has no ordered form");
    }

    fn page_ends(&self, sink: &dyn RowSink) -> bool {
        // Only a paged read is cut. A read without pages returns everything or fails at its deadline.
        let Some(rows) = self.command.page_rows else { return false };
        let is_garbage = self.tombstone_limit.is_none() && self.tombstones >= PAGE_TOMBSTONES_MAX
            || self.tombstones + self.left_out >= PAGE_LEFT_OUT_MAX;
        self.rows_in_page >= rows || is_garbage || sink.is_full()
    }

    fn resume(
        &self,
        key: &[u8],
        clustering: Option<Vec<u8>>,
        (rows_left_in_partition, has_given): (u64, bool),
    ) -> Resume {
        let rows_left = left_of(self.rows_max, self.rows_in_page);
        Resume { key: key.to_vec(), clustering, rows_left, rows_left_in_partition, has_given }
    }
}

/// Whether a row is visible: by its row marker or by a live cell.
fn is_alive(table: &Table, row: RowView<'_>, now_s: i64) -> bool {
    row.row.liveness.is_live(now_s) || row.row.cells.iter().any(|cell| shows(table, cell, now_s))
}

/// Whether a cell is alive and its column exists. A memtable keeps cells of a column that was dropped after they were
/// written.
fn shows(table: &Table, cell: &Cell, now_s: i64) -> bool {
    cell.is_live(now_s) && (table.dropped.is_empty() || table.column_by_id(cell.column).is_some())
}

/// The greatest timestamp of a row, or of the deletions that end and begin at a marker.
fn newest_us(element: Unfiltered<'_>) -> i64 {
    match element {
        Unfiltered::Row(row) => row.newest_us(),
        Unfiltered::Marker(marker) => marker.marker.open.max(marker.marker.close).timestamp_us,
    }
}
