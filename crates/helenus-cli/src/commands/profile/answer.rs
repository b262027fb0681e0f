//! The answer of a query in the form an encoder would write it, and its check.

use super::cases::Query;
use super::rows::Partition;
use crate::commands::stress::content::{name, wide_value};
use std::fmt;

/// The names and values of the returned columns, in order.
#[derive(Debug, Default)]
pub(super) struct Answer {
    /// The cells: four bytes of length, then the bytes.
    bytes: Vec<u8>,
    columns: u64,
    /// The expected answer, rebuilt for each check.
    expected: Vec<u8>,
}

/// The length that marks a null cell.
const NULL: u32 = u32::MAX;

fn put(bytes: &mut Vec<u8>, cell: Option<&[u8]>) {
    bytes.extend_from_slice(&cell.map_or(NULL, |cell| cell.len() as u32).to_be_bytes());
    bytes.extend_from_slice(cell.unwrap_or_default());
}

/// The difference between an answer and the expected one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Mismatch {
    /// Another number of columns.
    Count { expected: u64, found: u64 },
    /// Another name or value of a column.
    Cell { column: u64, is_name: bool, expected: Vec<u8>, found: Option<Vec<u8>> },
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mismatch::Count { expected, found } => write!(f, "{found} columns instead of {expected}"),
            Mismatch::Cell { column, is_name, expected, found } => {
                let what = if *is_name { "name" } else { "value" };
                write!(f, "the {what} of column {column} of the answer is ")?;
                match found {
                    Some(found) => write!(f, "`{}`", found.escape_ascii())?,
                    None => write!(f, "null")?,
                }
                write!(f, " instead of `{}`", expected.escape_ascii())
            }
        }
    }
}

impl std::error::Error for Mismatch {}

impl Answer {
    /// Empties the answer and keeps its memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.columns = 0;
    }

    /// Adds a column.
    #[inline]
    pub fn push(&mut self, name: Option<&[u8]>, value: Option<&[u8]>) {
        put(&mut self.bytes, name);
        put(&mut self.bytes, value);
        self.columns += 1;
    }

    /// The number of columns returned.
    pub fn columns(&self) -> u64 {
        self.columns
    }

    /// Compares the answer with the loaded data.
    pub fn check(&mut self, partition: Partition, query: &Query) -> Result<(), Mismatch> {
        let columns = query.expected(partition.order, partition.row);
        self.expected.clear();
        for column in &columns {
            put(&mut self.expected, Some(&name(*column)));
            put(&mut self.expected, Some(&wide_value(partition.row.width, *column)));
        }
        if self.bytes == self.expected {
            return Ok(());
        }
        let count = columns.len() as u64;
        Err(self.first_difference().unwrap_or(Mismatch::Count { expected: count, found: self.columns }))
    }

    fn first_difference(&self) -> Option<Mismatch> {
        let (found, expected) = (Cells(&self.bytes), Cells(&self.expected));
        let (at, (found, expected)) = found.zip(expected).enumerate().find(|(_, (a, b))| a != b)?;
        Some(Mismatch::Cell {
            column: at as u64 / 2,
            is_name: at % 2 == 0,
            expected: expected.unwrap_or_default().to_vec(),
            found: found.map(<[u8]>::to_vec),
        })
    }
}

struct Cells<'a>(&'a [u8]);

impl<'a> Iterator for Cells<'a> {
    type Item = Option<&'a [u8]>;

    fn next(&mut self) -> Option<Option<&'a [u8]>> {
        let (length, rest) = self.0.split_first_chunk::<4>()?;
        let length = u32::from_be_bytes(*length);
        let (cell, rest) = rest.split_at_checked(if length == NULL { 0 } else { length as usize })?;
        self.0 = rest;
        Some((length != NULL).then_some(cell))
    }
}

#[cfg(test)]
mod tests {
    use super::super::cases::Slice;
    use super::super::rows::ROWS;
    use super::*;
    use crate::commands::stress::WideOrder as Order;

    const PARTITION: Partition = Partition { order: Order::Asc, row: ROWS[0] };

    fn answer(columns: std::ops::Range<u64>) -> Answer {
        let mut answer = Answer::default();
        for column in columns {
            answer.push(Some(&name(column)), Some(&wide_value(100, column)));
        }
        answer
    }

    fn query(start: u64, count: u64) -> Query {
        Query::Slice(Slice { start: Some(start), reversed: false, count })
    }

    #[test]
    fn the_columns_that_were_loaded_are_right() {
        assert_eq!(answer(10..20).check(PARTITION, &query(10, 10)), Ok(()));
        assert_eq!(answer(0..0).check(PARTITION, &query(100, 10)), Ok(()));
    }

    #[test]
    fn a_missing_a_further_and_a_changed_column_are_told_apart() {
        let short = answer(10..19).check(PARTITION, &query(10, 10));
        assert_eq!(short, Err(Mismatch::Count { expected: 10, found: 9 }));
        let long = answer(10..21).check(PARTITION, &query(10, 10));
        assert_eq!(long, Err(Mismatch::Count { expected: 10, found: 11 }));
        let other = answer(11..21).check(PARTITION, &query(10, 10)).unwrap_err();
        assert!(other.to_string().contains("the name of column 0"), "{other}");
        let mut changed = answer(10..19);
        changed.push(Some(&name(19)), None);
        let changed = changed.check(PARTITION, &query(10, 10)).unwrap_err();
        assert!(changed.to_string().starts_with("the value of column 9 of the answer is null"), "{changed}");
    }
}
