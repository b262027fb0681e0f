//! Proofs of the promise that nothing acknowledged is lost and no read is wrong: random databases on simulated machines.
//!
//! `values`, `table` and `statement` are what tables and statements are made of; `generate` draws them; `judge` and
//! `answer` say what must be read; `world` runs them through CQL in this process; `model` compares every answer and cuts a
//! failing run down; `crash` cuts the machine off at every sync.

mod answer;
mod crash;
mod generate;
mod judge;
mod model;
mod random;
mod statement;
mod table;
mod values;
mod world;

pub use crash::{Crashed, crash};
pub use model::{Ran, model, one_seed};
