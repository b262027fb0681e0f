//! INSERT, UPDATE and DELETE.
//!
//! `prepare` turns a statement into a `ModifyPlan`: `filter` and `restriction` select its keys (`filter_text` quotes
//! them in errors), `attributes` has USING, `operation` is the change of each column. `apply` runs a plan with values:
//! `keys` makes keys, rows and ranges of the filter, `cells` and `list` write the cells into the `Changes` that are
//! logged, and `add` adds to values that were read. `fast_path` is the fast path for the commonest statements.
//! `read_before_write` reads the rows that a write depends on. `collector` combines the updates of a statement or
//! batch.

mod add;
mod apply;
mod attributes;
mod cells;
mod collector;
mod fast_path;
mod filter;
mod filter_text;
mod keys;
mod list;
mod operation;
mod prepare;
mod read_before_write;
mod restriction;

pub(crate) use apply::Moment;
pub(crate) use attributes::{Attributes, TTL_SECONDS_MAX, timestamp_of};
pub(crate) use collector::Collector;
pub(crate) use prepare::{ModifyKind, ModifyPlan};
pub(crate) use read_before_write::{PriorRows, ReadSet, Statement};
