//! Compaction: SSTables become fewer, and what is deleted or overwritten goes.
//!
//! `background` has the workers; they ask `choose` what to do and do it as a `job`, whose heart is `merging`: `inputs` are
//! read partition by partition, `purge` takes out what nothing needs any more, `output` writes the rest. `state` is what
//! each table's storage keeps of all this, `history` what is kept of those that are over; `control` is the administrator's hand.

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
mod state;
mod throttle;

pub use background::CompactionSettings;
pub(crate) use background::{Compactions, gc_before_s};
pub use choose::{parse_percent, parse_scaling_parameters, parse_size};
pub use history::PastCompaction;
pub use progress::CompactionStatus;
pub use purge::PurgeOptions;
pub use request::{CompactionRequest, RequestStatus};
pub(crate) use state::{Claim, CompactionState};
