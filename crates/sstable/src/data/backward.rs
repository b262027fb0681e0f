//! Walks one slice of a partition against clustering order.
//!
//! Elements carry sizes that lead forward only with certainty, so an index block is walked once from its start and
//! the offsets of its elements are kept; the elements are then decoded from the last to the first, each in place.

use super::cursor::{Cursor, Plain, RELEASED_BYTES_MAX, Rows};
use super::decode::HeadKind;
use super::skip::BoundValues;
use super::slice::{Range, Step, closing, opening};
use crate::block::ReadContext;
use crate::error::Result;
use helenus_model::deletion::DeletionTime;
use helenus_model::range_tombstone::MarkerBuf;

/// An index block: where it starts, and the deletion open there. A partition without an index is one block.
#[derive(Clone, Copy, Debug)]
pub(super) struct IndexBlock {
    pub(super) start: u64,
    pub(super) open: DeletionTime,
}

/// Where a backward walk stands in its slice.
pub(super) struct Backward {
    /// Elements of the block still to come, from its start; the last is next.
    offsets: Vec<u32>,
    block: IndexBlock,
    /// Whether an element before the slice was met: no earlier block holds any of the slice.
    reached_start: bool,
    /// Deletion open at the start of the slice, or of the block if the slice starts before it.
    open_at_start: DeletionTime,
    phase: Phase,
    /// A bound behind every row.
    anywhere: BoundValues,
}

#[derive(PartialEq, Eq)]
enum Phase {
    Within,
    Done,
}

/// What a step of a backward walk came to.
pub(super) enum BackwardStep {
    /// An element.
    Element(Step),
    /// The block is exhausted and the slice may go on in the block before: give it to `enter`, or call `leave`.
    BlockDone,
    /// The slice is done.
    Done,
}

impl Backward {
    pub(super) fn new() -> Backward {
        let block = IndexBlock { start: 0, open: DeletionTime::LIVE };
        Backward {
            offsets: Vec::new(),
            block,
            reached_start: false,
            open_at_start: DeletionTime::LIVE,
            phase: Phase::Done,
            anywhere: BoundValues::after_all(),
        }
    }

    /// Lets go of more memory than the next walk is likely to need.
    pub(super) fn release(&mut self) {
        if self.offsets.capacity() * size_of::<u32>() > RELEASED_BYTES_MAX {
            self.offsets = Vec::new();
        }
    }

    /// Begins a slice in the block that holds its end. `Some` is a made marker: a range tombstone reaches past the
    /// end.
    pub(super) fn begin(
        &mut self,
        (cursor, made): (&mut Cursor, &mut MarkerBuf),
        rows: Rows<'_>,
        (range, block): (&Range, IndexBlock),
        cx: &mut ReadContext,
    ) -> Result<Option<Step>> {
        let (mut position, mut open) = self.pass_before(cursor, rows, (range, block, u64::MAX), cx)?;
        loop {
            let bound = (position, &range.end_values, u64::MAX);
            position = skip(cursor, rows, bound, (&mut self.offsets, self.block.start), cx)?;
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
        if open.is_live() {
            return Ok(None);
        }
        closing(&range.end, open, made);
        Ok(Some(Step::Made))
    }

    /// Goes on in the block before the one that is done.
    pub(super) fn enter(
        &mut self,
        cursor: &mut Cursor,
        rows: Rows<'_>,
        (range, block): (&Range, IndexBlock),
        cx: &mut ReadContext,
    ) -> Result<()> {
        let stop = self.block.start;
        let (mut position, _) = self.pass_before(cursor, rows, (range, block, stop), cx)?;
        while position < stop {
            let everything = (position, &self.anywhere, stop);
            position = skip(cursor, rows, everything, (&mut self.offsets, self.block.start), cx)?;
            let found = cursor.extent(rows, position, cx)?;
            if found.is_end() {
                break;
            }
            self.push(rows, position)?;
            position = found.next;
        }
        Ok(())
    }

    /// There is no earlier block: the slice's start is reached.
    pub(super) fn leave(&mut self) {
        self.reached_start = true;
    }

    /// The next element.
    pub(super) fn step(
        &mut self,
        (cursor, made): (&mut Cursor, &mut MarkerBuf),
        rows: Rows<'_>,
        range: &Range,
        cx: &mut ReadContext,
    ) -> Result<BackwardStep> {
        if self.phase == Phase::Done {
            return Ok(BackwardStep::Done);
        }
        while let Some(offset) = self.offsets.pop() {
            let position = self.block.start + u64::from(offset);
            // Where the row lies was settled when its offset was taken down.
            if !range.with_keys
                && cursor.plain_row(rows, &mut { position }, &self.anywhere, cx)? == Plain::Row
                && !cursor.row_view().is_empty()
            {
                return Ok(BackwardStep::Element(Step::Row));
            }
            let found = cursor.head(rows, position, cx)?;
            match found.head.kind {
                HeadKind::Row => {
                    cursor.row_body(rows, &found, cx)?;
                    if !cursor.row_view().is_empty() {
                        return Ok(BackwardStep::Element(Step::Row));
                    }
                }
                HeadKind::Marker(_) => {
                    cursor.marker_body(rows, &found, cx)?;
                    return Ok(BackwardStep::Element(Step::Marker));
                }
                HeadKind::End => {}
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
        Ok(BackwardStep::Element(Step::Made))
    }

    /// Passes what lies before the slice, up to `stop`. Returns where the slice's elements start, with the deletion
    /// open there.
    fn pass_before(
        &mut self,
        cursor: &mut Cursor,
        rows: Rows<'_>,
        (range, block, stop): (&Range, IndexBlock, u64),
        cx: &mut ReadContext,
    ) -> Result<(u64, DeletionTime)> {
        self.offsets.clear();
        self.block = block;
        self.reached_start = false;
        let (mut position, mut open) = (block.start, block.open);
        while !range.start.is_empty() && position < stop {
            let skipped = cursor.skip(rows, (position, &range.start_values, stop), |_| {}, cx)?;
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

/// Passes rows that certainly sort before a bound and end before a place, keeping their offsets from the block's start.
fn skip(
    cursor: &mut Cursor,
    rows: Rows<'_>,
    (position, bound, stop): (u64, &BoundValues, u64),
    (offsets, start): (&mut Vec<u32>, u64),
    cx: &mut ReadContext,
) -> Result<u64> {
    // Where an offset does not fit, that of the end does not either.
    let push = |at: u64| offsets.push((at - start) as u32);
    let end = cursor.skip(rows, (position, bound, stop), push, cx)?;
    offset(rows, end, start).map(|_| end)
}

fn offset(rows: Rows<'_>, position: u64, start: u64) -> Result<u32> {
    let offset = u32::try_from(position - start);
    offset.map_err(|_| rows.data.file().corrupt(position, "an index block of more than 4 GiB"))
}
