//! Reads one partition: its deletion, its static row, and its rows and markers by slices or names, in both directions.
//!
//! An error, `WouldBlock` included, leaves a reader of no further use: it is dropped and the read begun again.

use super::backward::{Backward, BackwardStep, IndexBlock};
use super::cursor::{Cursor, Found, RELEASED_BYTES_MAX, Rows};
use super::forward::Forward;
use super::layout::RowLayout;
use super::slice::{Range, Step};
use crate::block::ReadContext;
use crate::error::{Error, Result};
use crate::index_bti::KnownBlocks;
use crate::stopwatch::Stage;
use crate::table::{Blocks, BlocksMemory, PartitionPosition, SsTable};
use helenus_model::deletion::DeletionTime;
use helenus_model::filter::{AFTER_ALL, BEFORE_ALL, ClusteringFilter, Slice};
use helenus_model::partitions::PartitionKey;
use helenus_model::range_tombstone::MarkerBuf;
use helenus_model::row::{RowBuf, RowView};
use helenus_model::run::RowRun;
use helenus_model::unfiltered::{Source, Unfiltered};
use std::ops::ControlFlow;
use std::sync::Arc;

/// A reader of one partition of one table. Selects everything, forward, until told otherwise.
pub struct PartitionReader {
    table: Arc<SsTable>,
    state: Box<ReaderState>,
}

/// All of a reader but its table: buffers that the next reader uses again.
pub(crate) struct ReaderState {
    cursor: Cursor,
    made: MarkerBuf,
    key: Vec<u8>,
    start: u64,
    deletion: DeletionTime,
    static_row: RowBuf,
    /// Where the first row or marker stands; 0 when the front of the partition was not read.
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

/// What is asked for, and how far it is done.
struct Selection {
    /// `None`: everything.
    filter: Option<Arc<ClusteringFilter>>,
    reversed: bool,
    /// Slices or names begun.
    begun: usize,
    /// Rows after which a slice is likely to be left; `None` if it is read to its end.
    likely_rows: Option<u64>,
}

impl Selection {
    fn of(filter: Option<Arc<ClusteringFilter>>, reversed: bool) -> Selection {
        Selection { filter, reversed, begun: 0, likely_rows: None }
    }
}

/// Which walk is under way.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Walk {
    /// None: the next slice is to be begun.
    Between,
    Forward,
    Backward,
}

/// Readers' memory between reads: belongs to a `ReadContext`, from which readers are opened and to which they are
/// closed.
#[derive(Default)]
pub struct SpareReaders {
    #[expect(
        clippy::vec_box,
        reason = "a state is of more than a kilobyte and moves between here and readers"
    )]
    states: Vec<Box<ReaderState>>,
}

/// Bytes within which a row by its name lies from where the row index leads to it, in files written here: what an entry
/// stands for at most, and a row (`docs/decisions/2026-11-21-row-index-granularity.md`). Partitions without an index are
/// no longer.
const NEAR_BYTES: u64 = (2 << 10) + 256;

/// Bytes of the row behind a reversed slice, whose clustering is looked at.
const ROW_BEHIND_BYTES: u64 = 256;

/// More than most reads have sources.
const SPARE_READERS_MAX: usize = 16;

impl std::fmt::Debug for SpareReaders {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SpareReaders").field("readers", &self.states.len()).finish()
    }
}

impl PartitionReader {
    /// Opens the partition at a position. Without `with_static` the static row is left out.
    pub fn open(
        table: Arc<SsTable>,
        position: &PartitionPosition,
        with_static: bool,
        cx: &mut ReadContext,
    ) -> Result<PartitionReader> {
        let mut reader = PartitionReader::unopened(table, cx);
        reader.reopen((position, None), None, with_static, cx)?;
        Ok(reader)
    }

    /// Finds a partition by its key and opens it; `None` if the table has none of this key. Without `with_static` the
    /// static row is left out and, in a partition with a row index, the partition's front is not read at all. The
    /// filter is not asked.
    pub fn find(
        table: &Arc<SsTable>,
        key: &PartitionKey,
        with_static: bool,
        cx: &mut ReadContext,
    ) -> Result<Option<PartitionReader>> {
        if let Some(data) = table.places().get(&key.hash) {
            let mut reader = PartitionReader::unopened(table.clone(), cx);
            reader.reopen((&PartitionPosition { data, index: None }, None), None, with_static, cx)?;
            if reader.state.key == key.bytes {
                cx.touched.places_remembered += 1;
                return Ok(Some(reader));
            }
            reader.close(cx);
        }
        if let Some((position, slot)) = table.index().remembered(key) {
            let mut reader = PartitionReader::unopened(table.clone(), cx);
            reader.reopen((&position, Some(slot)), Some(&key.bytes), with_static, cx)?;
            if reader.state.key == key.bytes {
                cx.touched.places_remembered += 1;
                return Ok(Some(reader));
            }
            reader.close(cx);
            return Ok(None);
        }
        let place = (&key.hash, &key.decorated[..]);
        let Some(position) = watched(cx, |cx| table.candidate(&key.bytes, place, cx))? else {
            return Ok(None);
        };
        let mut reader = PartitionReader::unopened(table.clone(), cx);
        let known = position.index.is_some().then_some(&key.bytes[..]);
        reader.reopen((&position, None), known, with_static, cx)?;
        if reader.state.key == key.bytes {
            match &position.index {
                None => table.places().put(&key.hash, position.data),
                Some(entry) => watched(cx, |cx| {
                    table.index().see(key, entry, cx);
                    Ok(())
                })?,
            }
            return Ok(Some(reader));
        }
        reader.close(cx);
        Ok(None)
    }

    /// A reader that stands nowhere yet.
    pub(super) fn unopened(table: Arc<SsTable>, cx: &mut ReadContext) -> PartitionReader {
        let state = cx.spare.states.pop().unwrap_or_else(|| Box::new(ReaderState::new()));
        PartitionReader { table, state }
    }

    /// Gives the reader's memory back for the next one.
    pub fn close(self, cx: &mut ReadContext) {
        let mut state = self.state;
        if cx.spare.states.len() < SPARE_READERS_MAX {
            state.release();
            cx.spare.states.push(state);
        }
    }

    /// Moves to another partition, keeping buffers and selection. The front of a partition with a row index is read
    /// only for the static row, or when its key is not `known`.
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
            state.index = Some(Blocks::Known(KnownBlocks::new(slot)));
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

    /// Deletion of the partition whole.
    pub fn deletion(&self) -> DeletionTime {
        self.state.deletion
    }

    /// The static row, if it was asked for and holds anything.
    pub fn static_row(&self) -> Option<RowView<'_>> {
        Some(self.state.static_row.view()).filter(|row| !row.is_empty())
    }

    /// Selects rows, from the start again. Reversed, slices and names are still given ascending and are yielded from
    /// the last to the first.
    pub fn select(&mut self, filter: Arc<ClusteringFilter>, reversed: bool) {
        self.state.selection = Selection::of(Some(filter), reversed);
        self.state.rewind();
    }

    /// Says after how many rows of a selected slice the reader is likely to be left, so that no more is decompressed for it
    /// than they are likely to take. Rows behind that are read as well.
    pub fn expect_rows(&mut self, rows: u64) {
        self.state.selection.likely_rows = Some(rows);
    }

    /// Selects one slice.
    pub fn seek_slice(&mut self, slice: &Slice, reversed: bool) {
        self.select(Arc::new(ClusteringFilter::Slices(vec![slice.clone()])), reversed);
    }

    /// Whether rows need their ordered keys (they have them until told otherwise). Without, `RowBuf::key` of a row may
    /// be empty: for reads of one source, where nothing is compared. Markers always have theirs.
    pub fn set_keys(&mut self, with_keys: bool) {
        self.state.range.with_keys = with_keys;
    }

    /// Whether a forward walk shows rows that hold nothing but cells of dropped columns, empty as they are (it does not until
    /// told): for who checks the file, not the table.
    pub(crate) fn set_hidden(&mut self, with_hidden: bool) {
        self.state.range.with_hidden = with_hidden;
    }

    /// Moves on row by row, as `advance` does, as long as the rows are plain, and gives each to `each`, which may break off
    /// behind it. What stops the run otherwise is for `advance`. `each` gets the parts of a row's view apart, in registers: a
    /// view is stored for it and read again too soon, which costs as much as decoding the row.
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

    /// Moves on over up to `most` rows at once, as long as they hold nothing but values and lie in one block; `None` where no
    /// such row comes next. What stops the run is for `plain_rows` and `advance`, and `current` is nothing until then.
    pub fn run(&mut self, most: usize, cx: &mut ReadContext) -> Result<Option<RowRun<'_>>> {
        let state = &mut *self.state;
        let layout = self.table.layout();
        let at = (&mut state.cursor, Rows { data: self.table.data(), layout }, &state.range);
        let is_there = match state.walk {
            Walk::Forward => state.forward.run(at, most, cx)?,
            Walk::Backward => state.backward.run(at, most, cx)?,
            Walk::Between => false,
        };
        Ok(is_there.then(|| state.cursor.row_run(layout)))
    }

    /// Where the walk stands if it is forward and has been begun.
    pub(super) fn forward_position(&self) -> Option<u64> {
        match self.state.walk {
            Walk::Forward => Some(self.state.forward.position()),
            _ if self.state.rows_start > 0 => Some(self.state.rows_start),
            _ => None,
        }
    }

    /// A place near the end of the partition, by the row index: where the end-of-partition byte stands, and `true`, or
    /// where an element does. Without an index, where the rows start.
    pub(super) fn near_end(&mut self, cx: &mut ReadContext) -> Result<(u64, bool)> {
        let Some(index) = &mut self.state.index else { return Ok((self.state.rows_start, false)) };
        match index.near_end((self.table.index(), self.table.layout()), cx)? {
            Some((offset, is_end)) => Ok((self.state.start + offset, is_end)),
            None => Err(self.table.index().corrupt("a row index without a block")),
        }
    }

    /// Kind and end of the element at a position.
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
            range: Range { with_keys: true, ..Range::default() },
            walk: Walk::Between,
            forward: Forward::at(0, DeletionTime::LIVE),
            backward: Backward::new(),
            current: Step::Row,
        }
    }

    /// Lets go of everything that belongs to a table, and of more memory than the next reader is likely to need.
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
        self.cursor.foresee(self.start..end);
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

    /// Takes the next slice or name into `range`; `false` after the last.
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

    /// Says how far the slice in `range` is foreseen to go forward from where the row index leads.
    fn foresee(&mut self, table: &SsTable, from: u64) {
        if self.index.is_none() {
            return;
        }
        let likely_bytes = self.likely_bytes(table);
        let end = likely_bytes.map_or(0, |bytes| from.saturating_add(bytes).saturating_add(NEAR_BYTES));
        self.cursor.foresee(from..end);
    }

    /// Bytes that the rows of the slice in `range` are likely to take, without what lies before them; `None` if nothing says how
    /// many they are.
    fn likely_bytes(&self, table: &SsTable) -> Option<u64> {
        match self.selection.likely_rows {
            _ if self.range.is_name => Some(0),
            Some(rows) => mean_row_bytes(table).map(|mean| rows.saturating_mul(mean)),
            None => None,
        }
    }

    /// Begins the slice in `range`; `Some` if it begins with a made marker.
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
            // The first block begins with the first row.
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
        self.foresee(table, self.forward.position());
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
                let end = self.start + block.end + ROW_BEHIND_BYTES;
                let block = absolute(self.start, &block);
                let before = self.likely_bytes(table).unwrap_or(u64::MAX);
                self.cursor.foresee(block.start.saturating_sub(before)..end);
                block
            }
            None => IndexBlock { start: self.rows_start, open: DeletionTime::LIVE },
        };
        let rows = Rows { data: table.data(), layout: table.layout() };
        self.walk = Walk::Backward;
        self.backward.begin((&mut self.cursor, &mut self.made), rows, (&self.range, block), cx)
    }

    /// The next element of the slice under way.
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

/// Runs a step of the index, which counts as such where time is measured.
#[inline]
fn watched<T>(cx: &mut ReadContext, step: impl FnOnce(&mut ReadContext) -> Result<T>) -> Result<T> {
    let before = cx.enter(Stage::Index);
    let done = step(cx);
    cx.leave(before);
    done
}

/// Bytes of a row of the table in the mean, rounded up; `None` where it counts none.
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
    fn park(&mut self) -> usize {
        // Backwards, other rows may lie in the bytes in hand.
        let is_alone = self.state.walk == Walk::Forward && self.state.current == Step::Row;
        if is_alone { self.state.cursor.park() } else { 0 }
    }

    fn unpark(&mut self, expected: usize, cx: &mut ReadContext) -> Result<()> {
        let rows = Rows { data: self.table.data(), layout: self.table.layout() };
        self.state.cursor.unpark(rows, expected, cx)
    }

    #[inline]
    fn current(&self) -> Unfiltered<'_> {
        let state = &*self.state;
        match state.current {
            Step::Row => Unfiltered::Row(state.cursor.row_view()),
            Step::Marker => Unfiltered::Marker(state.cursor.marker_view()),
            Step::Made => Unfiltered::Marker(state.made.view()),
        }
    }
}
