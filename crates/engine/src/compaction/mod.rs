//! Compaction: merges SSTables into fewer ones, and removes deleted and overwritten data.
//!
//! `background` has the shared state, `worker` the workers. They ask `choose` for the next compaction (`look` has its
//! input) and run it as a `job`, if there is `space` for its output; `failing` says what follows from a failure. A job's main
//! loop is `merging`: `inputs` are read partition by partition, `purge` removes unneeded data, and `output` writes the rest.
//! `history` is the list of finished compactions; `request` has requested compactions, `control` the administrator's
//! functions. `describe` describes SSTables for the strategies, `throttle` limits the bytes per second, `progress` is what
//! a running compaction reports. What each table keeps for its compactions is in `table::compaction_state`.

mod background;
mod choose;
mod control;
mod describe;
mod failing;
mod history;
mod inputs;
mod job;
mod look;
mod merging;
mod output;
mod progress;
mod purge;
mod request;
mod space;
mod throttle;
mod worker;

pub use background::CompactionSettings;
pub use background::Compactions;
pub use choose::{parse_percent, parse_scaling_parameters, parse_size};
pub use failing::CompactionTrouble;
pub use history::PastCompaction;
pub use progress::CompactionStatus;
pub use purge::PurgeOptions;
pub use request::{CompactionRequest, RequestStatus};
pub(crate) use space::OtherWrites;
