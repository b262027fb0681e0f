//! What a workload is: requests by number, and what their answers must be.

use super::content::mix;
use crate::commands::client::{Answered, Pair, columns};
use helenus_wire::native::{ResultMessage, Rows};
use helenus_wire::thrift::{CqlResult, CqlResultType, Field, ThriftError, Type};
use std::fmt;

/// Makes requests and judges answers. Shared by all connections, so it keeps nothing between calls: the number of an
/// operation decides all about it.
pub(super) trait Workload: Sync {
    /// Its name in reports.
    fn name(&self) -> String;
    /// Names of the kinds of requests it makes, if they are told apart.
    fn kinds(&self) -> &[String] {
        &[]
    }
    /// Which of them an operation is.
    fn kind(&self, _operation: u64) -> usize {
        0
    }
    /// Which operations there are.
    fn extent(&self) -> Extent;
    /// Appends the request of an operation; `stream` is the number that its answer carries back.
    fn put(&self, operation: u64, stream: i16, out: &mut Vec<u8>);
    /// Holds an answer against what the operation must be answered; gives the rows it wrote or read.
    fn check(&self, operation: u64, answer: &Answered<'_>) -> Result<u64, Wrong>;
}

/// Which operations a workload has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// Those from 0 up to this number, once each, or again and again for as long as a duration says.
    Each(u64),
    /// Any number is one; they are drawn at random.
    Any,
}

/// An answer that is no error and still not right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    /// Another kind of result.
    Kind { expected: &'static str },
    /// More or fewer rows.
    Count { expected: u64, found: u64 },
    /// A cell with other bytes, `None` for null.
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

/// An answer to a write must be empty.
pub(super) fn check_void(answer: &Answered<'_>) -> Result<(), Wrong> {
    match answer {
        Answered::Result(ResultMessage::Void) | Answered::Done => Ok(()),
        Answered::Value(Type::Struct, reader) => match CqlResult::read(&mut reader.clone())?.kind {
            CqlResultType::Void => Ok(()),
            _ => Err(Wrong::Kind { expected: "Void" }),
        },
        _ => Err(Wrong::Kind { expected: "Void" }),
    }
}

/// An answer to a read must have so many rows.
pub(super) fn check_rows<'r, 'a>(answer: &'r Answered<'a>, expected: u64) -> Result<&'r Rows<'a>, Wrong> {
    match answer {
        Answered::Result(ResultMessage::Rows(rows)) if rows.row_count as u64 == expected => Ok(rows),
        Answered::Result(ResultMessage::Rows(rows)) => {
            Err(Wrong::Count { expected, found: rows.row_count as u64 })
        }
        _ => Err(Wrong::Kind { expected: "Rows" }),
    }
}

/// An answer must be so many columns; hands each to `check`: a row of name and value, or a column of the old interface.
#[inline]
pub(super) fn check_columns(
    answer: &Answered<'_>,
    expected: u64,
    mut check: impl FnMut(u64, Pair<'_>) -> Result<(), Wrong>,
) -> Result<u64, Wrong> {
    let mut checked = 0;
    if let Answered::Value(Type::List, reader) = answer {
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

/// A cell must have these bytes. `place` is its row and column.
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
    /// Every `step`-th.
    Each { next: u64, step: u64, end: u64, again: Option<u64> },
    /// Random ones, as many as are left; without a number without end.
    Any { state: u64, left: Option<u64> },
    /// No more.
    Ended,
}

impl Operations {
    /// The share of connection `number` of `count`. `again`: begin anew at the end. `most`: so many over all connections.
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
