//! Reads the elements (rows and markers) of a partition from any position, so that `crate::scrub` can continue after
//! damage.
//!
//! Unlike `PartitionReader` it can be used after an error: its position is unchanged, and can be set.

use super::cursor::{Cursor, Found, Rows};
use super::decode::HeadKind;
use crate::block::ReadContext;
use crate::compression::WHOLE;
use crate::error::Result;
use helenus_model::deletion::DeletionTime;
use helenus_model::row::RowBuf;
use helenus_model::unfiltered::Unfiltered;

/// The most bytes of the head of an element that is only supposed to be one. A clustering value has at most 64 KiB, and
/// few tables have more than one long value.
const SUPPOSED_HEAD_BYTES_MAX: usize = 128 << 10;

/// An element that was found by `ElementReader::supposed`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Supposed {
    /// The position behind it.
    pub(crate) end: u64,
    /// The distance back to the start of the element before it or, for the first of a partition, to the start of the
    /// partition. `None` for the end of a partition, which does not contain it.
    pub(crate) back: Option<u64>,
}

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

    /// Reads the key of the partition at `start` into `key`, and returns its deletion and the position of what follows:
    /// the static row or the first element.
    pub(crate) fn key(
        &mut self,
        rows: Rows<'_>,
        start: u64,
        key: &mut Vec<u8>,
        cx: &mut ReadContext,
    ) -> Result<(DeletionTime, u64)> {
        let front = self.cursor.partition_front(rows, start, key, cx)?;
        Ok((front.deletion, front.next))
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

    /// Decodes the element that may begin at a position, which need not be that of an element. It must end at `limit` or
    /// before, and `is_likely` must accept its sizes before its body is read. `current` returns it then; the position
    /// is unchanged. `None` if no element begins there.
    pub(crate) fn supposed(
        &mut self,
        rows: Rows<'_>,
        (position, limit): (u64, u64),
        is_likely: impl Fn(Supposed) -> bool,
        cx: &mut ReadContext,
    ) -> Result<Option<Supposed>> {
        let found = match self.cursor.extent_within(rows, position, SUPPOSED_HEAD_BYTES_MAX, cx) {
            Ok(found) => found,
            Err(error) => return if is_there(rows, position, cx) { Ok(None) } else { Err(error) },
        };
        let supposed = supposed(&found);
        if found.next > limit || !is_likely(supposed) {
            return Ok(None);
        }
        if found.is_end() {
            return Ok(Some(supposed));
        }
        let decoded = self.cursor.head(rows, position, cx).and_then(|found| {
            self.is_marker = found.head.kind != HeadKind::Row;
            if self.is_marker {
                self.cursor.marker_body(rows, &found, cx)
            } else {
                self.cursor.row_body(rows, &found, cx)
            }
        });
        match decoded {
            Ok(()) => Ok(Some(supposed)),
            Err(error) => {
                let last = found.next.saturating_sub(1);
                if is_there(rows, last, cx) { Ok(None) } else { Err(error) }
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

fn supposed(found: &Found) -> Supposed {
    let back = if found.is_end() { None } else { Some(found.head.back) };
    Supposed { end: found.next, back }
}

/// Whether the block with a position can be read.
fn is_there(rows: Rows<'_>, position: u64, cx: &mut ReadContext) -> bool {
    let number = position / rows.data.block_bytes().max(1) as u64;
    rows.data.block(number, WHOLE, cx).is_ok()
}
