//! The interface of a workload: requests by number, and the expected answers.

use super::content::mix;
use crate::commands::client::{AnswerBody, Pair, columns};
use helenus_wire::native::{ResultMessage, Rows};
use helenus_wire::thrift::{CqlResult, CqlResultType, Field, ThriftError, Type};
use std::fmt;

/// Makes requests and checks answers. All connections share it, so it has no state between calls: the number of an
/// operation determines everything about it.
pub(super) trait Workload: Sync {
    /// The name in reports.
    fn name(&self) -> String;
    /// The names of the kinds of requests, if they are distinguished.
    fn kinds(&self) -> &[String] {
        &[]
    }
    /// The kind of an operation.
    fn kind(&self, _operation: u64) -> usize {
        0
    }
    /// The range of operations.
    fn extent(&self) -> Extent;
    /// Appends the request of an operation. Its answer repeats the number `stream`.
    fn put(&self, operation: u64, stream: i16, out: &mut Vec<u8>);
    /// Checks an answer against the operation. Returns the number of rows written or read.
    fn check(&self, operation: u64, answer: &AnswerBody<'_>) -> Result<u64, Wrong>;
}

/// The operations that a workload has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// Those from 0 to this number: once each, or repeatedly for a given duration.
    Each(u64),
    /// Any number is an operation; they are drawn at random.
    Any,
}

/// An answer that is not an error and still incorrect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    /// Another kind of result.
    Kind { expected: &'static str },
    /// Another number of rows.
    Count { expected: u64, found: u64 },
    /// A cell with other bytes; `None` for null.
    Cell { row: u64, column: usize, expected: Vec<u8>, found: Option<Vec<u8>> },
    /// Rows that end within a cell.
    Cut,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wrong::Kind { expected } => write!(f, "the result is not of kind {expected}"),
            Wrong::Count { expected, found } => write!(f, "{found} rows instead of {expected}"),
            Wrong::Cell { row, column, expected, found } => {
                let expected = expected.escape_ascii();
                write!(f, "row {row} of the answer, column {column}: expected `{expected}`, found ")?;
                match found {
                    Some(found) => write!(f, "`{}`", found.escape_ascii()),
                    None => write!(f, "null"),
                }
            }
            Wrong::Cut => write!(f, "the rows end within a cell"),
        }
    }
}

impl From<ThriftError> for Wrong {
    fn from(_error: ThriftError) -> Wrong {
        Wrong::Cut
    }
}

/// Checks that the answer to a write is empty.
pub(super) fn check_void(answer: &AnswerBody<'_>) -> Result<(), Wrong> {
    match answer {
        AnswerBody::Result(ResultMessage::Void) | AnswerBody::Done => Ok(()),
        AnswerBody::Value(Type::Struct, reader) => match CqlResult::read(&mut reader.clone())?.kind {
            CqlResultType::Void => Ok(()),
            _ => Err(Wrong::Kind { expected: "Void" }),
        },
        _ => Err(Wrong::Kind { expected: "Void" }),
    }
}

/// Checks that the answer to a read has `expected` rows.
pub(super) fn check_rows<'r, 'a>(answer: &'r AnswerBody<'a>, expected: u64) -> Result<&'r Rows<'a>, Wrong> {
    match answer {
        AnswerBody::Result(ResultMessage::Rows(rows)) if rows.row_count as u64 == expected => Ok(rows),
        AnswerBody::Result(ResultMessage::Rows(rows)) => {
            Err(Wrong::Count { expected, found: rows.row_count as u64 })
        }
        _ => Err(Wrong::Kind { expected: "Rows" }),
    }
}

/// Checks that the answer has `expected` columns, and passes each to `check`. A column is a row of name and value in
/// CQL, or a column of Thrift RPC.
#[inline]
pub(super) fn check_columns(
    answer: &AnswerBody<'_>,
    expected: u64,
    mut check: impl FnMut(u64, Pair<'_>) -> Result<(), Wrong>,
) -> Result<u64, Wrong> {
    let mut checked = 0;
    if let AnswerBody::Value(Type::List, reader) = answer {
        let (found, columns) = columns(reader.clone())?;
        if found != expected {
            return Err(Wrong::Count { expected, found });
        }
        for column in columns {
            check(checked, column?)?;
            checked += 1;
        }
        return Ok(checked);
    }
    for row in check_rows(answer, expected)?.iter() {
        let mut cells = row.map_err(|_| Wrong::Cut)?.cells();
        check(checked, Pair { name: cells.next().flatten(), value: cells.next().flatten() })?;
        checked += 1;
    }
    if checked == expected { Ok(checked) } else { Err(Wrong::Cut) }
}

/// Checks the bytes of a cell. `place` is its row and column.
#[inline]
pub(super) fn check_cell(place: (u64, usize), found: Option<&[u8]>, expected: &[u8]) -> Result<(), Wrong> {
    if found == Some(expected) {
        return Ok(());
    }
    let (row, column) = place;
    Err(Wrong::Cell { row, column, expected: expected.to_vec(), found: found.map(<[u8]>::to_vec) })
}

/// The operations of one connection.
#[derive(Clone, Debug)]
pub(super) enum Operations {
    /// Every `step`-th operation.
    Each { next: u64, step: u64, end: u64, again: Option<u64> },
    /// Random operations, as many as `left`; `None`: without end.
    Any { state: u64, left: Option<u64> },
    /// No operations are left.
    Ended,
}

impl Operations {
    /// The share of connection `number` of `count`. `again`: restart at the end. `most`: the maximum over all
    /// connections.
    pub fn share(extent: Extent, (number, count): (u64, u64), again: bool, most: Option<u64>) -> Operations {
        match extent {
            Extent::Each(end) => {
                let end = most.map_or(end, |most| most.min(end));
                Operations::Each { next: number, step: count, end, again: again.then_some(number) }
            }
            Extent::Any => {
                let left = most.map(|most| most / count + u64::from(number < most % count));
                Operations::Any { state: mix(number), left }
            }
        }
    }
}

impl Iterator for Operations {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        match self {
            Operations::Each { next, step, end, again } => {
                if *next >= *end {
                    *next = again.filter(|first| *first < *end)?;
                }
                let operation = *next;
                *next += *step;
                Some(operation)
            }
            Operations::Any { state, left } => {
                if let Some(left) = left {
                    *left = left.checked_sub(1)?;
                }
                *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
                Some(mix(*state))
            }
            Operations::Ended => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_share_every_operation_out_among_them() {
        let share = |number| Operations::share(Extent::Each(10), (number, 3), false, None);
        let mut all: Vec<u64> = (0..3).flat_map(share).collect();
        all.sort_unstable();
        assert_eq!(all, (0..10).collect::<Vec<_>>());
        let again: Vec<u64> = Operations::share(Extent::Each(2), (0, 1), true, None).take(5).collect();
        assert_eq!(again, [0, 1, 0, 1, 0]);
        assert_eq!(Operations::share(Extent::Each(2), (2, 3), true, None).next(), None);
        let random = (0..3).flat_map(|number| Operations::share(Extent::Any, (number, 3), false, Some(10)));
        assert_eq!(random.collect::<std::collections::BTreeSet<_>>().len(), 10);
    }
}
