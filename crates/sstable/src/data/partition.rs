//! Reads one partition: its deletion, its static row, and its rows and markers by slices or names, in both directions.
//!
//! An error, `WouldBlock` included, leaves a reader of no further use: it is dropped and the read begun again.

use super::backward::{Backward, BackwardStep, IndexBlock};
use super::cursor::{Cursor, Found, Rows};
use super::forward::Forward;
use super::slice::{Range, Step};
use crate::block::{BlockFile, ReadContext};
use crate::error::{Error, Result};
use crate::index_bti::{RowIndexEntry, RowIndexReader};
use crate::stopwatch::Stage;
use crate::table::{PartitionPosition, SsTable};
use helenus_model::deletion::DeletionTime;
use helenus_model::filter::{AFTER_ALL, ClusteringFilter, Slice};
use helenus_model::range_tombstone::MarkerBuf;
use helenus_model::row::{RowBuf, RowView};
use helenus_model::unfiltered::{Source, Unfiltered};
use std::sync::Arc;

/// A reader of one partition of one table. Selects everything, forward, until told otherwise.
pub struct PartitionReader {
    table: Arc<SsTable>,
    cursor: Cursor,
    made: MarkerBuf,
    key: Vec<u8>,
    start: u64,
    deletion: DeletionTime,
    static_row: RowBuf,
    /// Where the first row or marker stands; 0 when the front of the partition was not read.
    rows_start: u64,
    index: Option<RowIndexReader<Arc<BlockFile>>>,
    selection: Selection,
    range: Range,
    walk: Walk,
    current: Step,
}

/// What is asked for, and how far it is done.
struct Selection {
    filter: Arc<ClusteringFilter>,
    reversed: bool,
    /// Slices or names begun.
    begun: usize,
}

enum Walk {
    /// The next slice is to be begun.
    Between,
    Forward(Forward),
    Backward(Backward),
}

impl PartitionReader {
    /// Opens the partition at a position. Without `with_static` the static row is left out and, in a partition with a
    /// row index, the partition's front is not read at all.
    pub fn open(
        table: Arc<SsTable>,
        position: &PartitionPosition,
        with_static: bool,
        cx: &mut ReadContext,
    ) -> Result<PartitionReader> {
        let mut reader = PartitionReader::unopened(table);
        reader.reopen(position, with_static, cx)?;
        Ok(reader)
    }

    /// A reader that stands nowhere yet.
    pub(super) fn unopened(table: Arc<SsTable>) -> PartitionReader {
        let all = ClusteringFilter::Slices(vec![Slice::all()]);
        PartitionReader {
            table,
            cursor: Cursor::default(),
            made: MarkerBuf::default(),
            key: Vec::new(),
            start: 0,
            deletion: DeletionTime::LIVE,
            static_row: RowBuf::default(),
            rows_start: 0,
            index: None,
            selection: Selection { filter: Arc::new(all), reversed: false, begun: 0 },
            range: Range::default(),
            walk: Walk::Between,
            current: Step::Row,
        }
    }

    /// Moves to another partition, keeping buffers and selection.
    pub(super) fn reopen(
        &mut self,
        position: &PartitionPosition,
        with_static: bool,
        cx: &mut ReadContext,
    ) -> Result<()> {
        self.start = position.data;
        self.rows_start = 0;
        self.static_row.clear();
        self.index = match &position.index {
            Some(entry) => {
                let file = self.table.row_index_file().clone();
                Some(watched(cx, |cx| RowIndexReader::new(file, entry, cx))?)
            }
            None => None,
        };
        self.rewind();
        match &position.index {
            Some(entry) if !with_static || self.table.layout().statics.is_empty() => {
                self.take_entry(entry);
                Ok(())
            }
            _ => self.read_front(with_static, cx),
        }
    }

    fn take_entry(&mut self, entry: &RowIndexEntry) {
        self.key.clear();
        self.key.extend_from_slice(&entry.key);
        self.deletion = entry.deletion;
    }

    fn read_front(&mut self, with_static: bool, cx: &mut ReadContext) -> Result<()> {
        let rows = Rows { data: self.table.data(), layout: self.table.layout() };
        let front = self.cursor.partition_front(rows, self.start, &mut self.key, cx)?;
        self.deletion = front.deletion;
        self.rows_start = front.next;
        if !rows.layout.statics.is_empty() {
            let into = with_static.then_some(&mut self.static_row);
            self.rows_start = self.cursor.static_row(rows, front.next, into, cx)?;
        }
        Ok(())
    }

    /// The serialised partition key.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// Deletion of the partition whole.
    pub fn deletion(&self) -> DeletionTime {
        self.deletion
    }

    /// The static row, if it was asked for and holds anything.
    pub fn static_row(&self) -> Option<RowView<'_>> {
        Some(self.static_row.view()).filter(|row| !row.is_empty())
    }

    /// Selects rows, from the start again. Reversed, slices and names are still given ascending and are yielded from
    /// the last to the first.
    pub fn select(&mut self, filter: Arc<ClusteringFilter>, reversed: bool) {
        self.selection = Selection { filter, reversed, begun: 0 };
        self.rewind();
    }

    /// Selects one slice.
    pub fn seek_slice(&mut self, slice: &Slice, reversed: bool) {
        self.select(Arc::new(ClusteringFilter::Slices(vec![slice.clone()])), reversed);
    }

    fn rewind(&mut self) {
        self.selection.begun = 0;
        self.walk = Walk::Between;
    }

    /// Where the walk stands if it is forward and has been begun.
    pub(super) fn forward_position(&self) -> Option<u64> {
        match &self.walk {
            Walk::Forward(forward) => Some(forward.position()),
            _ if self.rows_start > 0 => Some(self.rows_start),
            _ => None,
        }
    }

    /// Where the end-of-partition byte stands, by the row index, or where the rows start.
    pub(super) fn end_position(&mut self, cx: &mut ReadContext) -> Result<u64> {
        match &mut self.index {
            Some(index) => match index.floor_reversed(AFTER_ALL, cx)? {
                Some(block) => Ok(self.start + block.end),
                None => Err(self.table.row_index_file().corrupt(0, "a row index without a block")),
            },
            None => Ok(self.rows_start),
        }
    }

    /// Kind and end of the element at a position.
    pub(super) fn extent(&mut self, rows: Rows<'_>, position: u64, cx: &mut ReadContext) -> Result<Found> {
        self.cursor.extent(rows, position, cx)
    }

    /// Takes the next slice or name into `range`; `false` after the last.
    fn next_range(&mut self) -> bool {
        let layout = self.table.layout();
        let Selection { filter, reversed, begun } = &mut self.selection;
        let count = match &**filter {
            ClusteringFilter::Names(names) => names.len(),
            ClusteringFilter::Slices(slices) => slices.len(),
        };
        if *begun >= count {
            return false;
        }
        let index = if *reversed { count - 1 - *begun } else { *begun };
        *begun += 1;
        match &**filter {
            ClusteringFilter::Names(names) => names.get(index).map(|name| self.range.set_name(name, layout)),
            ClusteringFilter::Slices(slices) => slices.get(index).map(|slice| self.range.set(slice, layout)),
        }
        .is_some()
    }

    /// Begins the slice in `range`; `Some` if it begins with a made marker.
    fn begin(&mut self, cx: &mut ReadContext) -> Result<Option<Step>> {
        if self.selection.reversed {
            return self.begin_backward(cx);
        }
        let mut forward = match std::mem::replace(&mut self.walk, Walk::Between) {
            Walk::Forward(forward) => forward,
            _ => Forward::at(self.rows_start, DeletionTime::LIVE),
        };
        let known = forward.position() > 0;
        let block = match &mut self.index {
            // The first block begins with the first row.
            Some(_) if known && self.range.start.is_empty() => None,
            Some(index) => match watched(cx, |cx| index.floor(&self.range.start, cx))? {
                Some(block) => Some((self.start + block.offset, block.open.unwrap_or(DeletionTime::LIVE))),
                // The slice lies after every row.
                None => return Ok(None),
            },
            None => None,
        };
        forward.begin(block);
        self.walk = Walk::Forward(forward);
        Ok(None)
    }

    fn begin_backward(&mut self, cx: &mut ReadContext) -> Result<Option<Step>> {
        let block = match &mut self.index {
            Some(index) => watched(cx, |cx| index.floor_reversed(&self.range.end, cx))?
                .map(|block| absolute(self.start, &block)),
            None => Some(IndexBlock { start: self.rows_start, open: DeletionTime::LIVE }),
        };
        let Some(block) = block else {
            self.walk = Walk::Between;
            return Ok(None);
        };
        let rows = Rows { data: self.table.data(), layout: self.table.layout() };
        if !matches!(self.walk, Walk::Backward(_)) {
            self.walk = Walk::Backward(Backward::new());
        }
        match &mut self.walk {
            Walk::Backward(backward) => {
                backward.begin((&mut self.cursor, &mut self.made), rows, (&self.range, block), cx)
            }
            _ => Ok(None),
        }
    }

    /// The next element of the slice under way.
    #[inline]
    fn step(&mut self, cx: &mut ReadContext) -> Result<Option<Step>> {
        let rows = Rows { data: self.table.data(), layout: self.table.layout() };
        let buffers = (&mut self.cursor, &mut self.made);
        match &mut self.walk {
            Walk::Between => Ok(None),
            Walk::Forward(forward) => forward.step(buffers, rows, &self.range, cx),
            Walk::Backward(_) => self.step_backward(cx),
        }
    }

    fn step_backward(&mut self, cx: &mut ReadContext) -> Result<Option<Step>> {
        let rows = Rows { data: self.table.data(), layout: self.table.layout() };
        let Walk::Backward(backward) = &mut self.walk else { return Ok(None) };
        loop {
            let buffers = (&mut self.cursor, &mut self.made);
            match backward.step(buffers, rows, &self.range, cx)? {
                BackwardStep::Element(step) => return Ok(Some(step)),
                BackwardStep::Done => return Ok(None),
                BackwardStep::BlockDone => {}
            }
            let before = match &mut self.index {
                Some(index) => watched(cx, |cx| index.previous(cx))?,
                None => None,
            };
            match before {
                Some(block) => {
                    let block = absolute(self.start, &block);
                    backward.enter(&mut self.cursor, rows, (&self.range, block), cx)?;
                }
                None => backward.leave(),
            }
        }
    }
}

/// Runs a step of the index, which counts as such where time is measured.
#[inline]
fn watched<T>(cx: &mut ReadContext, step: impl FnOnce(&mut ReadContext) -> Result<T>) -> Result<T> {
    let before = cx.enter(Stage::Index);
    let done = step(cx);
    cx.leave(before);
    done
}

fn absolute(partition: u64, block: &crate::index_bti::IndexBlock) -> IndexBlock {
    IndexBlock { start: partition + block.offset, open: block.open.unwrap_or(DeletionTime::LIVE) }
}

impl Source<ReadContext> for PartitionReader {
    type Error = Error;

    #[inline]
    fn advance(&mut self, cx: &mut ReadContext) -> Result<bool> {
        loop {
            if let Some(step) = self.step(cx)? {
                self.current = step;
                return Ok(true);
            }
            if !self.next_range() {
                return Ok(false);
            }
            if let Some(step) = self.begin(cx)? {
                self.current = step;
                return Ok(true);
            }
        }
    }

    #[inline]
    fn current(&self) -> Unfiltered<'_> {
        match self.current {
            Step::Row => Unfiltered::Row(self.cursor.row_view()),
            Step::Marker => Unfiltered::Marker(self.cursor.marker_view()),
            Step::Made => Unfiltered::Marker(self.made.view()),
        }
    }
}
