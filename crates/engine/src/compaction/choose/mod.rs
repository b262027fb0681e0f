//! Chooses which SSTables to compact next, and into what. Pure functions: from a description of the SSTables, the
//! options and the time to a choice. Each strategy has its own file.
//!
//! The rules are those of Cassandra 5.0.9; docs/decisions lists the differences. `compaction::background` calls this,
//! and `compaction::job` executes the choice.

mod expired;
mod leveled;
mod options;
mod overlaps;
mod shards;
mod size_tiered;
mod sizes;
mod strategy;
mod strategy_input;
mod time_window;
mod unified;

#[cfg(test)]
mod testing;

pub use expired::fully_expired;
pub use options::CompactionOptions;
#[cfg(test)]
use options::Strategy;
pub use shards::{ShardEnds, range_spanned};
pub use sizes::{parse_percent, parse_size};
pub use strategy::{choose, maximal};
pub use strategy_input::{CompactionPlan, Decision, Output, Reason, Sources, SsTableInfo, StrategyInput};
pub use unified::parse_scaling_parameters;
