//! Proofs of the promise that nothing acknowledged is lost and no read is wrong: random databases on simulated machines.
//!
//! `values`, `table` and `statement` are what tables and statements are made of; `generate` draws them, `plan` is a run of
//! them; `judge` and `answer` say what must be read; `world` runs them through CQL in this process, `upkeep` what operators
//! do; `model` compares every answer and cuts a failing run down; `crash` cuts the machine off at its syncs, `fault` lets
//! its disk fail; `script` runs what was found once.

mod answer;
mod crash;
mod fault;
mod generate;
mod judge;
mod model;
mod plan;
mod random;
mod script;
mod statement;
mod table;
mod upkeep;
mod values;
mod world;

pub use crash::{Crashed, crash};
pub use fault::{Faulted, fault};
pub use model::{Ran, model, one_seed};
pub use script::script;
