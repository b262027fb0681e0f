//! Guardrails: an operator's restrictions on clients, with Cassandra's names and messages (`db.guardrails`).
//!
//! `limits` is the configuration, `feature` lists the features that can be disabled. `statement` checks a statement
//! during its analysis, `schema` the result of a schema change, `write` the data that is written, `disk_usage` whether the disk has room for it, and `partition` what new SSTables have of it. `guarded` holds the
//! guardrails of a running server. A backend without guardrails, the default, runs none of these checks. Cassandra
//! exempts superusers, and without authentication every user is one; here guardrails that are set apply to all users. The one
//! warning that is on by default, of time windows without TTL, goes to those whom Cassandra warns.

mod disk_usage;
mod feature;
mod guarded;
mod limits;
mod partition;
mod schema;
mod statement;
mod write;

pub(crate) use disk_usage::DiskGauge;
pub use disk_usage::{DiskBytes, DiskState};
pub use feature::Feature;
pub(crate) use guarded::Guarded;
pub use limits::{Guardrails, ListedValues, Threshold};
pub use partition::PassedThreshold;
pub(crate) use statement::{Reading, has_zero_ttl_on_twcs, level_name};
