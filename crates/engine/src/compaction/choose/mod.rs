//! Which SSTables to compact next, and into what. Pure: a description of the SSTables, options and the time in, a
//! choice out; one file a strategy.
//!
//! The rules are Cassandra 5.0.9's; where this departs from them, docs/decisions says so. `compaction::background` asks,
//! `compaction::job` does what was chosen.

mod expired;
mod leveled;
mod options;
mod overlaps;
mod shards;
mod situation;
mod size_tiered;
mod sizes;
mod strategy;
mod time_window;
mod unified;

#[cfg(test)]
mod testing;

pub use expired::fully_expired;
pub use options::CompactionOptions;
#[cfg(test)]
use options::Strategy;
pub use shards::{Boundaries, range_spanned};
pub use situation::{Choice, Decision, History, Output, Reason, Situation, Source};
pub use sizes::{parse_percent, parse_size};
pub use strategy::{choose, maximal};
pub use unified::parse_scaling_parameters;
