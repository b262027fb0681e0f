//! Row batches: consecutive rows without deletions and expiry, whose values every reader sees.
//!
//! Most rows of most tables are of this kind. A batch passes many of them in one call, whereas a `RowView` costs
//! several calls for each row.

use crate::cell::{ColumnId, Span};

/// A clustering value or the value of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchValue {
    /// Span in the batch's data; never null.
    pub value: Span,
    /// Write timestamp of a cell, microseconds. For a clustering value: the timestamp of the row's marker, or
    /// `i64::MIN`.
    pub timestamp_us: i64,
}

impl BatchValue {
    /// An empty value without a timestamp.
    pub const EMPTY: BatchValue = BatchValue { value: Span::EMPTY, timestamp_us: i64::MIN };
}

/// A row batch under construction. Its memory is reused from one batch to the next.
#[derive(Debug, Default)]
pub struct RowBatchBuf {
    values: Vec<BatchValue>,
    stride: usize,
    rows: usize,
}

/// Maximum number of values in a batch: it fits the processor's L1 cache.
const VALUES_MAX: usize = 512;

impl RowBatchBuf {
    /// Begins a batch of up to `rows` rows with `stride` values each. Returns how many rows fit.
    pub fn begin(&mut self, stride: usize, rows: usize) -> usize {
        (self.stride, self.rows) = (stride, 0);
        let fit = VALUES_MAX.checked_div(stride).unwrap_or(0).min(rows);
        if self.values.len() < fit * stride {
            self.values.resize(fit * stride, BatchValue::EMPTY);
        }
        fit
    }

    /// The values of the next row, to be filled in; `None` if the batch is full. The row is added by `push`.
    #[inline(always)]
    pub fn next_row(&mut self) -> Option<&mut [BatchValue]> {
        let start = self.rows * self.stride;
        self.values.get_mut(start..start + self.stride)
    }

    /// Adds the row whose values were written to `next_row`.
    #[inline(always)]
    pub fn push(&mut self) {
        self.rows += 1;
    }

    /// Keeps only the first `rows` rows.
    pub fn truncate(&mut self, rows: usize) {
        self.rows = self.rows.min(rows);
    }

    /// Number of rows.
    #[inline]
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there are no rows.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// The values of all rows, row by row.
    pub fn values(&self) -> &[BatchValue] {
        self.values.get(..self.rows * self.stride).unwrap_or(&[])
    }
}

/// Consecutive rows in the direction of the read, all with the same columns.
#[derive(Clone, Copy, Debug)]
pub struct RowBatch<'a> {
    /// Row by row: the clustering values, then those of `columns`. A row has at least one value.
    pub values: &'a [BatchValue],
    /// The bytes that the spans of `values` refer to.
    pub data: &'a [u8],
    /// Number of clustering values in a row.
    pub clustering: usize,
    /// The columns of the cells, ascending.
    pub columns: &'a [ColumnId],
}

/// The source of one column of an answer in each row of a batch.
#[derive(Clone, Copy, Debug)]
pub enum BatchColumn<'a> {
    /// The value at this index of the row.
    Value(usize),
    /// The same in every row: a value, or null.
    Fixed(Option<&'a [u8]>),
}

impl<'a> RowBatch<'a> {
    /// Number of values in a row.
    #[inline]
    pub fn stride(&self) -> usize {
        self.clustering + self.columns.len()
    }

    /// Number of rows.
    #[inline]
    pub fn len(&self) -> usize {
        self.values.len().checked_div(self.stride()).unwrap_or(0)
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The values of each row: the clustering values, then those of `columns`.
    #[inline]
    pub fn rows(&self) -> std::slice::ChunksExact<'a, BatchValue> {
        self.values.chunks_exact(self.stride().max(1))
    }

    /// The bytes of a value.
    #[inline]
    pub fn bytes(&self, value: &BatchValue) -> &'a [u8] {
        value.value.bytes(self.data)
    }

    /// Index of a column's value in a row; `None` if the rows do not have the column. `near` is its index among the
    /// cells of most files, and is tried first.
    pub fn value_index_of(&self, column: ColumnId, near: usize) -> Option<usize> {
        let place = match self.columns.get(near) {
            Some(found) if *found == column => near,
            _ => self.columns.binary_search(&column).ok()?,
        };
        Some(self.clustering + place)
    }
}
