//! SELECT.
//!
//! `prepare` turns a statement into a `SelectPlan`, `execute` runs it: bound values become a `ReadCommand`, whose rows go
//! to a `sink` that filters them and writes cells straight into the answer (`direct`, where nothing is computed), or to a `fold` over all rows, or of a `group` each,
//! or are kept for `sort` or as the `nearest` to a vector. `row` takes values out of rows, `paging` is the state that goes to the client and comes back,
//! `foresee` says what all that would be, for EXPLAIN.

mod direct;
mod execute;
mod fold;
mod foresee;
mod group;
mod nearest;
mod paging;
mod part;
mod prepare;
mod row;
mod sink;
mod sort;

pub(crate) use foresee::{Foreseen, ReadKind};
pub(crate) use prepare::{SelectPlan, is_virtual_keyspace};
pub(crate) use row::RowAt;
