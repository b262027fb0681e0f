//! Decodes runs of rows that hold nothing but values, for readers that take many at once.
//!
//! Such a row is a plain one (see `plain`) without expiry. Nothing of it is kept but where its values lie and their
//! timestamps; whether all of that lies within the bytes is checked once, at the row's end: each value begins where the one
//! before it ends.

use super::decode::{flags, spot};
use super::input::{byte_at, length_at, vint_at};
use super::layout::{ClusteringLayout, PlainColumn, RowLayout};
use super::skip::BoundValues;
use helenus_model::run::RunValue;
use std::cmp::Ordering;

/// How the rows of a run lie in a file.
pub(super) struct RunRows<'a> {
    layout: &'a RowLayout,
    columns: &'a [PlainColumn],
}

/// Where a decoded row ends.
#[derive(Clone, Copy)]
pub(super) struct RunRow {
    /// In the bytes in hand.
    pub(super) end: usize,
    /// As in `Head`.
    pub(super) back: u64,
}

/// Flags of a row that is none of a run, or not known to be.
const UNUSUAL: u8 = flags::END_OF_PARTITION
    | flags::IS_MARKER
    | flags::EXTENSION
    | flags::HAS_TTL
    | flags::HAS_DELETION
    | flags::HAS_COMPLEX_DELETION;

/// Flags of a cell of a run.
const CELL_FLAGS: u8 = flags::CELL_ROW_TIMESTAMP | flags::CELL_EMPTY_VALUE;

impl<'a> RunRows<'a> {
    /// `None` where no row of the file belongs to a run.
    pub(super) fn of(layout: &'a RowLayout) -> Option<RunRows<'a>> {
        let columns = layout.regulars.plain.as_deref()?;
        (layout.has_plain_heads() && !columns.is_empty()).then_some(RunRows { layout, columns })
    }

    /// Values of a row.
    pub(super) fn stride(&self) -> usize {
        self.layout.clustering.len() + self.columns.len()
    }

    /// Those of its cells.
    pub(super) fn cells(&self) -> usize {
        self.columns.len()
    }

    /// Decodes the row at `at` into as many values as it has, if it is of a run.
    #[inline(always)]
    pub(super) fn decode(&self, bytes: &[u8], at: usize, values: &mut [RunValue]) -> Option<RunRow> {
        let bits = byte_at(bytes, at)?;
        if bits & (UNUSUAL | flags::HAS_ALL_COLUMNS) != flags::HAS_ALL_COLUMNS {
            return None;
        }
        // One header tells of all clustering values: each is there and not empty.
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
        (at == end && end <= bytes.len()).then_some(RunRow { end, back })
    }

    /// Where a decoded row lies, seen from the bound; `None` where its values cannot tell.
    pub(super) fn compare(&self, bound: &BoundValues, bytes: &[u8], values: &[RunValue]) -> Option<Ordering> {
        let mut order = Ordering::Equal;
        let clustering: &[ClusteringLayout] = &self.layout.clustering;
        for (index, (value, column)) in values.iter().zip(clustering).enumerate() {
            order = bound.compare((index, column), value.value.bytes(bytes), order)?;
        }
        bound.finish(order)
    }
}

/// The length of a value, and where the value begins.
#[inline(always)]
fn length_of(fixed: Option<usize>, bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    match fixed {
        Some(length) => Some((length, at)),
        None => length_at(bytes, at),
    }
}
