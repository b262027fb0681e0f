//! Proofs of the promise that nothing acknowledged is lost and no read is wrong: random databases on simulated machines.
//!
//! `values`, `table` and `statement` are what tables and statements are made of; `generate` draws them, `plan` is a run of
//! them; `judge` and `answer` say what must be read, `shown` tells the judge where that is one of several; `world` runs them through CQL in this process, `upkeep` what operators
//! do, `load` what comes between starts, and what must hold whatever the answers are (`progress`); `model` compares every answer and cuts a failing run down; `crash` cuts the machine off at its syncs, `fault` lets
//! its disk fail; `script` runs what was found once.

mod answer;
mod crash;
mod fault;
mod generate;
mod judge;
mod load;
mod model;
mod plan;
#[expect(clippy::unwrap_used, dead_code, reason = "the engine's tests and these have it in common")]
#[path = "../../crates/engine/tests/support/progress.rs"]
mod progress;
mod random;
mod script;
mod shown;
#[path = "../../crates/engine/tests/support/slot.rs"]
mod slot;
mod statement;
mod table;
mod upkeep;
mod values;
mod world;

pub use crash::{Crashed, crash};
pub use fault::{Faulted, fault};
pub use model::{Ran, model, one_seed};
pub use script::script;
