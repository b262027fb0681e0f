//! Reads the elements (rows and markers) of a partition from any position, so that `crate::scrub` can continue after
//! damage.
//!
//! Unlike `PartitionReader` it can be used after an error: its position is unchanged, and can be set.

use super::cursor::{Cursor, Rows};
use super::decode::HeadKind;
use crate::block::ReadContext;
use crate::error::Result;
use helenus_model::deletion::DeletionTime;
use helenus_model::row::RowBuf;
use helenus_model::unfiltered::Unfiltered;

/// A position among elements, and the element that was read last.
#[derive(Default)]
pub(crate) struct ElementReader {
    cursor: Cursor,
    position: u64,
    /// The end of the element that was refused last, computed from its own size.
    refused_end: Option<u64>,
    is_marker: bool,
}

impl ElementReader {
    /// The position of the next element.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// Sets the position, which must be that of an element.
    pub(crate) fn go_to(&mut self, position: u64) {
        (self.position, self.refused_end) = (position, None);
    }

    /// Reads the front of the partition at `start` into `key` and `static_row`, and returns its deletion. The position
    /// is then that of the first element.
    pub(crate) fn front(
        &mut self,
        rows: Rows<'_>,
        start: u64,
        (key, static_row): (&mut Vec<u8>, &mut RowBuf),
        cx: &mut ReadContext,
    ) -> Result<DeletionTime> {
        static_row.clear();
        let front = self.cursor.partition_front(rows, start, key, cx)?;
        let mut next = front.next;
        if !rows.layout.statics.is_empty() {
            next = self.cursor.static_row(rows, next, Some(static_row), cx)?;
        }
        self.go_to(next);
        Ok(front.deletion)
    }

    /// Reads the next element, for `current`. At the end of the partition it moves past it and returns `false`.
    pub(crate) fn advance(&mut self, rows: Rows<'_>, cx: &mut ReadContext) -> Result<bool> {
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
            // A row that contains only cells of dropped columns is not returned.
            if self.is_marker || !self.cursor.row_view().is_empty() {
                return Ok(true);
            }
        }
    }

    /// The element that `advance` read.
    pub(crate) fn current(&self) -> Unfiltered<'_> {
        if self.is_marker {
            Unfiltered::Marker(self.cursor.marker_view())
        } else {
            Unfiltered::Row(self.cursor.row_view())
        }
    }

    /// Skips the element whose body was refused, if its size is credible: the next element must contain the same size,
    /// or be the end of the partition.
    pub(crate) fn pass_refused(&mut self, rows: Rows<'_>, cx: &mut ReadContext) -> bool {
        let Some(end) = self.refused_end.take() else { return false };
        let found = self.cursor.extent(rows, end, cx);
        let is_next = found
            .is_ok_and(|found| found.head.kind == HeadKind::End || found.head.back == end - self.position);
        if is_next {
            self.position = end;
        }
        is_next
    }
}
