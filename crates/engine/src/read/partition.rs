//! Runs one partition of a read: merges its sources and hands what is alive to the sink.

use super::command::{ReadCommand, Resume};
use super::scratch::ReadScratch;
use super::sink::{RowSink, Taken};
use crate::error::Result;
use helenus_model::byte_comparable::clustering_key;
use helenus_model::cell::Cell;
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
    /// Reads one partition whose sources are in `scratch.found`, and leaves them there. `before` rows of it were given
    /// on earlier pages.
    pub(super) fn run(
        &mut self,
        key: &[u8],
        before: u64,
        sink: &mut dyn RowSink,
        scratch: &mut ReadScratch,
    ) -> Result<PartitionEnd> {
        scratch.start_merge(&self.command.table, self.command.reversed);
        let end = self.merged(key, before, sink, scratch);
        scratch.end_merge();
        end
    }

    fn merged(
        &mut self,
        key: &[u8],
        before: u64,
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
        let mut given = before;
        let mut looked = 0;
        if let Some(merge) = merge {
            while merge.advance(cx)? {
                looked += 1;
                if looked % ROWS_PER_LOOK == 0 {
                    (self.interrupt)()?;
                }
                match self.give(merge.current(), sink, cx)? {
                    Taken::Counted => given += 1,
                    Taken::Skipped => {}
                    Taken::EndPartition => break,
                    Taken::EndPage => {
                        let before = self.before(self.position(merge.current()));
                        return Ok(PartitionEnd::Page(self.resume(key, Some(before), given)));
                    }
                }
                if self.rows >= self.command.limits.rows {
                    return Ok(PartitionEnd::LimitReached);
                }
                if given >= self.command.limits.per_partition {
                    break;
                }
                if self.page_ends(sink) {
                    let position = self.position(merge.current());
                    return Ok(PartitionEnd::Page(self.resume(key, Some(position), given)));
                }
            }
        }
        match sink.partition_end(given)? {
            Taken::Counted => {
                self.rows += 1;
                self.rows_in_page += 1;
            }
            Taken::EndPage => {
                let before_all = if self.command.reversed { vec![u8::MAX] } else { Vec::new() };
                return Ok(PartitionEnd::Page(self.resume(key, Some(before_all), given)));
            }
            Taken::Skipped | Taken::EndPartition => {}
        }
        if self.rows >= self.command.limits.rows {
            return Ok(PartitionEnd::LimitReached);
        }
        if self.page_ends(sink) {
            return Ok(PartitionEnd::Page(self.resume(key, None, 0)));
        }
        Ok(PartitionEnd::Finished)
    }

    /// The position before that of a row, in the direction of the read and behind all rows before it: a row's position ends
    /// with a byte of its own, so that nothing lies between it and the same without that byte.
    fn before(&self, mut position: Vec<u8>) -> Vec<u8> {
        if self.command.reversed {
            position.push(0);
        } else {
            position.pop();
        }
        position
    }

    /// Gives an element to the sink if it is alive; what the sink did with it.
    #[inline]
    fn give(
        &mut self,
        element: Unfiltered<'_>,
        sink: &mut dyn RowSink,
        cx: &mut ReadContext,
    ) -> Result<Taken> {
        let row = match element {
            Unfiltered::Row(row) if is_alive(&self.command.table, row, self.command.now_s) => row,
            _ => {
                self.tombstones += 1;
                return Ok(Taken::Skipped);
            }
        };
        let merging = cx.enter(Stage::Sink);
        let taken = sink.row(row)?;
        cx.leave(merging);
        let counted = taken == Taken::Counted;
        self.rows += u64::from(counted);
        self.rows_in_page += u64::from(counted);
        self.rows_filtered += u64::from(!counted);
        Ok(taken)
    }

    /// The ordered position of an element. A row of a single source may come without, and is encoded again.
    fn position(&self, element: Unfiltered<'_>) -> Vec<u8> {
        let mut position = element.key().to_vec();
        if let Unfiltered::Row(row) = element
            && position.is_empty()
        {
            let table = &self.command.table;
            let values = (0..table.clustering.len()).map(|index| row.clustering(index));
            let encoded = clustering_key(values, &table.clustering, &mut position);
            assert!(encoded.is_ok(), "a page ends at a row whose clustering has no ordered form");
        }
        position
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
    row.row.liveness.is_live(now_s) || row.row.cells.iter().any(|cell| shows(table, cell, now_s))
}

/// Whether a cell is alive and of a column that the table has: a memtable keeps the cells of one that was dropped after they
/// were written.
fn shows(table: &Table, cell: &Cell, now_s: i64) -> bool {
    cell.is_live(now_s) && (table.dropped.is_empty() || table.column_by_id(cell.column).is_some())
}
