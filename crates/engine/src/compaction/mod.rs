//! Compaction: merges SSTables into fewer ones, and removes deleted and overwritten data.
//!
//! `background` has the workers. They ask `choose` for the next compaction and run it as a `job`. Its main loop is
//! `merging`: `inputs` are read partition by partition, `purge` removes unneeded data, and `output` writes the rest.
//! `history` is the list of finished compactions; `request` has requested compactions, `control` the administrator's
//! functions. `describe` describes SSTables for the strategies, `throttle` limits the bytes per second, `progress` is what
//! a running compaction reports. What each table keeps for its compactions is in `table::compaction_state`.

mod background;
mod choose;
mod control;
mod describe;
mod history;
mod inputs;
mod job;
mod merging;
mod output;
mod progress;
mod purge;
mod request;
mod throttle;

pub use background::CompactionSettings;
pub use background::Compactions;
pub use choose::{parse_percent, parse_scaling_parameters, parse_size};
pub use history::PastCompaction;
pub use progress::CompactionStatus;
pub use purge::PurgeOptions;
pub use request::{CompactionRequest, RequestStatus};
