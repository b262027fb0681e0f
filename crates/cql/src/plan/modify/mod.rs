//! INSERT, UPDATE and DELETE.
//!
//! `prepare` turns a statement into a `ModifyPlan`: `filter` and `restriction` the key it names, `operation` what happens to each column.
//! `apply` runs a plan against values: `position` makes keys, rows and ranges of the filter, `cells` writes the cells,
//! both into the `Changes` that the log takes; `straight` does the same for the commonest statements, without steps between; `list` those of operations that read their list first, `sum` what
//! is added to. `prior` is what such statements read. `collector` brings the updates of a statement or batch together.

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
