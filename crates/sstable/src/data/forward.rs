//! Walks one slice of a partition in clustering order.

use super::cursor::{Cursor, Found, Plain, Rows};
use super::decode::HeadKind;
use super::run::RunRows;
use super::slice::{Range, Step, closing, opening};
use crate::block::ReadContext;
use crate::error::Result;
use helenus_model::deletion::DeletionTime;
use helenus_model::range_tombstone::MarkerBuf;
use helenus_model::row::{RowBuf, RowView};
use std::ops::ControlFlow;

/// Where a forward walk stands. It only ever moves on, from slice to slice.
pub(super) struct Forward {
    /// Next element; everything before it has been passed.
    position: u64,
    /// Deletion that is open there.
    open: DeletionTime,
    phase: Phase,
    /// Whether the index led no further than the walk had come when it was last asked: then the next slice may begin here, too.
    is_near: bool,
    /// Rows that the next run of a slice with an end has at most: runs grow with the slice, so that few rows behind it are
    /// decoded in vain.
    run_rows: usize,
}

/// Rows of the first run of a slice with an end.
const FIRST_RUN_ROWS: usize = 8;

enum Phase {
    /// Elements before the slice are to be passed.
    Before,
    /// Everything before the slice was passed: a plain row comes next that is not before it, and nothing is open.
    Begun,
    /// The first element of the slice has its head decoded.
    Peeked(Found),
    Within,
    /// A range tombstone that reaches past the slice is to be closed.
    Closing,
    Done,
}

impl Forward {
    /// A walk from an element.
    pub(super) fn at(position: u64, open: DeletionTime) -> Forward {
        Forward { position, open, phase: Phase::Done, is_near: true, run_rows: FIRST_RUN_ROWS }
    }

    /// The next element.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// Begins the next slice, at an index block if one lies further on than the walk has come.
    pub(super) fn begin(&mut self, block: Option<(u64, DeletionTime)>) {
        self.is_near = true;
        if let Some((position, open)) = block
            && position > self.position
        {
            (self.position, self.open, self.is_near) = (position, open, false);
        }
        self.phase = Phase::Before;
        self.run_rows = FIRST_RUN_ROWS;
    }

    /// Begins the next slice where the walk has come to, if the row that stands there is plain and not before the slice: the
    /// index can lead no further then. Whether it did.
    pub(super) fn begin_here(
        &mut self,
        (cursor, rows, range): (&mut Cursor, Rows<'_>, &Range),
        cx: &mut ReadContext,
    ) -> Result<bool> {
        let may_begin = self.is_near && self.position > 0 && self.may_begin_plainly(range);
        let begins = may_begin && self.begins_plainly(cursor, rows, range, cx)?;
        if begins {
            (self.phase, self.run_rows) = (Phase::Begun, FIRST_RUN_ROWS);
        }
        Ok(begins)
    }

    /// Goes on over up to `most` rows at once, where rows need no keys, which are the cursor's run then; whether there are
    /// any. What ends the run is for `plain_rows` and `step`.
    pub(super) fn run(
        &mut self,
        (cursor, rows, range): (&mut Cursor, Rows<'_>, &Range),
        most: usize,
        cx: &mut ReadContext,
    ) -> Result<bool> {
        if !matches!(self.phase, Phase::Within) || range.with_keys || range.with_hidden || range.is_name {
            return Ok(false);
        }
        let Some(run) = RunRows::of(rows.layout) else { return Ok(false) };
        let mut most = most;
        if !range.end_values.is_after_all() {
            most = most.min(self.run_rows);
            self.run_rows = self.run_rows.saturating_mul(2);
        }
        cursor.hold(rows.data, self.position, cx)?;
        let mut position = self.position;
        for _ in 0..cursor.begin_rows(&run, most) {
            let Some((end, _)) = cursor.next_row(&run, position) else { break };
            cursor.keep_row();
            position = end;
        }
        if let Some((end, is_behind)) = cursor.cut_rows(&run, &range.end_values, self.position) {
            position = end;
            if is_behind {
                self.phase = Phase::Closing;
            }
        }
        self.position = position;
        Ok(cursor.count_rows(&run, cx))
    }

    /// Goes on row by row as long as they are plain, where rows need no keys, and gives each to `each`, which may break off
    /// behind it. What stops the run otherwise is for `step`.
    pub(super) fn plain_rows(
        &mut self,
        (cursor, rows, range): (&mut Cursor, Rows<'_>, &Range),
        cx: &mut ReadContext,
        mut each: impl FnMut(&RowBuf, &[u8], &mut ReadContext) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        if !matches!(self.phase, Phase::Within) || range.with_keys || range.with_hidden {
            return Ok(ControlFlow::Continue(()));
        }
        let Some(run) = cursor.begin_run(rows, &range.end_values) else {
            return Ok(ControlFlow::Continue(()));
        };
        loop {
            match cursor.next_plain_row(&run, rows.data, &mut self.position, cx)? {
                // Only an empty one is not shown.
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

    /// As one step of `plain_rows`: whether the next row of the slice is a plain one, and the cursor's now.
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

    /// The next element of the slice; `None` at its end.
    #[inline]
    pub(super) fn step(
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
                        return Ok(Some(Step::Made));
                    }
                    found
                }
                Phase::Closing => {
                    self.phase = Phase::Done;
                    if self.open.is_live() {
                        return Ok(None);
                    }
                    closing(&range.end, self.open, made);
                    return Ok(Some(Step::Made));
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
                    // Only cells of dropped columns: as if it were not there.
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

    /// Passes rows that certainly lie before the slice; whether a plain one follows that certainly does not, and nothing is
    /// to be opened before it.
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
        self.position = cursor.skip(rows, (self.position, &range.start_values, u64::MAX), |_| {}, cx)?;
        self.begins_plainly(cursor, rows, range, cx)
    }

    /// Whether rows need no keys and nothing is to be opened before the slice.
    fn may_begin_plainly(&self, range: &Range) -> bool {
        !range.with_keys && self.open.is_live()
    }

    /// Whether a plain row comes next that is certainly not before the slice.
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

    /// Passes what lies before the slice and returns the head after it. A marker that stands exactly at the start
    /// is passed too: what it opens is opened again at the start.
    fn pass_before(
        &mut self,
        cursor: &mut Cursor,
        rows: Rows<'_>,
        range: &Range,
        cx: &mut ReadContext,
    ) -> Result<Found> {
        loop {
            self.position = cursor.skip(rows, (self.position, &range.start_values, u64::MAX), |_| {}, cx)?;
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
