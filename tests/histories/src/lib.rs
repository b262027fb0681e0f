//! Judges recorded histories of concurrent operations: whether one order explains all their answers.
//!
//! - [`check`]: the search for that order, over any [`Model`];
//! - [`partition`]: a partition of a table as a model (register, list, rows written together) and what clients do to it;
//! - [`Recorder`]: what clients write down while they run;
//! - [`Draw`]: numbers from a seed.

mod check;
mod draw;
pub mod partition;
mod record;

pub use check::{Model, Operation, Outcome, Violation, check};
pub use draw::Draw;
pub use record::Recorder;
