//! The commit log: makes acknowledged writes durable.
//!
//! A write's record goes into a buffer in memory (`append`), from there to the operating system (`write_out`, many
//! records in one call), and to the disk (the worker in `sync`). An acknowledgement waits for the second step in
//! `periodic` mode and for the third in `batch` and `group`. The format is our own: docs/formats/commitlog.md.
//!
//! `log` has the state, its locks and its positions, `options` the modes. `active` is the segment that is written to, and
//! `next_segment` the change to the one after it; `segment` has the files, and the worker in `spare` creates them ahead.
//! `record` encodes records. A `ticket` tells when a write may be acknowledged; `failure` says what happens when a write
//! or a sync of the log fails. `removal` finds segments that are no longer needed; `reserve` is the room for what frees space.
//!
//! `reader` reads on from a position, for the feed of changes; `watched` has the tables that it shows, `definition` writes
//! their definitions into the log, and `kept` keeps segments for its consumers. At the start `replay` reads the records,
//! `remap` translates their column numbers, and `unappliable` keeps those that cannot be applied.

mod active;
mod append;
mod definition;
mod failure;
mod kept;
mod log;
mod next_segment;
mod options;
mod reader;
mod record;
mod recovered;
mod remap;
mod removal;
mod replay;
#[cfg(test)]
mod replay_tests;
mod reserve;
mod segment;
mod spare;
mod sync;
mod ticket;
mod truncate;
mod unappliable;
mod watched;
mod write_out;

pub(crate) use append::MutationRecord;
pub use definition::DefinitionKind;
pub use kept::KeptLimits;
pub(crate) use kept::replace_file;
pub use log::CommitLog;
pub use options::{LogOptions, SyncMode};
pub(crate) use reader::{LogReader, LogRecord};
pub(crate) use record::{LoggedUpdate, LoggedUpdates, Record};
pub(crate) use remap::{Layouts, of_present_columns};
pub(crate) use replay::{MissingSegment, Place, Replay, ReplayOptions, SoundSegment, read_log};
pub(crate) use ticket::MemoryWait;
pub use ticket::Ticket;
pub(crate) use unappliable::keep;
