//! INSERT, UPDATE and DELETE.
//!
//! `prepare` turns a statement into a `ModifyPlan`: `filter` and `restriction` select its keys, `operation` is the
//! change of each column. `apply` runs a plan with values: `position` makes keys, rows and ranges of the filter,
//! `cells` and `list` write the cells into the `Changes` that are logged, and `sum` adds to values that were read.
//! `straight` is a fast path for the commonest statements. `prior` reads the rows that a write depends on. `collector`
//! combines the updates of a statement or batch.

mod apply;
mod attributes;
mod cells;
mod collector;
mod filter;
mod filter_text;
mod list;
mod operation;
mod position;
mod prepare;
mod prior;
mod restriction;
mod straight;
mod sum;

pub(crate) use apply::Moment;
pub(crate) use attributes::{Attributes, TTL_SECONDS_MAX, timestamp_of};
pub(crate) use collector::Collector;
pub(crate) use prepare::{ModifyKind, ModifyPlan};
pub(crate) use prior::{Prior, Statement, Wanted};
