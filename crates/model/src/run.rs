//! Runs of rows that hold nothing but values: no deletion, no expiry, every value alive for any reader.
//!
//! Most rows of most tables are such. Handed on together they cost a call for many of them, where a `RowView` costs
//! several for each.

use crate::cell::{ColumnId, Span};

/// A clustering value or the value of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunValue {
    /// Where it lies in the run's data; never null.
    pub value: Span,
    /// Write timestamp of a cell, microseconds. Of a clustering value: that of the row's own marker, or `i64::MIN`.
    pub timestamp_us: i64,
}

impl RunValue {
    /// An empty value without a timestamp.
    pub const EMPTY: RunValue = RunValue { value: Span::EMPTY, timestamp_us: i64::MIN };
}

/// Values of a run in the making. Its memory stays from one run to the next.
#[derive(Debug, Default)]
pub struct RunBuf {
    values: Vec<RunValue>,
    stride: usize,
    rows: usize,
}

/// Values that a run has at most: they stay in the processor's nearest cache.
const VALUES_MAX: usize = 512;

impl RunBuf {
    /// Begins a run of up to `rows` rows of `stride` values each; how many fit.
    pub fn begin(&mut self, stride: usize, rows: usize) -> usize {
        (self.stride, self.rows) = (stride, 0);
        let fit = VALUES_MAX.checked_div(stride).unwrap_or(0).min(rows);
        if self.values.len() < fit * stride {
            self.values.resize(fit * stride, RunValue::EMPTY);
        }
        fit
    }

    /// Where the values of the next row go; `None` if there is no room for it. It counts when `push` is called.
    #[inline(always)]
    pub fn room(&mut self) -> Option<&mut [RunValue]> {
        let start = self.rows * self.stride;
        self.values.get_mut(start..start + self.stride)
    }

    /// The row whose values were put where `room` said belongs to the run.
    #[inline(always)]
    pub fn push(&mut self) {
        self.rows += 1;
    }

    /// Keeps the first rows only.
    pub fn truncate(&mut self, rows: usize) {
        self.rows = self.rows.min(rows);
    }

    /// Rows so far.
    #[inline]
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// The values of each row so far, row by row.
    pub fn values(&self) -> &[RunValue] {
        self.values.get(..self.rows * self.stride).unwrap_or(&[])
    }
}

/// Rows one after another in the direction of the read, all of the same columns.
#[derive(Clone, Copy, Debug)]
pub struct RowRun<'a> {
    /// Row by row: the clustering values, then those of `columns`. At least one value a row.
    pub values: &'a [RunValue],
    /// What their spans index.
    pub data: &'a [u8],
    /// Clustering values of a row.
    pub clustering: usize,
    /// The columns of the cells, ascending.
    pub columns: &'a [ColumnId],
}

/// What one column of an answer takes out of each row of a run.
#[derive(Clone, Copy, Debug)]
pub enum RunColumn<'a> {
    /// The value at this place of the row.
    Value(usize),
    /// The same in every row: the value, or null.
    Fixed(Option<&'a [u8]>),
}

impl<'a> RowRun<'a> {
    /// Values of a row.
    #[inline]
    pub fn stride(&self) -> usize {
        self.clustering + self.columns.len()
    }

    /// Rows.
    #[inline]
    pub fn len(&self) -> usize {
        self.values.len().checked_div(self.stride()).unwrap_or(0)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The values of each row: the clustering's, then those of `columns`.
    #[inline]
    pub fn rows(&self) -> std::slice::ChunksExact<'a, RunValue> {
        self.values.chunks_exact(self.stride().max(1))
    }

    /// The bytes of a value.
    #[inline]
    pub fn bytes(&self, value: &RunValue) -> &'a [u8] {
        value.value.bytes(self.data)
    }

    /// Where in a row the value of a column stands, which is at `near` among the cells of most files; `None` if the rows
    /// have no such column.
    pub fn place_of(&self, column: ColumnId, near: usize) -> Option<usize> {
        let place = match self.columns.get(near) {
            Some(found) if *found == column => near,
            _ => self.columns.binary_search(&column).ok()?,
        };
        Some(self.clustering + place)
    }
}
