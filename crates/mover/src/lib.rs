//! Moves tables to a cluster of Apache Cassandra while the server goes on, with the timestamp and the TTL of every cell.
//!
//! `source` turns what the engine holds into prepared statements of CQL that write the same cells again. `target` sends them.
//! `back_fill` reads tables by ranges of tokens, `tail` follows the feed of changes, `counters` are added up; `schema`, `plan`, `obstacles` and
//! `estimate` prepare a move, `forms` are those of compact tables, `state` is what survives a restart, `context` what all tasks share, `row_locks` the rows that they lock at the target; `run` and `mover` run it all. `remote` reads a cluster's
//! rows as cells: with it `verify` compares both sides, and `pull` copies tables of a cluster here. `drain` and `cut` make the target the
//! truth, `rollback` takes that back; `roles` go with a move if that is wanted; `front` is what clients connect to, which the target serves after a cut. `messages` are what
//! `helenus move` asks and is answered.
#![cfg_attr(
    test,
    allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test ends where its expectation does")
)]

mod attempts;
mod back_fill;
mod batches;
mod carry;
mod changes;
mod clocks;
mod context;
mod counters;
mod cut;
mod cut_masks;
mod definitions;
mod drain;
mod error;
pub mod estimate;
mod forms;
mod front;
mod lists;
mod masks;
mod messages;
mod mover;
mod obstacles;
mod plan;
mod present_row;
mod problems;
mod pull;
pub mod remote;
mod roles;
mod rollback;
mod row_locks;
mod run;
mod schema;
#[cfg(test)]
mod scripted_target;
pub mod source;
mod state;
mod tail;
mod target;
mod threads;
mod type_parts;
mod verify;
mod versions;
mod waiting;

pub use error::MoveError;
pub use front::{Front, FrontError, Side};
pub use messages::{
    ClientsRole, CutOrder, MoveAnswer, MoveOrder, MoveRequest, PlanReport, PlannedTable, ResumeOrder,
    RollbackOrder, StatusReport, TableReport, TlsFiles, VerifiedTable, VerifyOrder, VerifyReport,
};
pub use mover::Mover;
pub use pull::{PullOrder, PullReport, PullRequest, PulledTable, Puller};
pub use state::{CutOver, cut_of, is_under_way};
pub use target::{options as cluster_options, options_for_clients};
