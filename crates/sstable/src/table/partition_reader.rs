//! Reads one partition: its deletion, its static row, and its rows and markers by slices or names, in both directions.
//!
//! After an error, `WouldBlock` included, a reader must be dropped and the read begun again.

use super::SsTable;
use super::index::{Blocks, BlocksMemory, PartitionPosition};
use crate::block::ReadContext;
use crate::data::{
    Backward, BackwardStep, Cursor, Forward, Found, IndexBlock, RELEASED_BYTES_MAX, Range, RowLayout, Rows,
    Step, closing,
};
use crate::error::{Error, Result};
use crate::index_bti::CachedBlocks;
use crate::stopwatch::Stage;
use helenus_model::deletion::DeletionTime;
use helenus_model::filter::{AFTER_ALL, BEFORE_ALL, ClusteringFilter, Slice};
use helenus_model::partitions::PartitionKey;
use helenus_model::range_tombstone::MarkerBuf;
use helenus_model::row::{RowBuf, RowView};
use helenus_model::row_batch::RowBatch;
use helenus_model::unfiltered::{Source, Unfiltered};
use std::ops::ControlFlow;
use std::sync::Arc;

/// A reader of one partition of one table. It reads everything, forward, unless `select` is called.
pub struct PartitionReader {
    table: Arc<SsTable>,
    state: Box<ReaderState>,
}

/// All of a reader but its table. The next reader uses its buffers again.
pub(crate) struct ReaderState {
    cursor: Cursor,
    made: MarkerBuf,
    key: Vec<u8>,
    start: u64,
    deletion: DeletionTime,
    static_row: RowBuf,
    /// The position of the first row or marker; 0 if the front of the partition was not read.
    rows_start: u64,
    index: Option<Blocks>,
    blocks_memory: BlocksMemory,
    selection: Selection,
    range: Range,
    walk: Walk,
    forward: Forward,
    backward: Backward,
    current: Step,
}

/// The rows to read, and the progress of the read.
struct Selection {
    /// `None` to read everything.
    filter: Option<Arc<ClusteringFilter>>,
    reversed: bool,
    /// Number of slices or names begun.
    begun: usize,
    /// Number of rows after which the caller is likely to stop reading a slice; `None` if it reads to the end.
    likely_rows: Option<u64>,
}

impl Selection {
    fn of(filter: Option<Arc<ClusteringFilter>>, reversed: bool) -> Selection {
        Selection { filter, reversed, begun: 0, likely_rows: None }
    }
}

/// The direction of the current slice.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Walk {
    /// No slice has been begun, or the last one holds nothing.
    Between,
    Forward,
    Backward,
}

/// Opens readers in the memory of closed ones. A read keeps it from one partition to the next.
#[derive(Default)]
pub struct SpareReaders {
    #[expect(
        clippy::vec_box,
        reason = "a state is of more than a kilobyte and moves between here and readers"
    )]
    states: Vec<Box<ReaderState>>,
}

/// Read extent of a row by its name, in bytes from the start of its index block, in files written here: the largest
/// block and a row (`docs/decisions/2026-11-21-row-index-granularity.md`). A partition without an index is not longer
/// than that.
const NEAR_BYTES: u64 = (2 << 10) + 256;

/// Bytes of the row after a reversed slice, of which the clustering is read.
const ROW_BEHIND_BYTES: u64 = 256;

/// More readers than most reads have.
const SPARE_READERS_MAX: usize = 16;

impl std::fmt::Debug for SpareReaders {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SpareReaders").field("readers", &self.states.len()).finish()
    }
}

impl SpareReaders {
    /// Finds a partition by its key and opens it; `None` if the table has no such partition. Without `with_static` the
    /// static row is not read and, if the partition has a row index, neither is its front. The Bloom filter is not
    /// asked.
    pub fn find(
        &mut self,
        table: &Arc<SsTable>,
        key: &PartitionKey,
        with_static: bool,
        cx: &mut ReadContext,
    ) -> Result<Option<PartitionReader>> {
        if let Some(data) = table.key_cache().get(&key.hash) {
            let mut reader = self.unopened(table);
            reader.reopen((&PartitionPosition { data, index: None }, None), None, with_static, cx)?;
            if reader.state.key == key.bytes {
                cx.touched.keys_cached += 1;
                return Ok(Some(reader));
            }
            self.close(reader);
        }
        if let Some((position, slot)) = table.index().find_cached(key) {
            let mut reader = self.unopened(table);
            reader.reopen((&position, Some(slot)), Some(&key.bytes), with_static, cx)?;
            if reader.state.key == key.bytes {
                cx.touched.keys_cached += 1;
                return Ok(Some(reader));
            }
            self.close(reader);
            return Ok(None);
        }
        let place = (&key.hash, &key.decorated[..]);
        let Some(position) = watched(cx, |cx| table.candidate(&key.bytes, place, cx))? else {
            return Ok(None);
        };
        let mut reader = self.unopened(table);
        let known = position.index.is_some().then_some(&key.bytes[..]);
        reader.reopen((&position, None), known, with_static, cx)?;
        if reader.state.key == key.bytes {
            match &position.index {
                None => table.key_cache().put(&key.hash, position.data),
                Some(entry) => watched(cx, |cx| {
                    table.index().see(key, entry, cx);
                    Ok(())
                })?,
            }
            return Ok(Some(reader));
        }
        self.close(reader);
        Ok(None)
    }

    /// Closes a reader, and keeps its memory for the next one.
    pub fn close(&mut self, reader: PartitionReader) {
        let mut state = reader.state;
        if self.states.len() < SPARE_READERS_MAX {
            state.release();
            self.states.push(state);
        }
    }

    fn unopened(&mut self, table: &Arc<SsTable>) -> PartitionReader {
        let state = self.states.pop().unwrap_or_else(|| Box::new(ReaderState::new()));
        PartitionReader { table: table.clone(), state }
    }
}

impl PartitionReader {
    /// Opens the partition at a position. Without `with_static` the static row is not read.
    pub fn open(
        table: Arc<SsTable>,
        position: &PartitionPosition,
        with_static: bool,
        cx: &mut ReadContext,
    ) -> Result<PartitionReader> {
        let mut reader = PartitionReader::unopened(table);
        reader.reopen((position, None), None, with_static, cx)?;
        Ok(reader)
    }

    /// As [`SpareReaders::find`], in memory of its own.
    pub fn find(
        table: &Arc<SsTable>,
        key: &PartitionKey,
        with_static: bool,
        cx: &mut ReadContext,
    ) -> Result<Option<PartitionReader>> {
        SpareReaders::default().find(table, key, with_static, cx)
    }

    /// A reader without a partition, for `reopen`.
    pub(super) fn unopened(table: Arc<SsTable>) -> PartitionReader {
        PartitionReader { table, state: Box::new(ReaderState::new()) }
    }

    /// Moves to another partition, and keeps buffers and selection. If the partition has a row index, its front is read
    /// only for the static row, or if its key is not `known`.
    pub(super) fn reopen(
        &mut self,
        (position, slot): (&PartitionPosition, Option<usize>),
        known: Option<&[u8]>,
        with_static: bool,
        cx: &mut ReadContext,
    ) -> Result<()> {
        let state = &mut *self.state;
        state.start = position.data;
        state.rows_start = 0;
        state.static_row.clear();
        state.drop_index();
        if let Some(slot) = slot {
            state.index = Some(Blocks::Known(CachedBlocks::new(slot)));
        } else if let Some(entry) = &position.index {
            let memory = &mut state.blocks_memory;
            state.index = Some(watched(cx, |cx| self.table.index().blocks(entry, memory, cx))?);
        }
        state.rewind();
        match (&position.index, known) {
            (Some(entry), Some(key)) if !with_static || self.table.layout().statics.is_empty() => {
                state.key.clear();
                state.key.extend_from_slice(key);
                state.deletion = entry.deletion();
                Ok(())
            }
            _ => state.read_front(&self.table, with_static, cx),
        }
    }

    /// The serialised partition key.
    pub fn key(&self) -> &[u8] {
        &self.state.key
    }

    /// The deletion of the whole partition.
    pub fn deletion(&self) -> DeletionTime {
        self.state.deletion
    }

    /// The static row, if it was requested and is not empty.
    pub fn static_row(&self) -> Option<RowView<'_>> {
        Some(self.state.static_row.view()).filter(|row| !row.is_empty())
    }

    /// Selects the rows to read, and begins again. With `reversed`, slices and names are still given in ascending
    /// order, and are read from the last to the first.
    pub fn select(&mut self, filter: Arc<ClusteringFilter>, reversed: bool) {
        self.state.selection = Selection::of(Some(filter), reversed);
        self.state.rewind();
    }

    /// Sets the number of rows of a slice after which the caller is likely to stop, so that only as many bytes are
    /// decompressed as these rows probably take. Reading further is possible.
    pub fn expect_rows(&mut self, rows: u64) {
        self.state.selection.likely_rows = Some(rows);
    }

    /// Selects one slice.
    pub fn seek_slice(&mut self, slice: &Slice, reversed: bool) {
        self.select(Arc::new(ClusteringFilter::Slices(vec![slice.clone()])), reversed);
    }

    /// Sets whether rows need their ordered keys; the default is true. If not, `RowBuf::key` of a row may be empty.
    /// That suits reads of one source, where nothing is compared. Markers always have keys.
    pub fn set_keys(&mut self, with_keys: bool) {
        self.state.range.with_keys = with_keys;
    }

    /// Sets whether a forward read returns rows that contain only cells of dropped columns, and so are empty; the
    /// default is false. It is for checks of the file itself.
    pub(crate) fn set_hidden(&mut self, with_hidden: bool) {
        self.state.range.with_hidden = with_hidden;
    }

    /// Reads on as `advance` does, as long as the rows are plain, and calls `each` with each row, which may stop after
    /// it. The first row that is not plain is left to `advance`. `each` gets the two parts of a `RowView` separately,
    /// so that they are passed in registers: storing a view and loading it again at once costs as much as decoding the
    /// row.
    ///
    /// # Errors
    /// Those of reading.
    #[inline]
    pub fn plain_rows(
        &mut self,
        cx: &mut ReadContext,
        each: impl FnMut(&RowBuf, &[u8], &mut ReadContext) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        let state = &mut *self.state;
        let rows = Rows { data: self.table.data(), layout: self.table.layout() };
        let at = (&mut state.cursor, rows, &state.range);
        state.current = Step::Row;
        match state.walk {
            Walk::Forward => state.forward.plain_rows(at, cx, each),
            Walk::Backward => state.backward.plain_rows(at, cx, each),
            Walk::Between => Ok(ControlFlow::Continue(())),
        }
    }

    /// Reads a row batch: up to `most` rows that contain only values and lie in one block. `None` if the next row is
    /// not such a row; then `plain_rows` or `advance` must read it. `current` is not valid until then.
    pub fn batch(&mut self, most: usize, cx: &mut ReadContext) -> Result<Option<RowBatch<'_>>> {
        let state = &mut *self.state;
        let layout = self.table.layout();
        let at = (&mut state.cursor, Rows { data: self.table.data(), layout }, &state.range);
        let is_there = match state.walk {
            Walk::Forward => state.forward.batch(at, most, cx)?,
            Walk::Backward => state.backward.batch(at, most, cx)?,
            Walk::Between => false,
        };
        Ok(is_there.then(|| state.cursor.row_batch(layout)))
    }

    /// The position of a forward read that has begun.
    pub(super) fn forward_position(&self) -> Option<u64> {
        match self.state.walk {
            Walk::Forward => Some(self.state.forward.position()),
            _ if self.state.rows_start > 0 => Some(self.state.rows_start),
            _ => None,
        }
    }

    /// A position near the end of the partition, from the row index: that of the end-of-partition byte, and `true`, or
    /// that of a row or marker. Without an index, that of the first row.
    pub(super) fn near_end(&mut self, cx: &mut ReadContext) -> Result<(u64, bool)> {
        let Some(index) = &mut self.state.index else { return Ok((self.state.rows_start, false)) };
        match index.near_end((self.table.index(), self.table.layout()), cx)? {
            Some((offset, is_end)) => Ok((self.state.start + offset, is_end)),
            None => Err(self.table.index().corrupt("a row index without a block")),
        }
    }

    /// The kind and the end of the row or marker at a position.
    pub(super) fn extent(&mut self, rows: Rows<'_>, position: u64, cx: &mut ReadContext) -> Result<Found> {
        self.state.cursor.extent(rows, position, cx)
    }
}

impl ReaderState {
    fn new() -> ReaderState {
        ReaderState {
            cursor: Cursor::default(),
            made: MarkerBuf::default(),
            key: Vec::new(),
            start: 0,
            deletion: DeletionTime::LIVE,
            static_row: RowBuf::default(),
            rows_start: 0,
            index: None,
            blocks_memory: BlocksMemory::default(),
            selection: Selection::of(None, false),
            range: Range::with_keys(),
            walk: Walk::Between,
            forward: Forward::at(0, DeletionTime::LIVE),
            backward: Backward::new(),
            current: Step::Row,
        }
    }

    /// Releases everything that belongs to a table, and memory beyond what the next reader is likely to need.
    fn release(&mut self) {
        self.cursor.release();
        self.drop_index();
        self.selection = Selection::of(None, false);
        self.range.with_keys = true;
        self.range.with_hidden = false;
        self.backward.release();
        if self.static_row.data.capacity() > RELEASED_BYTES_MAX {
            self.static_row = RowBuf::default();
        }
    }

    fn drop_index(&mut self) {
        if let Some(index) = self.index.take() {
            index.into_memory(&mut self.blocks_memory);
        }
    }

    fn read_front(&mut self, table: &SsTable, with_static: bool, cx: &mut ReadContext) -> Result<()> {
        let rows = Rows { data: table.data(), layout: table.layout() };
        let end = if cx.fill_cache { self.start + NEAR_BYTES } else { 0 };
        self.cursor.set_read_extent(end);
        let front = self.cursor.partition_front(rows, self.start, &mut self.key, cx)?;
        self.deletion = front.deletion;
        self.rows_start = front.next;
        if !rows.layout.statics.is_empty() {
            let into = with_static.then_some(&mut self.static_row);
            self.rows_start = self.cursor.static_row(rows, front.next, into, cx)?;
        }
        Ok(())
    }

    fn rewind(&mut self) {
        self.selection.begun = 0;
        self.walk = Walk::Between;
    }

    /// Sets `range` to the next slice or name; `false` after the last.
    fn next_range(&mut self, layout: &RowLayout) -> bool {
        let Selection { filter, reversed, begun, .. } = &mut self.selection;
        let count = match filter.as_deref() {
            None => 1,
            Some(ClusteringFilter::Names(names)) => names.len(),
            Some(ClusteringFilter::Slices(slices)) => slices.len(),
        };
        if *begun >= count {
            return false;
        }
        let index = if *reversed { count - 1 - *begun } else { *begun };
        *begun += 1;
        match filter.as_deref() {
            None => self.range.set((BEFORE_ALL, AFTER_ALL), layout),
            Some(ClusteringFilter::Names(names)) => {
                self.range.set_name(names.get(index).map_or(&[], Vec::as_slice), layout);
            }
            Some(ClusteringFilter::Slices(slices)) => {
                let ends = slices.get(index).map_or((BEFORE_ALL, AFTER_ALL), |s| (&s.start[..], &s.end[..]));
                self.range.set(ends, layout);
            }
        }
        true
    }

    /// Sets the read extent of the slice in `range`, which is read forward from `from`.
    fn set_read_extent(&mut self, table: &SsTable, from: u64) {
        if self.index.is_none() {
            return;
        }
        let likely_bytes = match self.selection.likely_rows {
            _ if self.range.is_name => Some(0),
            Some(rows) => mean_row_bytes(table).map(|mean| rows.saturating_mul(mean)),
            None => None,
        };
        let end = likely_bytes.map_or(0, |bytes| from.saturating_add(bytes).saturating_add(NEAR_BYTES));
        self.cursor.set_read_extent(end);
    }

    /// Begins the slice in `range`; `Some` if it begins with a synthetic marker.
    fn begin(&mut self, table: &SsTable, cx: &mut ReadContext) -> Result<Option<Step>> {
        if self.selection.reversed {
            return self.begin_backward(table, cx);
        }
        let rows = Rows { data: table.data(), layout: table.layout() };
        if self.walk != Walk::Forward {
            self.forward = Forward::at(self.rows_start, DeletionTime::LIVE);
        } else if self.range.is_name && self.forward.begin_here((&mut self.cursor, rows, &self.range), cx)? {
            return Ok(None);
        }
        let known = self.forward.position() > 0;
        let block = match &mut self.index {
            // The first index block begins with the first row, so the index cannot lead further.
            Some(_) if known && self.range.start.is_empty() => None,
            Some(index) => {
                let (offset, open) = watched(cx, |cx| {
                    index.floor_start((table.index(), table.layout()), &self.range.start, cx)
                })?;
                Some((self.start + offset, open.unwrap_or(DeletionTime::LIVE)))
            }
            None => None,
        };
        self.forward.begin(block);
        self.set_read_extent(table, self.forward.position());
        self.walk = Walk::Forward;
        Ok(None)
    }

    fn begin_backward(&mut self, table: &SsTable, cx: &mut ReadContext) -> Result<Option<Step>> {
        self.cursor.set_comes_back(true);
        let block = match &mut self.index {
            Some(index) => {
                let found = watched(cx, |cx| {
                    index.floor_reversed((table.index(), table.layout()), &self.range.end, cx)
                })?;
                let Some(block) = found else {
                    self.walk = Walk::Between;
                    return Ok(None);
                };
                self.cursor.set_read_extent(self.start + block.end + ROW_BEHIND_BYTES);
                absolute(self.start, &block)
            }
            None => IndexBlock { start: self.rows_start, open: DeletionTime::LIVE },
        };
        let rows = Rows { data: table.data(), layout: table.layout() };
        self.walk = Walk::Backward;
        let open = self.backward.begin(&mut self.cursor, rows, &self.range, block, cx)?;
        Ok(open.map(|open| {
            closing(&self.range.end, open, &mut self.made);
            Step::Synthetic
        }))
    }

    /// The next row or marker of the current slice.
    #[inline]
    fn step(&mut self, table: &SsTable, cx: &mut ReadContext) -> Result<Option<Step>> {
        let rows = Rows { data: table.data(), layout: table.layout() };
        match self.walk {
            Walk::Between => Ok(None),
            Walk::Forward => self.forward.step((&mut self.cursor, &mut self.made), rows, &self.range, cx),
            Walk::Backward => self.step_backward(table, cx),
        }
    }

    fn step_backward(&mut self, table: &SsTable, cx: &mut ReadContext) -> Result<Option<Step>> {
        let rows = Rows { data: table.data(), layout: table.layout() };
        loop {
            let buffers = (&mut self.cursor, &mut self.made);
            match self.backward.step(buffers, rows, &self.range, cx)? {
                BackwardStep::Element(step) => return Ok(Some(step)),
                BackwardStep::Done => return Ok(None),
                BackwardStep::BlockDone => {}
            }
            let before = match &mut self.index {
                Some(index) => watched(cx, |cx| index.previous((table.index(), rows.layout), cx))?,
                None => None,
            };
            match before {
                Some(block) => {
                    let block = absolute(self.start, &block);
                    self.backward.enter(&mut self.cursor, rows, (&self.range, block), cx)?;
                }
                None => self.backward.leave(),
            }
        }
    }

    fn advance(&mut self, table: &SsTable, cx: &mut ReadContext) -> Result<bool> {
        loop {
            if let Some(step) = self.step(table, cx)? {
                self.current = step;
                return Ok(true);
            }
            if !self.next_range(table.layout()) {
                return Ok(false);
            }
            if let Some(step) = self.begin(table, cx)? {
                self.current = step;
                return Ok(true);
            }
        }
    }
}

/// Runs `step` as part of `Stage::Index`, if time is measured.
#[inline]
fn watched<T>(cx: &mut ReadContext, step: impl FnOnce(&mut ReadContext) -> Result<T>) -> Result<T> {
    let before = cx.enter(Stage::Index);
    let done = step(cx);
    cx.leave(before);
    done
}

/// The mean size of the table's rows in bytes, rounded up; `None` if its statistics count no rows.
fn mean_row_bytes(table: &SsTable) -> Option<u64> {
    let rows = u64::try_from(table.stats().rows).ok()?;
    Some(table.data().data_length().checked_div(rows)? + 1)
}

fn absolute(partition: u64, block: &crate::index_bti::IndexBlock) -> IndexBlock {
    IndexBlock { start: partition + block.offset, open: block.open.unwrap_or(DeletionTime::LIVE) }
}

impl Source<ReadContext> for PartitionReader {
    type Error = Error;

    #[inline]
    fn advance(&mut self, cx: &mut ReadContext) -> Result<bool> {
        let has_element = self.state.advance(&self.table, cx)?;
        if !has_element {
            self.state.cursor.let_go();
        }
        Ok(has_element)
    }

    #[inline]
    fn release_bytes(&mut self) -> usize {
        // A backward read may need other rows in the current bytes.
        let is_alone = self.state.walk == Walk::Forward && self.state.current == Step::Row;
        if is_alone { self.state.cursor.park() } else { 0 }
    }

    fn reload(&mut self, expected: usize, cx: &mut ReadContext) -> Result<()> {
        let rows = Rows { data: self.table.data(), layout: self.table.layout() };
        self.state.cursor.unpark(rows, expected, cx)
    }

    #[inline]
    fn current(&self) -> Unfiltered<'_> {
        let state = &*self.state;
        match state.current {
            Step::Row => Unfiltered::Row(state.cursor.row_view()),
            Step::Marker => Unfiltered::Marker(state.cursor.marker_view()),
            Step::Synthetic => Unfiltered::Marker(state.made.view()),
        }
    }
}
