//! Reads one slice of a partition against clustering order.
//!
//! The index block in which the slice ends is passed from its start, and the offsets of its elements are kept. Each
//! element also contains the distance back to the element before it (`UnfilteredSerializer` writes it; Cassandra never
//! reads it). The blocks before are read by these distances, so that each element is decoded once. An element that is
//! found in this way must end where the next one starts. If that is not true in a file, its blocks are passed from
//! their starts, like the block in which the slice starts.

use super::cursor::{Cursor, Plain, RELEASED_BYTES_MAX, Rows, UpTo};
use super::decode::HeadKind;
use super::row_batch::BatchRows;
use super::skip::BoundValues;
use super::slice::{Range, Step, opening};
use crate::block::ReadContext;
use crate::error::{Error, Result};
use helenus_host::account::grow;
use helenus_model::deletion::DeletionTime;
use helenus_model::range_tombstone::MarkerBuf;
use helenus_model::row::{RowBuf, RowView};
use std::ops::ControlFlow;

/// An index block: its position in the data, and the deletion open there. A partition without an index is one block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IndexBlock {
    pub(crate) start: u64,
    pub(crate) open: DeletionTime,
}

/// The state of a backward read.
pub(crate) struct Backward {
    /// Offsets of the elements that are still to come, from the start of the block. The last is the next. Empty in a
    /// block that is read by distances.
    offsets: Vec<u32>,
    /// The next element of a block that is read by distances.
    by_size: Option<Before>,
    block: IndexBlock,
    /// Whether an element before the slice was found, so that no earlier block contains a part of the slice.
    reached_start: bool,
    /// The deletion open at the start of the slice, or of the block if the slice starts before it.
    open_at_start: DeletionTime,
    phase: Phase,
    /// A bound after every row.
    anywhere: BoundValues,
}

/// An element found by the distance that is stored in the next one.
#[derive(Clone, Copy)]
struct Before {
    /// Its position.
    at: u64,
    /// The position of the next element, at which this one must end.
    end: u64,
}

#[derive(PartialEq, Eq)]
enum Phase {
    Within,
    Done,
}

/// The result of a step of a backward read.
pub(crate) enum BackwardStep {
    /// An element.
    Element(Step),
    /// The block has no more elements, and the slice may continue in the block before: pass that to `enter`, or call
    /// `leave` if there is none.
    BlockDone,
    /// The slice is done.
    Done,
}

impl Backward {
    pub(crate) fn new() -> Backward {
        let block = IndexBlock { start: 0, open: DeletionTime::LIVE };
        Backward {
            offsets: Vec::new(),
            by_size: None,
            block,
            reached_start: false,
            open_at_start: DeletionTime::LIVE,
            phase: Phase::Done,
            anywhere: BoundValues::after_all(),
        }
    }

    /// Releases memory beyond what the next read is likely to need.
    pub(crate) fn release(&mut self) {
        if self.offsets.capacity() * size_of::<u32>() > RELEASED_BYTES_MAX {
            self.offsets = Vec::new();
        }
    }

    /// Begins a slice in the block that holds its end. Returns the deletion of the range tombstone that
    /// reaches past the end, if one does.
    pub(crate) fn begin(
        &mut self,
        cursor: &mut Cursor,
        rows: Rows<'_>,
        range: &Range,
        block: IndexBlock,
        cx: &mut ReadContext,
    ) -> Result<Option<DeletionTime>> {
        let (mut position, mut open) =
            self.pass_before(cursor, rows, Part { range, block, stop: u64::MAX }, cx)?;
        loop {
            ask_for_room(&mut self.offsets)?;
            let bound = UpTo { position, bound: &range.end_values, stop: u64::MAX };
            position = skip(
                cursor,
                rows,
                bound,
                &mut Offsets { all: &mut self.offsets, start: self.block.start },
                cx,
            )?;
            let found = cursor.head(rows, position, cx)?;
            match found.head.kind {
                HeadKind::Row if cursor.row.key < range.end => {}
                HeadKind::Marker(_) if cursor.marker.key < range.end => {
                    cursor.marker_body(rows, &found, cx)?;
                    open = cursor.marker.open;
                }
                _ => break,
            }
            self.push(rows, position)?;
            position = found.next;
        }
        self.phase = Phase::Within;
        Ok((!open.is_live()).then_some(open))
    }

    /// Continues in the block before the current one.
    pub(crate) fn enter(
        &mut self,
        cursor: &mut Cursor,
        rows: Rows<'_>,
        (range, block): (&Range, IndexBlock),
        cx: &mut ReadContext,
    ) -> Result<()> {
        let stop = self.block.start;
        let back = cursor.extent(rows, stop, cx)?.head.back;
        if range.start.is_empty() || is_behind(cursor, rows, (range, block.start), cx)? {
            (self.block, self.reached_start, self.open_at_start) = (block, false, block.open);
            self.offsets.clear();
            self.by_size = before(block, stop, back);
            if self.by_size.is_some() {
                cursor.ask_for(block.start, stop);
                return Ok(());
            }
        }
        self.collect(cursor, rows, Part { range, block, stop }, cx)
    }

    /// Collects the offsets of a block's elements that are within the slice and before `stop`.
    fn collect(
        &mut self,
        cursor: &mut Cursor,
        rows: Rows<'_>,
        part: Part<'_>,
        cx: &mut ReadContext,
    ) -> Result<()> {
        let (mut position, _) = self.pass_before(cursor, rows, part, cx)?;
        while position < part.stop {
            ask_for_room(&mut self.offsets)?;
            let everything = UpTo { position, bound: &self.anywhere, stop: part.stop };
            position = skip(
                cursor,
                rows,
                everything,
                &mut Offsets { all: &mut self.offsets, start: self.block.start },
                cx,
            )?;
            if position >= part.stop {
                break;
            }
            let found = cursor.extent(rows, position, cx)?;
            if found.is_end() {
                break;
            }
            self.push(rows, position)?;
            position = found.next;
        }
        Ok(())
    }

    /// Ends the slice at the current block, because there is no earlier one.
    pub(crate) fn leave(&mut self) {
        self.reached_start = true;
    }

    /// Reads a row batch of up to `most` rows, against clustering order; see `Forward::batch`.
    pub(crate) fn batch(
        &mut self,
        (cursor, rows, range): (&mut Cursor, Rows<'_>, &Range),
        most: usize,
        cx: &mut ReadContext,
    ) -> Result<bool> {
        if range.with_keys {
            return Ok(false);
        }
        let (Some(batch), Some(first)) = (BatchRows::of(rows.layout), self.next_at()) else {
            return Ok(false);
        };
        cursor.hold(rows.data, first, cx)?;
        for _ in 0..cursor.begin_rows(&batch, most) {
            let Some(at) = self.next_at() else { break };
            let Some((end, row)) = cursor.next_row(&batch, at) else { break };
            if !pass((&mut self.by_size, &mut self.offsets), self.block, (at, end, row.back)) {
                break;
            }
            cursor.keep_row();
        }
        Ok(cursor.count_rows(&batch, cx))
    }

    /// The position of the next element of the block.
    #[inline(always)]
    fn next_at(&self) -> Option<u64> {
        match (&self.by_size, self.offsets.last()) {
            (Some(place), _) => Some(place.at),
            (None, Some(offset)) => Some(self.block.start + u64::from(*offset)),
            (None, None) => None,
        }
    }

    /// Reads on in the block, against clustering order, as long as the rows are plain and if rows need no keys. Calls
    /// `each` with each row, which may stop after it. The first row that is not plain is left to `step`.
    pub(crate) fn plain_rows(
        &mut self,
        (cursor, rows, range): (&mut Cursor, Rows<'_>, &Range),
        cx: &mut ReadContext,
        mut each: impl FnMut(&RowBuf, &[u8], &mut ReadContext) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        if range.with_keys {
            return Ok(ControlFlow::Continue(()));
        }
        // The rows are known to be in the slice since their offsets were collected or the block was entered.
        let Some(plain) = cursor.begin_plain_rows(rows, &self.anywhere) else {
            return Ok(ControlFlow::Continue(()));
        };
        while let Some(at) = self.next_at() {
            let mut next = at;
            let Plain::Row { back } = cursor.next_plain_row(&plain, rows.data, &mut next, cx)? else { break };
            if cursor.row_view().is_empty() {
                break;
            }
            if !pass((&mut self.by_size, &mut self.offsets), self.block, (at, next, back)) {
                break;
            }
            let RowView { row, data } = cursor.row_view();
            let flow = each(row, data, cx);
            if flow.is_break() {
                return Ok(flow);
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Reads the next element.
    pub(crate) fn step(
        &mut self,
        (cursor, made): (&mut Cursor, &mut MarkerBuf),
        rows: Rows<'_>,
        range: &Range,
        cx: &mut ReadContext,
    ) -> Result<BackwardStep> {
        if self.phase == Phase::Done {
            return Ok(BackwardStep::Done);
        }
        loop {
            let step = match self.by_size {
                Some(place) => self.step_by_size(cursor, rows, (range, place), cx)?,
                None => match self.offsets.pop() {
                    Some(offset) => {
                        let position = self.block.start + u64::from(offset);
                        decode(cursor, rows, (range, &self.anywhere, position), cx)?.0
                    }
                    None => break,
                },
            };
            if let Some(step) = step {
                return Ok(BackwardStep::Element(step));
            }
        }
        if !self.reached_start {
            return Ok(BackwardStep::BlockDone);
        }
        self.phase = Phase::Done;
        if self.open_at_start.is_live() {
            return Ok(BackwardStep::Done);
        }
        opening(&range.start, self.open_at_start, made);
        Ok(BackwardStep::Element(Step::Synthetic))
    }

    /// Decodes the element at `place`, and moves to the one before it. `None` if the element is not returned, or if the
    /// distances are wrong; then the block's offsets are collected instead.
    #[inline]
    fn step_by_size(
        &mut self,
        cursor: &mut Cursor,
        rows: Rows<'_>,
        (range, place): (&Range, Before),
        cx: &mut ReadContext,
    ) -> Result<Option<Step>> {
        let block = self.block;
        let stop = match decode(cursor, rows, (range, &self.anywhere, place.at), cx) {
            Ok((step, next, back)) if next == place.end => {
                self.by_size = before(block, place.at, back);
                if self.by_size.is_some() || place.at == block.start {
                    return Ok(step);
                }
                place.end
            }
            // An element may fail to decode because the distances are wrong.
            Ok(_) | Err(Error::Corrupt { .. }) => place.end,
            Err(error) => return Err(error),
        };
        self.by_size = None;
        self.collect(cursor, rows, Part { range, block, stop }, cx)?;
        Ok(None)
    }

    /// Passes the elements before the slice, up to `stop`. Returns the position at which the slice's elements start,
    /// and the deletion open there.
    fn pass_before(
        &mut self,
        cursor: &mut Cursor,
        rows: Rows<'_>,
        part: Part<'_>,
        cx: &mut ReadContext,
    ) -> Result<(u64, DeletionTime)> {
        let Part { range, block, stop } = part;
        self.offsets.clear();
        self.by_size = None;
        self.block = block;
        self.reached_start = false;
        let (mut position, mut open) = (block.start, block.open);
        while !range.start.is_empty() && position < stop {
            let skipped =
                cursor.skip(rows, UpTo { position, bound: &range.start_values, stop }, |_| {}, cx)?;
            if skipped > position {
                self.reached_start = true;
                position = skipped;
                continue;
            }
            let found = cursor.head(rows, position, cx)?;
            match found.head.kind {
                HeadKind::Row if cursor.row.key < range.start => {}
                HeadKind::Marker(_) if cursor.marker.key <= range.start => {
                    cursor.marker_body(rows, &found, cx)?;
                    open = cursor.marker.open;
                }
                _ => break,
            }
            self.reached_start = true;
            position = found.next;
        }
        self.open_at_start = open;
        Ok((position, open))
    }

    fn push(&mut self, rows: Rows<'_>, position: u64) -> Result<()> {
        let offset = self.offset(rows, position)?;
        self.offsets.push(offset);
        Ok(())
    }

    fn offset(&self, rows: Rows<'_>, position: u64) -> Result<u32> {
        offset(rows, position, self.block.start)
    }
}

/// Asks for memory before many offsets become more: a partition without row index is one block, however large.
fn ask_for_room(offsets: &mut Vec<u32>) -> Result<()> {
    let capacity = offsets.capacity();
    if capacity * size_of::<u32>() <= RELEASED_BYTES_MAX || capacity - offsets.len() >= capacity / 8 {
        return Ok(());
    }
    // Old and new ones are in memory together until they are copied.
    grow(2 * capacity * size_of::<u32>())?;
    offsets.reserve(capacity);
    Ok(())
}

/// Moves to the element before the one at `at`. If the distances are wrong it does not move and returns `false`.
#[inline(always)]
fn pass(
    (by_size, offsets): (&mut Option<Before>, &mut Vec<u32>),
    block: IndexBlock,
    (at, end, back): (u64, u64, u64),
) -> bool {
    if let Some(place) = *by_size {
        let before = before(block, at, back);
        if end != place.end || (before.is_none() && at != block.start) {
            return false;
        }
        *by_size = before;
    } else {
        offsets.pop();
    }
    true
}

/// The element at the distance `back` before `position`; `None` if that is not in the block.
fn before(block: IndexBlock, position: u64, back: u64) -> Option<Before> {
    let at = position.checked_sub(back).filter(|at| (block.start..position).contains(at))?;
    Some(Before { at, end: position })
}

/// Whether the first element of a block is after the slice's start.
fn is_behind(
    cursor: &mut Cursor,
    rows: Rows<'_>,
    (range, position): (&Range, u64),
    cx: &mut ReadContext,
) -> Result<bool> {
    Ok(match cursor.head(rows, position, cx)?.head.kind {
        HeadKind::Row => cursor.row.key > range.start,
        HeadKind::Marker(_) => cursor.marker.key > range.start,
        HeadKind::End => false,
    })
}

/// Decodes the element at a position, which is known to be in the slice. Returns it unless it is empty, the position of
/// the next element, and the distance back to the one before.
#[inline]
fn decode(
    cursor: &mut Cursor,
    rows: Rows<'_>,
    (range, anywhere, position): (&Range, &BoundValues, u64),
    cx: &mut ReadContext,
) -> Result<(Option<Step>, u64, u64)> {
    let mut next = position;
    if !range.with_keys
        && let Plain::Row { back } = cursor.one_plain_row(rows, &mut next, anywhere, cx)?
    {
        // A row that contains only cells of dropped columns is not returned.
        return Ok(((!cursor.row_view().is_empty()).then_some(Step::Row), next, back));
    }
    let found = cursor.head(rows, position, cx)?;
    let step = match found.head.kind {
        HeadKind::Row => {
            cursor.row_body(rows, &found, cx)?;
            (!cursor.row_view().is_empty()).then_some(Step::Row)
        }
        HeadKind::Marker(_) => {
            cursor.marker_body(rows, &found, cx)?;
            Some(Step::Marker)
        }
        HeadKind::End => None,
    };
    Ok((step, found.next, found.head.back))
}

/// Part of a slice: what an index block has of it before `stop`.
#[derive(Clone, Copy)]
struct Part<'a> {
    range: &'a Range,
    block: IndexBlock,
    stop: u64,
}

/// The offsets of elements from the start of their block.
struct Offsets<'a> {
    all: &'a mut Vec<u32>,
    start: u64,
}

/// Skips rows that are certainly before a bound and end before `to.stop`, and keeps their offsets from the block's start.
fn skip(
    cursor: &mut Cursor,
    rows: Rows<'_>,
    to: UpTo<'_>,
    offsets: &mut Offsets<'_>,
    cx: &mut ReadContext,
) -> Result<u64> {
    // If an offset does not fit 32 bits, that of the end does not either, which is checked below.
    let Offsets { all, start } = offsets;
    let push = |at: u64| all.push((at - *start) as u32);
    let end = cursor.skip(rows, to, push, cx)?;
    offset(rows, end, *start).map(|_| end)
}

fn offset(rows: Rows<'_>, position: u64, start: u64) -> Result<u32> {
    let offset = u32::try_from(position - start);
    offset.map_err(|_| rows.data.file().corrupt(position, "an index block of more than 4 GiB"))
}

#[cfg(test)]
mod tests;
