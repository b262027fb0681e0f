//! Decodes consecutive plain rows. A plain row has all clustering values (see `skip`) and every column of the file, one
//! cell for each column, and no deletion. Most rows of most tables are plain.
//!
//! Everything that these rows have in common is looked up once and written to the `RowBuf` once. Rows that are not
//! plain are left to `head` and `row_body`, which decode them from the start.

use super::decode::{flags, spot};
use super::input::{byte_at, length_at, vint_at};
use super::layout::{ClusteringLayout, PlainColumn, RowLayout};
use super::skip::BoundValues;
use helenus_model::cell::{Cell, Span};
use helenus_model::deletion::{Liveness, NO_EXPIRY};
use helenus_model::row::RowBuf;
use std::cmp::Ordering;

/// Decodes consecutive plain rows of one file, up to a bound.
pub(super) struct PlainRows<'a> {
    layout: &'a RowLayout,
    clustering: &'a [ClusteringLayout],
    columns: &'a [PlainColumn],
    /// `None` if every row is before it.
    bound: Option<&'a BoundValues>,
}

/// The result of decoding a plain row.
#[derive(Clone, Copy)]
pub(super) enum PlainRow {
    /// The row is before the bound and was decoded.
    Row {
        /// The offset of its end.
        end: usize,
        /// As in `Head`.
        back: u64,
    },
    /// The row is after the bound.
    Behind,
}

const NOT_PLAIN: u8 = flags::END_OF_PARTITION
    | flags::IS_MARKER
    | flags::EXTENSION
    | flags::HAS_DELETION
    | flags::HAS_COMPLEX_DELETION;

/// The flags that a plain cell may have.
const CELL_FLAGS: u8 = flags::CELL_ROW_TIMESTAMP | flags::CELL_ROW_TTL | flags::CELL_EMPTY_VALUE;

impl<'a> PlainRows<'a> {
    /// Prepares `row` for consecutive plain rows; `None` if the file can have no plain row.
    pub(super) fn begin(
        layout: &'a RowLayout,
        bound: &'a BoundValues,
        row: &mut RowBuf,
    ) -> Option<PlainRows<'a>> {
        let columns = layout.regulars.plain.as_deref()?;
        if !layout.clustering.is_empty() && !layout.has_plain_heads() {
            return None;
        }
        row.clear();
        row.clustering.resize(layout.clustering.len(), Span::NULL);
        let cell = |column: &PlainColumn| Cell {
            column: column.id,
            ttl_s: 0,
            timestamp_us: 0,
            local_deletion_s: NO_EXPIRY,
            path: Span::NULL,
            value: Span::EMPTY,
        };
        row.cells.extend(columns.iter().map(cell));
        let bound = Some(bound).filter(|bound| !bound.is_after_all());
        Some(PlainRows { layout, clustering: &layout.clustering, columns, bound })
    }

    /// Decodes the row at `at` into the row that `begin` prepared; `None` if it is not plain.
    ///
    /// The bounds of the values are checked once, at the end of the row, because each value begins where the one before
    /// it ends.
    #[inline(always)]
    pub(super) fn decode(&self, bytes: &[u8], at: usize, row: &mut RowBuf) -> Option<PlainRow> {
        let bits = byte_at(bytes, at)?;
        if bits & (NOT_PLAIN | flags::HAS_ALL_COLUMNS) != flags::HAS_ALL_COLUMNS {
            return None;
        }
        let mut at = at + 1;
        // One header describes all clustering values. Without clustering columns there is no header.
        if !self.clustering.is_empty() {
            if byte_at(bytes, at)? != 0 {
                return None;
            }
            at += 1;
        }
        for (span, column) in row.clustering.iter_mut().zip(self.clustering) {
            let length;
            (length, at) = match column.fixed {
                Some(length) => (length, at),
                None => length_at(bytes, at)?,
            };
            *span = spot(at, length);
            at += length;
        }
        if at > bytes.len() {
            return None;
        }
        if let Some(bound) = self.bound
            && self.compare(bound, bytes, row)? != Ordering::Less
        {
            return Some(PlainRow::Behind);
        }
        // Both sizes, as `decode::sized` reads them.
        let (size, back);
        (size, at) = length_at(bytes, at)?;
        let end = at + size;
        (back, at) = vint_at(bytes, at)?;
        let mut liveness = Liveness::NONE;
        if bits & flags::HAS_TIMESTAMP != 0 {
            let stored;
            (stored, at) = vint_at(bytes, at)?;
            liveness.timestamp_us = self.layout.based(stored);
            if bits & flags::HAS_TTL != 0 {
                at = self.layout.row_ttl(bytes, at, &mut liveness)?;
            }
        }
        row.liveness = liveness;
        for (cell, column) in row.cells.iter_mut().zip(self.columns) {
            let bits = byte_at(bytes, at)?;
            at += 1;
            if bits & !CELL_FLAGS != 0 {
                return None;
            }
            cell.timestamp_us = liveness.timestamp_us;
            if bits & flags::CELL_ROW_TIMESTAMP == 0 {
                let stored;
                (stored, at) = vint_at(bytes, at)?;
                cell.timestamp_us = self.layout.based(stored);
            }
            (cell.ttl_s, cell.local_deletion_s) = match bits & flags::CELL_ROW_TTL {
                0 => (0, NO_EXPIRY),
                _ => (liveness.ttl_s, liveness.expires_s),
            };
            cell.value = Span::EMPTY;
            if bits & flags::CELL_EMPTY_VALUE == 0 {
                let length;
                (length, at) = match column.fixed {
                    Some(length) => (length, at),
                    None => length_at(bytes, at)?,
                };
                cell.value = spot(at, length);
                at += length;
            }
        }
        (at == end && end <= bytes.len()).then_some(PlainRow::Row { end, back })
    }

    /// Compares a row with the bound; `None` if its values cannot decide or are not within `bytes`.
    #[inline]
    fn compare(&self, bound: &BoundValues, bytes: &[u8], row: &RowBuf) -> Option<Ordering> {
        let mut order = Ordering::Equal;
        for (index, (span, column)) in row.clustering.iter().zip(self.clustering).enumerate() {
            let start = span.start as usize;
            let value = bytes.get(start..start + span.len as usize)?;
            order = bound.compare((index, column), value, order)?;
        }
        bound.finish(order)
    }
}
