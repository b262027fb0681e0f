//! Reads: converts a predicate to a read of storage rows, and writes the rows as columns into the answer.

mod calls;
mod column;
mod indexed;
mod ranges;
mod sink;

pub(crate) use ranges::{RowRange, key_position};
pub(crate) use sink::{ColumnSink, Envelope};
