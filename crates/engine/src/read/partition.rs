//! Runs one partition of a read: merges its sources and hands what is alive to the sink.

use super::command::{ReadCommand, Resume};
use super::sink::{RowSink, Taken};
use super::source::{AnySource, PartitionSources};
use crate::error::Result;
use helenus_model::cell::Cell;
use helenus_model::merge::Merge;
use helenus_model::row::RowView;
use helenus_model::schema::Table;
use helenus_model::unfiltered::{Source, Unfiltered};
use helenus_sstable::block::ReadContext;
use helenus_sstable::stopwatch::Stage;

/// Dead rows and markers after which a page ends, so that a read over garbage is slow page by page instead of stuck.
pub const PAGE_TOMBSTONES_MAX: u64 = 10_000;

/// How far a read has come, and what stops it.
pub(super) struct Progress<'a> {
    pub(super) command: &'a ReadCommand,
    /// Rows counted in this page.
    pub(super) rows_in_page: u64,
    /// Rows counted of the whole limit, earlier pages included.
    pub(super) rows: u64,
    /// Rows that the sink refused in this page.
    pub(super) rows_filtered: u64,
    /// Dead rows and markers passed in this page.
    pub(super) tombstones: u64,
    /// Asked once in a while: whether to go on.
    pub(super) interrupt: &'a dyn Fn() -> Result<()>,
}

/// How a partition ended.
pub(super) enum PartitionEnd {
    /// All of it was read, or its own limit reached.
    Finished,
    /// The whole limit is reached.
    LimitReached,
    /// The page ends here.
    Page(Resume),
}

/// Rows between two looks at the deadline.
const ROWS_PER_LOOK: u64 = 256;

impl Progress<'_> {
    /// Reads one partition whose sources are open. `before` rows of it were given on earlier pages.
    pub(super) fn run(
        &mut self,
        key: &[u8],
        found: PartitionSources,
        before: u64,
        sink: &mut dyn RowSink,
        cx: &mut ReadContext,
    ) -> Result<(PartitionEnd, Vec<AnySource>)> {
        let PartitionSources { sources, deletion, static_row } = found;
        let now_s = self.command.now_s;
        let has_static = static_row.cells.iter().any(|cell| cell.is_live(now_s));
        let merging = cx.enter(Stage::Sink);
        sink.partition(key, has_static.then(|| static_row.view()))?;
        cx.leave(merging);
        let mut merge = Merge::new(self.command.table.clone(), self.command.reversed, deletion, sources);
        let mut given = before;
        let mut looked = 0;
        while merge.advance(cx)? {
            looked += 1;
            if looked % ROWS_PER_LOOK == 0 {
                (self.interrupt)()?;
            }
            let alive = match merge.current() {
                Unfiltered::Marker(_) => false,
                Unfiltered::Row(row) if !is_alive(&self.command.table, row, now_s) => false,
                Unfiltered::Row(row) => {
                    let merging = cx.enter(Stage::Sink);
                    if sink.row(row)? == Taken::Counted {
                        given += 1;
                        self.rows += 1;
                        self.rows_in_page += 1;
                    } else {
                        self.rows_filtered += 1;
                    }
                    cx.leave(merging);
                    true
                }
            };
            self.tombstones += u64::from(!alive);
            if self.rows >= self.command.limits.rows {
                return Ok((PartitionEnd::LimitReached, merge.into_sources()));
            }
            if given >= self.command.limits.per_partition {
                break;
            }
            if self.page_ends(sink) {
                let position = merge.current().key().to_vec();
                let end = self.resume(key, Some(position), given);
                return Ok((PartitionEnd::Page(end), merge.into_sources()));
            }
        }
        if sink.partition_end(given)? == Taken::Counted {
            self.rows += 1;
            self.rows_in_page += 1;
        }
        let sources = merge.into_sources();
        if self.rows >= self.command.limits.rows {
            return Ok((PartitionEnd::LimitReached, sources));
        }
        if self.page_ends(sink) {
            return Ok((PartitionEnd::Page(self.resume(key, None, 0)), sources));
        }
        Ok((PartitionEnd::Finished, sources))
    }

    fn page_ends(&self, sink: &dyn RowSink) -> bool {
        // Only a paged read is cut: who asked for everything gets everything, or its deadline.
        let Some(rows) = self.command.page_rows else { return false };
        self.rows_in_page >= rows || self.tombstones >= PAGE_TOMBSTONES_MAX || sink.is_full()
    }

    fn resume(&self, key: &[u8], clustering: Option<Vec<u8>>, rows_in_partition: u64) -> Resume {
        Resume { key: key.to_vec(), clustering, rows: self.rows, rows_in_partition }
    }
}

/// Whether a row shows: by its own marker or by a live cell.
fn is_alive(table: &Table, row: RowView<'_>, now_s: i64) -> bool {
    // A memtable keeps the cells of a column that was dropped after they were written.
    let exists = |cell: &Cell| table.dropped.is_empty() || table.column_by_id(cell.column).is_some();
    row.row.liveness.is_live(now_s) || row.row.cells.iter().any(|cell| cell.is_live(now_s) && exists(cell))
}
