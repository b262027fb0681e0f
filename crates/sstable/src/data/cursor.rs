//! Decodes the element (row or marker) at a position of Data.db, across block boundaries, and turns faults into errors
//! with a position.

use super::decode::{Head, HeadKind};
use super::input::{Fault, Input};
use super::layout::RowLayout;
use super::plain::{PlainRow, PlainRows};
use super::row_batch::{BatchRow, BatchRows};
use super::skip::BoundValues;
use super::slice::Range;
use super::window::Window;
use crate::block::ReadContext;
use crate::compression::DataBlocks;
use crate::deletion_time::{DeletionTimeBytes, DeletionTimeForm};
use crate::error::{Error, Result};
use helenus_host::account;
use helenus_model::cell::Span;
use helenus_model::deletion::DeletionTime;
use helenus_model::range_tombstone::{MarkerBuf, MarkerView};
use helenus_model::row::{RowBuf, RowView};
use helenus_model::row_batch::{RowBatch, RowBatchBuf};
use std::cmp::Ordering;

/// The number of bytes that are joined first if a head crosses a block boundary: more than most heads have.
const JOIN_BYTES: usize = 512;

/// A longer head is damage: a clustering value has at most 65,535 bytes, and a table a few hundred columns.
const HEAD_BYTES_MAX: usize = 64 << 20;

/// The largest buffer that is kept for the next read.
pub(crate) const RELEASED_BYTES_MAX: usize = 64 << 10;
/// From this number of cells on, the memory for merging a row is charged to the account.
const MANY_CELLS: usize = 4096;

/// The file that a cursor reads.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a> {
    pub(crate) data: &'a DataBlocks,
    pub(crate) layout: &'a RowLayout,
}

/// The element that was decoded last, with the bytes that its spans point into.
#[derive(Default)]
pub(crate) struct Cursor {
    window: Window,
    pub(super) row: RowBuf,
    pub(super) marker: MarkerBuf,
    batch: RowBatchBuf,
}

/// A head, and the position of the next element.
#[derive(Clone, Copy)]
pub(crate) struct Found {
    pub(super) head: Head,
    /// The position of the next element.
    pub(crate) next: u64,
}

/// The result of trying to decode a plain row.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Plain {
    /// The row is before the bound and was decoded.
    Row {
        /// As in `Head`.
        back: u64,
    },
    /// The row is after the bound.
    Behind,
    /// The element is not a plain row, or crosses a block boundary.
    Other,
}

/// The front of a partition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PartitionFront {
    pub(crate) deletion: DeletionTime,
    /// The position of the static row, in files with static columns, or of the first element.
    pub(crate) next: u64,
}

/// Bytes that are prefetched where rows are skipped or read backward: the default size of an index block.
const ASKED_BYTES_MAX: usize = 2048;

/// Where a skip of rows begins, and what ends it.
#[derive(Clone, Copy)]
pub(super) struct UpTo<'a> {
    /// The position of the first row.
    pub(super) position: u64,
    /// Rows before this bound are skipped.
    pub(super) bound: &'a BoundValues,
    /// Rows end before this position.
    pub(super) stop: u64,
}

impl<'a> UpTo<'a> {
    /// From a position to the start of a slice.
    pub(super) fn slice_start(position: u64, range: &'a Range) -> UpTo<'a> {
        UpTo { position, bound: &range.start_values, stop: u64::MAX }
    }
}

impl Cursor {
    /// See `Window::set_read_extent`.
    #[inline]
    pub(crate) fn set_read_extent(&mut self, end: u64) {
        self.window.set_read_extent(end);
    }

    /// See `Window::set_comes_back`.
    pub(crate) fn set_comes_back(&mut self, comes_back: bool) {
        self.window.set_comes_back(comes_back);
    }

    /// See `Window::park`.
    #[inline]
    pub(crate) fn park(&mut self) -> usize {
        self.window.park()
    }

    /// See `Window::let_go`.
    pub(crate) fn let_go(&mut self) {
        self.window.let_go();
    }

    /// See `Window::unpark`. The spans of the current row then point into the same bytes again.
    pub(crate) fn unpark(&mut self, rows: Rows<'_>, expected: usize, cx: &mut ReadContext) -> Result<()> {
        self.window.unpark(rows.data, expected, cx)
    }

    /// Decodes the head of the element at `position`: kind, clustering and sizes.
    #[inline]
    pub(super) fn head(&mut self, rows: Rows<'_>, position: u64, cx: &mut ReadContext) -> Result<Found> {
        let at = self.window.seek(rows.data, position, cx)?;
        match rows.layout.head(self.window.bytes(), at, &mut self.row, &mut self.marker) {
            Ok(head) if head.end <= self.window.bytes().len() => Ok(self.found(head)),
            Ok(head) => self.joined_head(rows, (position, head.end - at), cx),
            Err(Fault::Short) => self.joined_head(rows, (position, JOIN_BYTES), cx),
            Err(fault) => Err(self.error(rows, fault)),
        }
    }

    /// Decodes the row at `position` if it is plain, and moves `position` to its end.
    #[inline(never)]
    pub(super) fn one_plain_row(
        &mut self,
        rows: Rows<'_>,
        position: &mut u64,
        bound: &BoundValues,
        cx: &mut ReadContext,
    ) -> Result<Plain> {
        let Some(plain) = PlainRows::begin(rows.layout, bound, &mut self.row) else {
            return Ok(Plain::Other);
        };
        self.next_plain_row(&plain, rows.data, position, cx)
    }

    /// Decodes the next of several plain rows, like `one_plain_row`. It is inlined into the loops over rows.
    #[inline(always)]
    pub(super) fn next_plain_row(
        &mut self,
        plain: &PlainRows<'_>,
        data: &DataBlocks,
        position: &mut u64,
        cx: &mut ReadContext,
    ) -> Result<Plain> {
        if self.window.at(*position).is_none() {
            self.window.seek(data, *position, cx)?;
        }
        let Some((bytes, at)) = self.window.at(*position) else { return Ok(Plain::Other) };
        match plain.decode(bytes, at, &mut self.row) {
            Some(PlainRow::Row { end, back }) => {
                *position += (end - at) as u64;
                cx.touched.rows_decoded += 1;
                cx.touched.cells_decoded += self.row.cells.len() as u64;
                Ok(Plain::Row { back })
            }
            Some(PlainRow::Behind) => Ok(Plain::Behind),
            None => Ok(Plain::Other),
        }
    }

    /// Prepares the row for consecutive plain rows; `None` if the file can have no plain row.
    pub(super) fn begin_plain_rows<'a>(
        &mut self,
        rows: Rows<'a>,
        bound: &'a BoundValues,
    ) -> Option<PlainRows<'a>> {
        PlainRows::begin(rows.layout, bound, &mut self.row)
    }

    /// Begins a row batch of up to `most` rows. Returns the number of rows that fit.
    pub(super) fn begin_rows(&mut self, rows: &BatchRows<'_>, most: usize) -> usize {
        self.batch.begin(rows.stride(), most)
    }

    /// Decodes the row at `position` as the next of the row batch, if it can belong to one and lies in the current
    /// block. Returns the position of its end. `keep_row` must be called to add it.
    #[inline(always)]
    pub(super) fn next_row(&mut self, rows: &BatchRows<'_>, position: u64) -> Option<(u64, BatchRow)> {
        let (bytes, at) = self.window.at(position)?;
        let row = rows.decode(bytes, at, self.batch.next_row()?)?;
        Some((position + (row.end - at) as u64, row))
    }

    /// Adds the row that `next_row` decoded to the row batch.
    #[inline(always)]
    pub(super) fn keep_row(&mut self) {
        self.batch.push();
    }

    /// Counts the rows of the row batch in the context. Returns whether there are any.
    pub(super) fn count_rows(&self, rows: &BatchRows<'_>, cx: &mut ReadContext) -> bool {
        let count = self.batch.len() as u64;
        cx.touched.rows_decoded += count;
        cx.touched.cells_decoded += count * rows.cells() as u64;
        count > 0
    }

    /// Makes the block that holds `position` the current one.
    pub(super) fn hold(&mut self, data: &DataBlocks, position: u64, cx: &mut ReadContext) -> Result<()> {
        if self.window.at(position).is_none() {
            self.window.seek(data, position, cx)?;
        }
        Ok(())
    }

    /// Prefetches the last bytes between `start` and `end`, if they lie in the current block. Processors recognise
    /// backward reads later than forward ones.
    pub(super) fn ask_for(&self, start: u64, end: u64) {
        if let Some((bytes, at)) = self.window.at(start) {
            let end = at.saturating_add(end.saturating_sub(start) as usize).min(bytes.len());
            let start = at.max(end.saturating_sub(ASKED_BYTES_MAX));
            helenus_host::prefetch(bytes.get(start..end).unwrap_or_default());
        }
    }

    /// Cuts the row batch before the first row that is not certainly before the bound, if there is one. Returns the
    /// position of that row, and whether it is certainly after the bound. `from` is the position of the first row of
    /// the batch.
    pub(super) fn cut_rows(
        &mut self,
        rows: &BatchRows<'_>,
        bound: &BoundValues,
        from: u64,
    ) -> Option<(u64, bool)> {
        if bound.is_after_all() {
            return None;
        }
        let bytes = self.window.bytes();
        let order = |values| rows.compare(bound, bytes, values);
        let mut decoded = self.batch.values().chunks_exact(rows.stride());
        if decoded.clone().next_back().is_none_or(|last| order(last) == Some(Ordering::Less)) {
            return None;
        }
        // A row ends where its last value does.
        let (mut kept, mut end) = (0, from);
        for values in decoded.by_ref() {
            let order = order(values);
            if order != Some(Ordering::Less) {
                self.batch.truncate(kept);
                return Some((end, order.is_some()));
            }
            kept += 1;
            let last = values.last().map_or(Span::EMPTY, |last| last.value);
            end = self.window.start() + u64::from(last.start) + u64::from(last.len);
        }
        None
    }

    /// The row batch that was decoded last.
    pub(crate) fn row_batch<'a>(&'a self, layout: &'a RowLayout) -> RowBatch<'a> {
        RowBatch {
            values: self.batch.values(),
            data: self.window.bytes(),
            clustering: layout.clustering.len(),
            columns: &layout.regulars.plain_ids,
        }
    }

    /// Releases the current block, and buffers that are larger than a usual row.
    pub(crate) fn release(&mut self) {
        self.window.release();
        if self.row.memory_bytes() > RELEASED_BYTES_MAX {
            self.row = RowBuf::default();
        }
        if self.marker.data.capacity() + self.marker.key.capacity() > RELEASED_BYTES_MAX {
            self.marker = MarkerBuf::default();
        }
    }

    /// Decodes only the kind and the sizes of the element at `position`.
    #[inline]
    pub(crate) fn extent(&mut self, rows: Rows<'_>, position: u64, cx: &mut ReadContext) -> Result<Found> {
        self.extent_within(rows, position, HEAD_BYTES_MAX, cx)
    }

    /// The same, for a head of about `most` bytes at most.
    #[inline]
    pub(super) fn extent_within(
        &mut self,
        rows: Rows<'_>,
        position: u64,
        most: usize,
        cx: &mut ReadContext,
    ) -> Result<Found> {
        let at = self.window.seek(rows.data, position, cx)?;
        let mut found = rows.layout.extent(self.window.bytes(), at);
        let mut len = JOIN_BYTES;
        while matches!(found, Err(Fault::Short)) {
            let whole = self.window.join(rows.data, (position, len), cx)?;
            found = rows.layout.extent(self.window.bytes(), 0);
            let may_grow = whole && len <= most;
            if matches!(found, Err(Fault::Short)) && !may_grow {
                return Err(cut(rows, position));
            }
            len *= 4;
        }
        let head = found.map_err(|fault| self.error(rows, fault))?;
        Ok(self.found(head))
    }

    /// Skips rows of the current block that are certainly before a bound and end before `stop`, and calls `passed` with
    /// the position of each. Returns the position of the first other element.
    pub(super) fn skip(
        &mut self,
        rows: Rows<'_>,
        UpTo { position, bound, stop }: UpTo<'_>,
        mut passed: impl FnMut(u64),
        cx: &mut ReadContext,
    ) -> Result<u64> {
        let at = self.window.seek(rows.data, position, cx)?;
        let start = self.window.start();
        let bytes = self.window.bytes();
        let before_stop = usize::try_from(stop.saturating_sub(start)).unwrap_or(usize::MAX);
        let bytes = bytes.get(..before_stop).unwrap_or(bytes);
        helenus_host::prefetch(bytes.get(at..bytes.len().min(at + ASKED_BYTES_MAX)).unwrap_or_default());
        let end = rows.layout.skip(bytes, at, bound, |at| passed(start + at as u64));
        Ok(start + end as u64)
    }

    /// Decodes the body of a row whose head was decoded last.
    #[inline]
    pub(super) fn row_body(&mut self, rows: Rows<'_>, found: &Found, cx: &mut ReadContext) -> Result<()> {
        let touched = &mut cx.touched;
        let decoded =
            rows.layout.row_body(self.window.bytes(), &found.head, &mut self.row, &mut touched.tombstones);
        touched.rows_decoded += 1;
        touched.cells_decoded += self.row.cells.len() as u64;
        decoded.map_err(|fault| self.error(rows, fault))?;
        if self.row.cells.len() >= MANY_CELLS {
            // A merge makes two more rows of them.
            account::grow(2 * size_of_val(&*self.row.cells))?;
        }
        Ok(())
    }

    /// Decodes the body of a marker whose head was decoded last.
    pub(super) fn marker_body(&mut self, rows: Rows<'_>, found: &Found, cx: &mut ReadContext) -> Result<()> {
        cx.touched.tombstones += 1;
        let decoded = rows.layout.marker_body(self.window.bytes(), &found.head, &mut self.marker);
        decoded.map_err(|fault| self.error(rows, fault))
    }

    /// The row decoded last.
    #[inline]
    pub(crate) fn row_view(&self) -> RowView<'_> {
        RowView { row: &self.row, data: self.window.bytes() }
    }

    /// The marker decoded last.
    pub(crate) fn marker_view(&self) -> MarkerView<'_> {
        MarkerView { marker: &self.marker, data: self.window.bytes() }
    }

    /// Decodes the key (into `key`) and the deletion of the partition at `position`.
    pub(crate) fn partition_front(
        &mut self,
        rows: Rows<'_>,
        position: u64,
        key: &mut Vec<u8>,
        cx: &mut ReadContext,
    ) -> Result<PartitionFront> {
        let mut at = self.window.seek(rows.data, position, cx)?;
        let form = rows.layout.deletion_times;
        let mut front = front(self.window.bytes(), at, form);
        if matches!(front, Err(Fault::Short)) {
            // First the length of the key, and then no more than the front takes: what is behind it may be damaged.
            let head = 2 + DeletionTimeBytes::LENGTH_MAX;
            self.window.join(rows.data, (position, head), cx)?;
            let len = self.window.bytes().first_chunk::<2>().map_or(0, |len| u16::from_be_bytes(*len));
            self.window.join(rows.data, (position, head + usize::from(len)), cx)?;
            at = 0;
            front = self::front(self.window.bytes(), at, form);
        }
        let (found, deletion, end) = front.map_err(|fault| match fault {
            Fault::Short => cut(rows, position),
            fault => self.error(rows, fault),
        })?;
        key.clear();
        key.extend_from_slice(found);
        Ok(PartitionFront { deletion, next: position + (end - at) as u64 })
    }

    /// Decodes the static row at `position` and copies it to `into`, so that it outlives the rows after it. Returns the
    /// position of the first element.
    pub(crate) fn static_row(
        &mut self,
        rows: Rows<'_>,
        position: u64,
        into: Option<&mut RowBuf>,
        cx: &mut ReadContext,
    ) -> Result<u64> {
        let mut at = self.window.seek(rows.data, position, cx)?;
        let mut head = rows.layout.static_head(self.window.bytes(), at);
        if matches!(head, Err(Fault::Short)) {
            self.window.join(rows.data, (position, JOIN_BYTES), cx)?;
            at = 0;
            head = rows.layout.static_head(self.window.bytes(), at);
        }
        let head = head.map_err(|fault| self.place(rows, fault, position))?;
        let len = head.end - at;
        let Some(into) = into else { return Ok(position + len as u64) };
        if head.end > self.window.bytes().len() {
            self.check_length(rows, position, len)?;
            self.window.join(rows.data, (position, len), cx)?;
            at = 0;
        }
        let decoded = rows.layout.static_row(self.window.bytes(), at, &mut self.row);
        let end = decoded.map_err(|fault| self.place(rows, fault, position))?;
        into.copy_from(self.row_view());
        cx.touched.rows_decoded += 1;
        cx.touched.cells_decoded += into.cells.len() as u64;
        Ok(position + (end - at) as u64)
    }

    /// Decodes the head of an element that crosses a block boundary, and joins all bytes of the element.
    #[cold]
    fn joined_head(
        &mut self,
        rows: Rows<'_>,
        (position, mut len): (u64, usize),
        cx: &mut ReadContext,
    ) -> Result<Found> {
        loop {
            self.check_length(rows, position, len.min(JOIN_BYTES))?;
            let whole = self.window.join(rows.data, (position, len), cx)?;
            match rows.layout.head(self.window.bytes(), 0, &mut self.row, &mut self.marker) {
                Ok(head) if head.end <= self.window.bytes().len() => return Ok(self.found(head)),
                Err(fault @ Fault::Bad { .. }) => return Err(self.error(rows, fault)),
                // All bytes up to the end of the file are joined, so there will not be more.
                _ if !whole => return Err(cut(rows, position)),
                Ok(head) => {
                    self.check_length(rows, position, head.end)?;
                    len = head.end;
                }
                Err(_) if len > HEAD_BYTES_MAX => return Err(cut(rows, position)),
                Err(_) => len *= 4,
            }
        }
    }

    fn check_length(&self, rows: Rows<'_>, position: u64, len: usize) -> Result<()> {
        let left = rows.data.data_length().saturating_sub(position);
        if len as u64 > left && len > JOIN_BYTES { Err(cut(rows, position)) } else { Ok(()) }
    }

    #[inline]
    fn found(&self, head: Head) -> Found {
        Found { head, next: self.window.start() + head.end as u64 }
    }

    fn place(&self, rows: Rows<'_>, fault: Fault, position: u64) -> Error {
        match fault {
            Fault::Short => cut(rows, position),
            fault => self.error(rows, fault),
        }
    }

    #[cold]
    fn error(&self, rows: Rows<'_>, fault: Fault) -> Error {
        match fault {
            Fault::Bad { at, problem } => rows.data.file().corrupt(self.window.start() + at as u64, problem),
            Fault::Short => cut(rows, self.window.start()),
        }
    }
}

impl Found {
    /// Whether the partition ends here.
    #[inline]
    pub(crate) fn is_end(&self) -> bool {
        self.head.kind == HeadKind::End
    }
}

#[cold]
fn cut(rows: Rows<'_>, position: u64) -> Error {
    rows.data.file().corrupt(position, "the data ends within this element")
}

fn front(
    bytes: &[u8],
    at: usize,
    form: DeletionTimeForm,
) -> std::result::Result<(&[u8], DeletionTime, usize), Fault> {
    let mut input = Input::new(bytes, at);
    let len = usize::from(input.short()?);
    let key = input.take(len)?;
    let at = input.at();
    let rest = bytes.get(at..).unwrap_or(&[]);
    match form.read(rest) {
        Some((deletion, taken)) => Ok((key, deletion, at + taken)),
        None if rest.len() < DeletionTimeBytes::LENGTH_MAX => Err(Fault::Short),
        None => Err(input.bad("unknown flags of a partition deletion")),
    }
}
