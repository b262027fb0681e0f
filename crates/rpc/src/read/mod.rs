//! Reads: what a predicate asks of a row, and columns written from its rows straight into the answer.

mod calls;
mod column;
mod indexed;
mod predicate;
mod ranges;
mod sink;

pub(crate) use predicate::Wanted;
pub(crate) use ranges::{RowRange, key_position};
pub(crate) use sink::{Envelope, Slicer};
