//! Guardrails: what an operator does not want clients to do, with Cassandra's names and messages (`db.guardrails`).
//!
//! `limits` is what is configured, `feature` the things that can be switched off; `statement` looks at a statement when it is
//! analysed, `schema` at what a change leaves behind, `write` at what is written; `guarded` holds them while a server runs. A backend without guardrails, which is the
//! default, asks none of them. Cassandra does not apply them to superusers, and without authentication everybody is one;
//! here they apply to everybody.

mod feature;
mod guarded;
mod limits;
mod schema;
mod statement;
mod write;

pub use feature::Feature;
pub(crate) use guarded::Guarded;
pub use limits::{Guardrails, Threshold, Words};
pub(crate) use statement::{Reading, level_name};
