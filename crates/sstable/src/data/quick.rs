//! Decodes the columns of a row the usual way: places stay in a register from one field to the next, and where the last value
//! ends is checked once, at the row's end.
//!
//! `decode` calls it first for every row that is not of a plain run: rows with collections, with some of the columns only, with
//! tombstones of cells. What it does not answer — the row's own deletion, columns out of order, bytes that end too early, damage —
//! `decode` begins anew, which also says what is wrong.

use super::decode::{Head, expiry, flags, spot};
use super::input::{Input, byte_at, length_at, vint_at};
use super::layout::{ColumnLayout, ColumnSet, RowLayout};
use helenus_model::cell::{Cell, Span};
use helenus_model::deletion::{DeletionTime, Liveness, NO_EXPIRY};
use helenus_model::row::RowBuf;

/// Columns whose absence a row says by a bit each (`decode::some_columns`).
const COLUMNS_BY_BITS: usize = 64;

impl RowLayout {
    /// Decodes the body of a row into `row`, whose key and clustering stay, and adds its tombstones. `None`: it has to be decoded
    /// anew, and `row` holds what was read of it.
    #[inline]
    pub(super) fn quick_columns(
        &self,
        bytes: &[u8],
        head: &Head,
        (row, tombstones): (&mut RowBuf, &mut u64),
        set: &ColumnSet,
    ) -> Option<()> {
        let bits = head.flags;
        if bits & flags::HAS_DELETION != 0 || !set.ascending || head.end > bytes.len() {
            return None;
        }
        row.clear_body();
        let mut at = head.body;
        if bits & flags::HAS_TIMESTAMP != 0 {
            let stored;
            (stored, at) = vint_at(bytes, at)?;
            row.liveness = Liveness::at(self.based(stored));
            if bits & flags::HAS_TTL != 0 {
                at = self.row_ttl(bytes, at, &mut row.liveness)?;
            }
        }
        let mut absent = 0;
        if bits & flags::HAS_ALL_COLUMNS == 0 {
            (absent, at) = vint_at(bytes, at)?;
            if set.columns.len() >= COLUMNS_BY_BITS || absent >> set.columns.len() != 0 {
                return None;
            }
        }
        let mut passed = 0;
        for column in &set.columns {
            let is_absent = absent & 1 != 0;
            absent >>= 1;
            if is_absent {
                continue;
            }
            let mut count = 1;
            if column.multi_cell {
                if bits & flags::HAS_COMPLEX_DELETION != 0 {
                    at = self.complex_deletion(bytes, at, column, (row, &mut passed))?;
                }
                (count, at) = length_at(bytes, at)?;
            }
            for _ in 0..count {
                at = self.quick_cell(bytes, at, column, (row, &mut passed))?;
            }
        }
        if at != head.end {
            return None;
        }
        *tombstones += passed;
        Some(())
    }

    /// What replaced a collection, or a live time; where it ends.
    #[inline]
    fn complex_deletion(
        &self,
        bytes: &[u8],
        at: usize,
        column: &ColumnLayout,
        (row, passed): (&mut RowBuf, &mut u64),
    ) -> Option<usize> {
        let (stored, at) = vint_at(bytes, at)?;
        let timestamp_us = self.based(stored);
        let (stored, at) = vint_at(bytes, at)?;
        let local_s = self.local_deletion_from(i32::try_from(stored as i64).ok()?);
        if timestamp_us == DeletionTime::LIVE.timestamp_us {
            return Some(at);
        }
        let dropped = column.dropped_us.is_some_and(|at| timestamp_us <= at);
        if let Some(id) = column.id.filter(|_| !dropped) {
            row.complex_deletions.push((id, DeletionTime { timestamp_us, local_s }));
            *passed += 1;
        }
        Some(at)
    }

    /// One cell; where it ends.
    #[inline(always)]
    fn quick_cell(
        &self,
        bytes: &[u8],
        at: usize,
        column: &ColumnLayout,
        (row, passed): (&mut RowBuf, &mut u64),
    ) -> Option<usize> {
        let bits = byte_at(bytes, at)?;
        let mut at = at + 1;
        if bits > flags::CELL_ALL {
            return None;
        }
        let mut timestamp_us = row.liveness.timestamp_us;
        if bits & flags::CELL_ROW_TIMESTAMP == 0 {
            let stored;
            (stored, at) = vint_at(bytes, at)?;
            timestamp_us = self.based(stored);
        }
        let (mut ttl_s, mut local_deletion_s) = (0, NO_EXPIRY);
        if bits & flags::CELL_ROW_TTL != 0 {
            (ttl_s, local_deletion_s) = (row.liveness.ttl_s, row.liveness.expires_s);
        } else if bits & (flags::CELL_DELETED | flags::CELL_EXPIRING) != 0 {
            let mut input = Input::new(bytes, at);
            local_deletion_s = self.local_deletion(&mut input).ok()?;
            if bits & flags::CELL_EXPIRING != 0 {
                ttl_s = self.ttl(&mut input).ok()?;
            }
            local_deletion_s = expiry(local_deletion_s, ttl_s);
            at = input.at();
        }
        let mut path = Span::NULL;
        if column.multi_cell {
            let length;
            (length, at) = length_at(bytes, at)?;
            path = spot(at, length);
            at += length;
        }
        let mut value = Span::EMPTY;
        if bits & flags::CELL_EMPTY_VALUE == 0 {
            let length;
            (length, at) = match column.fixed {
                Some(length) => (length, at),
                None => length_at(bytes, at)?,
            };
            value = spot(at, length);
            at += length;
        }
        if let Some(id) = column.id
            && column.dropped_us.is_none_or(|dropped| timestamp_us > dropped)
        {
            *passed += u64::from(bits & flags::CELL_DELETED != 0);
            row.cells.push(Cell { column: id, ttl_s, timestamp_us, local_deletion_s, path, value });
        }
        Some(at)
    }
}
