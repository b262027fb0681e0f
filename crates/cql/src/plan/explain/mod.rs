//! EXPLAIN and EXPLAIN ANALYZE: what a statement does, as rows or JSON.
//!
//! `plan` is the analysed EXPLAIN. `reading` says what a SELECT will read, `writing` what a write will write, `prior` what it reads first, `sources`
//! which memtables and SSTables have a part in it, `counts` what a run has touched, `advice` what a person might do
//! about it. All of them make the lines of `step`. `local::explain` puts them together, and runs what is analysed.

mod advice;
mod counts;
mod plan;
mod prior;
mod reading;
mod sources;
mod step;
mod writing;

pub(crate) use advice::{advise_read, advise_write};
pub(crate) use counts::{Ran, count_steps};
pub(crate) use plan::ExplainPlan;
pub(crate) use prior::{counter_step, prior_steps, verdict_step};
pub(crate) use reading::read_steps;
pub(crate) use sources::source_steps;
pub(crate) use step::{Step, counted};
pub(crate) use writing::write_steps;
