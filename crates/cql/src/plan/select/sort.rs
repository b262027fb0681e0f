//! Sorts the rows of several partitions: IN on the partition key with ORDER BY (`SelectStatement.orderResults`).
//!
//! All rows are kept until the last one is read, then sorted, cut at the limit and written out. Such statements cannot
//! be paged.

use super::row::RowAt;
use crate::analysis::selection::Source;
use crate::answer::RowsOut;
use crate::budget::RequestBudget;
use crate::cost::SHORT_VALUES_PER_STEP;
use crate::error::Result;
use helenus_engine::account::{self, Refusal};
use helenus_model::permission::try_sort;
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

/// The bytes of a row in the list that is sorted, with its part of the sort's own memory (`try_sort`).
const ROW_BYTES: usize = 64;

/// The range of a value in a buffer; `None` for null.
type Place = Option<(usize, usize)>;

/// Rows that are kept until they are sorted. All bytes are in one buffer; a value is a range in it, or null.
#[derive(Default)]
pub(super) struct SortBuffer {
    bytes: Vec<u8>,
    /// For each row: the values it is sorted by, then its cells.
    values: Vec<Place>,
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

    fn make_room(&mut self, bytes: usize) -> std::result::Result<(), Refusal> {
        if self.values.len() == self.values.capacity() {
            // It doubles, and the old ones are there until they are copied.
            account::grow(2 * size_of_val(&*self.values))?;
        }
        account::reserve(&mut self.bytes, bytes)
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
    ///
    /// # Errors
    /// There is no memory for them.
    pub(super) fn begin_row(&mut self, sort: &Sort, row: &RowAt<'_>, scratch: &mut Vec<u8>) -> Result<()> {
        for (source, ..) in &sort.columns {
            let value = row.value(source, scratch);
            self.make_room(value.map_or(0, <[u8]>::len))?;
            self.cell(value);
        }
        Ok(())
    }

    /// Writes the rows in order, at most `limit` of them.
    ///
    /// # Errors
    /// There is no memory for the answer, or the request has taken too long.
    pub(super) fn write(
        &self,
        sort: &Sort,
        limit: u64,
        (work, out): (&RequestBudget<'_>, &mut dyn RowsOut),
    ) -> Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        account::grow(ROW_BYTES * self.rows)?;
        let width = self.values.len() / self.rows;
        let rows: Vec<&[Place]> = self.values.chunks(width).collect();
        let mut compared = 0_usize;
        let rows = try_sort(rows, &mut |a, b| {
            compared += 1;
            work.steps(usize::from(compared.is_multiple_of(SHORT_VALUES_PER_STEP)))?;
            self.compare(sort, (a, b), work)
        })?;
        for row in rows.into_iter().take(usize::try_from(limit).unwrap_or(usize::MAX)) {
            for value in row.iter().skip(sort.columns.len()) {
                let value = self.get(value);
                out.make_room(value.map_or(0, <[u8]>::len))?;
                out.cell(value);
            }
            out.end_row();
        }
        Ok(())
    }

    fn get(&self, value: &Place) -> Option<&[u8]> {
        value.and_then(|(start, end)| self.bytes.get(start..end))
    }

    fn compare(
        &self,
        sort: &Sort,
        (a, b): (&[Place], &[Place]),
        work: &RequestBudget<'_>,
    ) -> Result<Ordering> {
        for (index, (_, ty, descending)) in sort.columns.iter().enumerate() {
            let value = |row: &[Place]| row.get(index).and_then(|value| self.get(value));
            let (order, against) = match (value(a), value(b)) {
                (Some(a), Some(b)) => (work.order(ty, a, b)?, *descending),
                (a, b) => (a.is_some().cmp(&b.is_some()), sort.reversed),
            };
            let order = if against { order.reverse() } else { order };
            if order.is_ne() {
                return Ok(order);
            }
        }
        Ok(Ordering::Equal)
    }
}
