//! Decodes row batches: consecutive rows that contain only values, for readers that take many rows at once.
//!
//! Such a row is a plain one (see `plain`) without expiry. Only the spans and timestamps of its values are kept. The
//! bounds of the values are checked once, at the end of the row, because each value begins where the one before it
//! ends.

use super::decode::{flags, spot};
use super::input::{byte_at, length_at, vint_at};
use super::layout::{ClusteringLayout, PlainColumn, RowLayout};
use super::skip::BoundValues;
use helenus_model::row_batch::BatchValue;
use std::cmp::Ordering;

/// Decodes the rows of row batches of one file.
pub(super) struct BatchRows<'a> {
    layout: &'a RowLayout,
    columns: &'a [PlainColumn],
}

/// The end of a decoded row.
#[derive(Clone, Copy)]
pub(super) struct BatchRow {
    /// The offset of its end.
    pub(super) end: usize,
    /// As in `Head`.
    pub(super) back: u64,
}

/// Flags of elements that cannot belong to a row batch.
const UNUSUAL: u8 = flags::END_OF_PARTITION
    | flags::IS_MARKER
    | flags::EXTENSION
    | flags::HAS_TTL
    | flags::HAS_DELETION
    | flags::HAS_COMPLEX_DELETION;

/// The flags that a cell in a row batch may have.
const CELL_FLAGS: u8 = flags::CELL_ROW_TIMESTAMP | flags::CELL_EMPTY_VALUE;

impl<'a> BatchRows<'a> {
    /// `None` if no row of the file can belong to a row batch.
    pub(super) fn of(layout: &'a RowLayout) -> Option<BatchRows<'a>> {
        let columns = layout.regulars.plain.as_deref()?;
        (layout.has_plain_heads() && !columns.is_empty()).then_some(BatchRows { layout, columns })
    }

    /// The number of values of a row, clustering values included.
    pub(super) fn stride(&self) -> usize {
        self.layout.clustering.len() + self.columns.len()
    }

    /// The number of cells of a row.
    pub(super) fn cells(&self) -> usize {
        self.columns.len()
    }

    /// Decodes the row at `at` into `values`, which has `stride` elements; `None` if the row cannot belong to a row
    /// batch.
    #[inline(always)]
    pub(super) fn decode(&self, bytes: &[u8], at: usize, values: &mut [BatchValue]) -> Option<BatchRow> {
        let bits = byte_at(bytes, at)?;
        if bits & (UNUSUAL | flags::HAS_ALL_COLUMNS) != flags::HAS_ALL_COLUMNS {
            return None;
        }
        // One header describes all clustering values; 0 means that each is present and not empty.
        if byte_at(bytes, at + 1)? != 0 {
            return None;
        }
        let mut at = at + 2;
        let (clustering, cells) = values.split_at_mut_checked(self.layout.clustering.len())?;
        for (value, column) in clustering.iter_mut().zip(&self.layout.clustering) {
            let length;
            (length, at) = length_of(column.fixed, bytes, at)?;
            value.value = spot(at, length);
            at += length;
        }
        // Both sizes, as `decode::sized` reads them.
        let (size, back);
        (size, at) = length_at(bytes, at)?;
        let end = at + size;
        (back, at) = vint_at(bytes, at)?;
        let mut timestamp_us = i64::MIN;
        if bits & flags::HAS_TIMESTAMP != 0 {
            let stored;
            (stored, at) = vint_at(bytes, at)?;
            timestamp_us = self.layout.based(stored);
        }
        for value in clustering {
            value.timestamp_us = timestamp_us;
        }
        for (cell, column) in cells.iter_mut().zip(self.columns) {
            let bits = byte_at(bytes, at)?;
            at += 1;
            if bits & !CELL_FLAGS != 0 {
                return None;
            }
            cell.timestamp_us = timestamp_us;
            if bits & flags::CELL_ROW_TIMESTAMP == 0 {
                let stored;
                (stored, at) = vint_at(bytes, at)?;
                cell.timestamp_us = self.layout.based(stored);
            }
            let mut length = 0;
            if bits & flags::CELL_EMPTY_VALUE == 0 {
                (length, at) = length_of(column.fixed, bytes, at)?;
            }
            cell.value = spot(at, length);
            at += length;
        }
        (at == end && end <= bytes.len()).then_some(BatchRow { end, back })
    }

    /// Compares a decoded row with the bound; `None` if its values cannot decide.
    pub(super) fn compare(
        &self,
        bound: &BoundValues,
        bytes: &[u8],
        values: &[BatchValue],
    ) -> Option<Ordering> {
        let mut order = Ordering::Equal;
        let clustering: &[ClusteringLayout] = &self.layout.clustering;
        for (index, (value, column)) in values.iter().zip(clustering).enumerate() {
            order = bound.compare((index, column), value.value.bytes(bytes), order)?;
        }
        bound.finish(order)
    }
}

/// The length of a value, and the offset at which it begins.
#[inline(always)]
fn length_of(fixed: Option<usize>, bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    match fixed {
        Some(length) => Some((length, at)),
        None => length_at(bytes, at),
    }
}
