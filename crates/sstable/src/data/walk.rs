//! Walks a partition's elements from any place of it, for who must go on where damage ends (`crate::scrub`).
//!
//! Unlike `PartitionReader` it is of use after an error: it stands where it stood, and can be put elsewhere.

use super::cursor::{Cursor, Rows};
use super::decode::HeadKind;
use super::layout::RowLayout;
use crate::block::ReadContext;
use crate::compression::DataBlocks;
use crate::error::Result;
use helenus_model::deletion::DeletionTime;
use helenus_model::row::RowBuf;
use helenus_model::unfiltered::Unfiltered;

/// A place among elements.
#[derive(Default)]
pub(crate) struct Walk {
    cursor: Cursor,
    position: u64,
    /// Where the element that was refused last ends, by its own word.
    refused_end: Option<u64>,
    is_marker: bool,
}

impl Walk {
    /// Where the next element stands.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// Goes to an element.
    pub(crate) fn go_to(&mut self, position: u64) {
        (self.position, self.refused_end) = (position, None);
    }

    /// Reads the front of the partition at `start`: key and static row replace what they are given, the deletion is
    /// returned. Stands at the first element then.
    pub(crate) fn front(
        &mut self,
        (data, layout): (&DataBlocks, &RowLayout),
        start: u64,
        (key, static_row): (&mut Vec<u8>, &mut RowBuf),
        cx: &mut ReadContext,
    ) -> Result<DeletionTime> {
        let rows = Rows { data, layout };
        static_row.clear();
        let front = self.cursor.partition_front(rows, start, key, cx)?;
        let mut next = front.next;
        if !layout.statics.is_empty() {
            next = self.cursor.static_row(rows, next, Some(static_row), cx)?;
        }
        self.go_to(next);
        Ok(front.deletion)
    }

    /// Moves to the next element, which `current` shows then; `false` at the partition's end, behind which it stands then.
    pub(crate) fn advance(
        &mut self,
        (data, layout): (&DataBlocks, &RowLayout),
        cx: &mut ReadContext,
    ) -> Result<bool> {
        let rows = Rows { data, layout };
        self.refused_end = None;
        loop {
            let found = self.cursor.head(rows, self.position, cx)?;
            match found.head.kind {
                HeadKind::End => {
                    self.position = found.next;
                    return Ok(false);
                }
                HeadKind::Row => {
                    self.refused_end = Some(found.next);
                    self.cursor.row_body(rows, &found, cx)?;
                    self.is_marker = false;
                }
                HeadKind::Marker(_) => {
                    self.refused_end = Some(found.next);
                    self.cursor.marker_body(rows, &found, cx)?;
                    self.is_marker = true;
                }
            }
            (self.position, self.refused_end) = (found.next, None);
            // Only cells of dropped columns: as if it were not there.
            if self.is_marker || !self.cursor.row_view().is_empty() {
                return Ok(true);
            }
        }
    }

    /// The element that `advance` moved to.
    pub(crate) fn current(&self) -> Unfiltered<'_> {
        if self.is_marker {
            Unfiltered::Marker(self.cursor.marker_view())
        } else {
            Unfiltered::Row(self.cursor.row_view())
        }
    }

    /// Passes over the element whose body was refused, if its length can be believed: what follows must say that it follows
    /// an element of this length, or be the partition's end.
    pub(crate) fn pass_refused(
        &mut self,
        (data, layout): (&DataBlocks, &RowLayout),
        cx: &mut ReadContext,
    ) -> bool {
        let Some(end) = self.refused_end.take() else { return false };
        let found = self.cursor.extent(Rows { data, layout }, end, cx);
        let is_next = found
            .is_ok_and(|found| found.head.kind == HeadKind::End || found.head.back == end - self.position);
        if is_next {
            self.position = end;
        }
        is_next
    }
}
