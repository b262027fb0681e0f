//! SELECT.
//!
//! `prepare` turns a statement into a `SelectPlan`; `execute` runs it: it makes a `ReadCommand` from the bound values
//! and gives the rows to a `sink`. The sink filters them and writes cells directly into the answer (`direct`, if
//! nothing is computed), aggregates them (`fold`, with `group` for GROUP BY), or keeps them for sorting (`sort`) or ANN
//! (`nearest`). `row` takes values out of rows, `part` takes values apart. `paging` converts paging states. `forecast`
//! computes the forecast for EXPLAIN.

mod direct;
mod execute;
mod fold;
mod forecast;
mod group;
mod nearest;
mod paging;
mod part;
mod prepare;
mod row;
mod sink;
mod sort;

pub(crate) use forecast::{Forecast, ReadKind};
pub(crate) use prepare::SelectPlan;
pub(crate) use row::RowAt;
