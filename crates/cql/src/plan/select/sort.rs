//! Sorts the rows of several partitions: IN on the partition key with ORDER BY (`SelectStatement.orderResults`).
//!
//! All rows are kept until the last one is read, then sorted, cut at the limit and written out. Such statements cannot
//! be paged.

use super::row::RowAt;
use crate::analysis::selection::Source;
use crate::answer::RowsOut;
use helenus_model::schema::Column;
use helenus_model::types::CqlType;
use std::cmp::Ordering;

/// The columns by which rows are sorted.
#[derive(Clone, Debug)]
pub(super) struct Sort {
    /// Each with its type, and whether greater values come first.
    columns: Vec<(Source, CqlType, bool)>,
    /// Whether the order is against the clustering order. Rows without clustering values, which have static columns
    /// only, come first in clustering order and so last against it.
    reversed: bool,
}

impl Sort {
    /// Sorts by these clustering columns, in clustering order, or against it if `reversed`.
    pub(super) fn new<'c>(columns: impl Iterator<Item = &'c Column>, reversed: bool) -> Sort {
        let by = |column: &Column| (Source::of(column), column.ty.clone(), column.reversed != reversed);
        Sort { columns: columns.map(by).collect(), reversed }
    }
}

/// Rows that are kept until they are sorted. All bytes are in one buffer; a value is a range in it, or null.
#[derive(Default)]
pub(super) struct SortBuffer {
    bytes: Vec<u8>,
    /// For each row: the values it is sorted by, then its cells.
    values: Vec<Option<(usize, usize)>>,
    rows: usize,
}

impl RowsOut for SortBuffer {
    fn columns(&mut self, _columns: &std::sync::Arc<crate::answer::ResultColumns>) {}

    fn cell(&mut self, value: Option<&[u8]>) {
        let start = self.bytes.len();
        self.values.push(value.map(|value| {
            self.bytes.extend_from_slice(value);
            (start, self.bytes.len())
        }));
    }

    fn end_row(&mut self) {
        self.rows += 1;
    }

    fn bytes(&self) -> usize {
        self.bytes.len()
    }

    fn clear(&mut self) {
        *self = SortBuffer::default();
    }
}

impl SortBuffer {
    /// Begins a row: keeps the values by which it is sorted.
    pub(super) fn begin_row(&mut self, sort: &Sort, row: &RowAt<'_>, scratch: &mut Vec<u8>) {
        for (source, ..) in &sort.columns {
            self.cell(row.value(source, scratch));
        }
    }

    /// Writes the rows in order, at most `limit` of them.
    pub(super) fn write(&self, sort: &Sort, limit: u64, out: &mut dyn RowsOut) {
        if self.rows == 0 {
            return;
        }
        let width = self.values.len() / self.rows;
        let mut rows: Vec<&[Option<(usize, usize)>]> = self.values.chunks(width).collect();
        rows.sort_by(|a, b| self.compare(sort, a, b));
        for row in rows.into_iter().take(usize::try_from(limit).unwrap_or(usize::MAX)) {
            for value in row.iter().skip(sort.columns.len()) {
                out.cell(self.get(value));
            }
            out.end_row();
        }
    }

    fn get(&self, value: &Option<(usize, usize)>) -> Option<&[u8]> {
        value.and_then(|(start, end)| self.bytes.get(start..end))
    }

    fn compare(&self, sort: &Sort, a: &[Option<(usize, usize)>], b: &[Option<(usize, usize)>]) -> Ordering {
        for (index, (_, ty, descending)) in sort.columns.iter().enumerate() {
            let value = |row: &[Option<(usize, usize)>]| row.get(index).and_then(|value| self.get(value));
            let (order, against) = match (value(a), value(b)) {
                (Some(a), Some(b)) => (ty.compare(a, b), *descending),
                (a, b) => (a.is_some().cmp(&b.is_some()), sort.reversed),
            };
            let order = if against { order.reverse() } else { order };
            if order.is_ne() {
                return order;
            }
        }
        Ordering::Equal
    }
}
