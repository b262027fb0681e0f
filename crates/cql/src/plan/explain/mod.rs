//! EXPLAIN and EXPLAIN ANALYZE: what a statement does, as rows or JSON.
//!
//! `plan` is the analysed EXPLAIN. `reading` describes what a SELECT will read, `writing` what a write will write, and
//! `prior` what the write reads first. `sources` lists the memtables and SSTables that take part. `counts` lists what a
//! run touched, and `advice` suggests improvements. All of them produce the lines of `step`. `local::explain` combines
//! the lines, and runs the statement for ANALYZE.

mod advice;
mod counts;
mod plan;
mod prior;
mod reading;
mod sources;
mod step;
mod writing;

pub(crate) use advice::{advise_read, advise_write};
pub(crate) use counts::{RunStats, count_steps};
pub(crate) use plan::ExplainPlan;
pub(crate) use prior::{counter_step, prior_steps, verdict_step};
pub(crate) use reading::read_steps;
pub(crate) use sources::source_steps;
pub(crate) use step::Step;
pub use step::{bytes_text, counted};
pub(crate) use writing::write_steps;
