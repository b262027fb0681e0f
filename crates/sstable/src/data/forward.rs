//! Reads one slice of a partition in clustering order.

use super::cursor::{Cursor, Found, Plain, Rows, UpTo};
use super::decode::HeadKind;
use super::row_batch::BatchRows;
use super::slice::{Range, Step, closing, opening};
use crate::block::ReadContext;
use crate::error::Result;
use helenus_model::deletion::DeletionTime;
use helenus_model::range_tombstone::MarkerBuf;
use helenus_model::row::{RowBuf, RowView};
use std::ops::ControlFlow;

/// The state of a forward read. It goes from slice to slice and never backward.
pub(crate) struct Forward {
    /// The position of the next element (row or marker). Everything before it has been passed.
    position: u64,
    /// The deletion that is open at `position`.
    open: DeletionTime,
    phase: Phase,
    /// Whether the index, when it was last asked, led no further than `position`. Then the next slice may begin here
    /// too.
    is_near: bool,
    /// The most rows of the next row batch, for a slice with an end. Batches grow along the slice, so that few rows
    /// after its end are decoded in vain.
    batch_rows: usize,
}

/// Rows of the first row batch of a slice with an end.
const FIRST_BATCH_ROWS: usize = 8;

enum Phase {
    /// Elements before the slice must be passed.
    Before,
    /// Everything before the slice was passed. A plain row that is not before the slice comes next, and no deletion is
    /// open.
    Begun,
    /// The head of the first element of the slice is decoded.
    Peeked(Found),
    Within,
    /// A range tombstone that reaches past the slice must be closed.
    Closing,
    Done,
}

impl Forward {
    /// A read from the element at `position`.
    pub(crate) fn at(position: u64, open: DeletionTime) -> Forward {
        Forward { position, open, phase: Phase::Done, is_near: true, batch_rows: FIRST_BATCH_ROWS }
    }

    /// The position of the next element.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// Begins the next slice, at the start of the index block `block` if that is ahead of the current position.
    pub(crate) fn begin(&mut self, block: Option<(u64, DeletionTime)>) {
        self.is_near = true;
        if let Some((position, open)) = block
            && position > self.position
        {
            (self.position, self.open, self.is_near) = (position, open, false);
        }
        self.phase = Phase::Before;
        self.batch_rows = FIRST_BATCH_ROWS;
    }

    /// Begins the next slice at the current position, if a plain row is there that is not before the slice; then the
    /// index could not lead further. Returns whether it began.
    pub(crate) fn begin_here(
        &mut self,
        (cursor, rows, range): (&mut Cursor, Rows<'_>, &Range),
        cx: &mut ReadContext,
    ) -> Result<bool> {
        let may_begin = self.is_near && self.position > 0 && self.may_begin_plainly(range);
        let begins = may_begin && self.begins_plainly(cursor, rows, range, cx)?;
        if begins {
            (self.phase, self.batch_rows) = (Phase::Begun, FIRST_BATCH_ROWS);
        }
        Ok(begins)
    }

    /// Reads a row batch of up to `most` rows into the cursor, if rows need no keys. Returns whether it has any rows.
    /// The row that ends the batch is left to `plain_rows` and `step`.
    pub(crate) fn batch(
        &mut self,
        (cursor, rows, range): (&mut Cursor, Rows<'_>, &Range),
        most: usize,
        cx: &mut ReadContext,
    ) -> Result<bool> {
        if !matches!(self.phase, Phase::Within) || range.with_keys || range.with_hidden || range.is_name {
            return Ok(false);
        }
        let Some(batch) = BatchRows::of(rows.layout) else { return Ok(false) };
        let mut most = most;
        if !range.end_values.is_after_all() {
            most = most.min(self.batch_rows);
            self.batch_rows = self.batch_rows.saturating_mul(2);
        }
        cursor.hold(rows.data, self.position, cx)?;
        let mut position = self.position;
        for _ in 0..cursor.begin_rows(&batch, most) {
            let Some((end, _)) = cursor.next_row(&batch, position) else { break };
            cursor.keep_row();
            position = end;
        }
        if let Some((end, is_behind)) = cursor.cut_rows(&batch, &range.end_values, self.position) {
            position = end;
            if is_behind {
                self.phase = Phase::Closing;
            }
        }
        self.position = position;
        Ok(cursor.count_rows(&batch, cx))
    }

    /// Reads on as long as the rows are plain, if rows need no keys, and calls `each` with each row, which may stop
    /// after it. The first row that is not plain is left to `step`.
    pub(crate) fn plain_rows(
        &mut self,
        (cursor, rows, range): (&mut Cursor, Rows<'_>, &Range),
        cx: &mut ReadContext,
        mut each: impl FnMut(&RowBuf, &[u8], &mut ReadContext) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        if !matches!(self.phase, Phase::Within) || range.with_keys || range.with_hidden {
            return Ok(ControlFlow::Continue(()));
        }
        let Some(plain) = cursor.begin_plain_rows(rows, &range.end_values) else {
            return Ok(ControlFlow::Continue(()));
        };
        loop {
            match cursor.next_plain_row(&plain, rows.data, &mut self.position, cx)? {
                // An empty row is not returned.
                Plain::Row { .. } if cursor.row_view().is_empty() => {}
                Plain::Row { .. } => {
                    if range.is_name {
                        self.phase = Phase::Closing;
                    }
                    let RowView { row, data } = cursor.row_view();
                    let flow = each(row, data, cx);
                    if flow.is_break() || range.is_name {
                        return Ok(flow);
                    }
                }
                Plain::Behind => {
                    self.phase = Phase::Closing;
                    return Ok(ControlFlow::Continue(()));
                }
                Plain::Other => return Ok(ControlFlow::Continue(())),
            }
        }
    }

    /// Reads one row as `plain_rows` does. Returns whether the cursor has a plain row of the slice now.
    fn plain_step(
        &mut self,
        cursor: &mut Cursor,
        rows: Rows<'_>,
        range: &Range,
        cx: &mut ReadContext,
    ) -> Result<bool> {
        let mut found = false;
        let _: ControlFlow<()> = self.plain_rows((cursor, rows, range), cx, |_, _, _| {
            found = true;
            ControlFlow::Break(())
        })?;
        Ok(found)
    }

    /// Reads the next element of the slice; `None` at its end.
    #[inline]
    pub(crate) fn step(
        &mut self,
        (cursor, made): (&mut Cursor, &mut MarkerBuf),
        rows: Rows<'_>,
        range: &Range,
        cx: &mut ReadContext,
    ) -> Result<Option<Step>> {
        loop {
            let found = match self.phase {
                Phase::Within => cursor.head(rows, self.position, cx)?,
                Phase::Peeked(found) => found,
                Phase::Begun => {
                    self.phase = Phase::Within;
                    if self.plain_step(cursor, rows, range, cx)? {
                        return Ok(Some(Step::Row));
                    }
                    continue;
                }
                Phase::Before => {
                    if self.pass_plainly(cursor, rows, range, cx)? {
                        self.phase = Phase::Begun;
                        continue;
                    }
                    let found = self.pass_before(cursor, rows, range, cx)?;
                    self.phase = Phase::Peeked(found);
                    if !self.open.is_live() {
                        opening(&range.start, self.open, made);
                        return Ok(Some(Step::Synthetic));
                    }
                    found
                }
                Phase::Closing => {
                    self.phase = Phase::Done;
                    if self.open.is_live() {
                        return Ok(None);
                    }
                    closing(&range.end, self.open, made);
                    return Ok(Some(Step::Synthetic));
                }
                Phase::Done => return Ok(None),
            };
            self.phase = Phase::Within;
            match found.head.kind {
                HeadKind::Row if cursor.row.key.as_slice() < range.end.as_slice() => {
                    cursor.row_body(rows, &found, cx)?;
                    self.position = found.next;
                    if range.is_name {
                        self.phase = Phase::Closing;
                    }
                    // A row that contains only cells of dropped columns is not returned.
                    if range.with_hidden || !cursor.row_view().is_empty() {
                        return Ok(Some(Step::Row));
                    }
                }
                HeadKind::Marker(_) if cursor.marker.key.as_slice() < range.end.as_slice() => {
                    cursor.marker_body(rows, &found, cx)?;
                    self.position = found.next;
                    self.open = cursor.marker.open;
                    return Ok(Some(Step::Marker));
                }
                _ => self.phase = Phase::Closing,
            }
        }
    }

    /// Passes rows that are certainly before the slice. Returns whether a plain row follows that certainly is not, with
    /// no deletion open.
    #[inline]
    fn pass_plainly(
        &mut self,
        cursor: &mut Cursor,
        rows: Rows<'_>,
        range: &Range,
        cx: &mut ReadContext,
    ) -> Result<bool> {
        if !self.may_begin_plainly(range) {
            return Ok(false);
        }
        self.position = cursor.skip(rows, UpTo::slice_start(self.position, range), |_| {}, cx)?;
        self.begins_plainly(cursor, rows, range, cx)
    }

    /// Whether rows need no keys and no deletion is open before the slice.
    fn may_begin_plainly(&self, range: &Range) -> bool {
        !range.with_keys && self.open.is_live()
    }

    /// Whether the next element is a plain row that is certainly not before the slice.
    fn begins_plainly(
        &self,
        cursor: &mut Cursor,
        rows: Rows<'_>,
        range: &Range,
        cx: &mut ReadContext,
    ) -> Result<bool> {
        let mut position = self.position;
        Ok(cursor.one_plain_row(rows, &mut position, &range.start_values, cx)? == Plain::Behind)
    }

    /// Passes the elements before the slice and returns the head of the next one. A marker exactly at the start of the
    /// slice is passed too, because the deletion that it opens is opened again there.
    fn pass_before(
        &mut self,
        cursor: &mut Cursor,
        rows: Rows<'_>,
        range: &Range,
        cx: &mut ReadContext,
    ) -> Result<Found> {
        loop {
            self.position = cursor.skip(rows, UpTo::slice_start(self.position, range), |_| {}, cx)?;
            let found = cursor.head(rows, self.position, cx)?;
            match found.head.kind {
                HeadKind::Row if cursor.row.key < range.start => {}
                HeadKind::Marker(_) if cursor.marker.key <= range.start => {
                    cursor.marker_body(rows, &found, cx)?;
                    self.open = cursor.marker.open;
                }
                _ => return Ok(found),
            }
            self.position = found.next;
        }
    }
}
