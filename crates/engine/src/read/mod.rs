//! The read path: a command becomes sources, sources are merged, what is alive goes to a sink.
//!
//! `command` says what is asked, `source` chooses and opens the memtables and SSTables of one partition, `partition`
//! runs one partition, `execute` the whole command, `probe` counts.

mod command;
mod execute;
mod partition;
mod probe;
mod range;
mod sink;
mod source;

pub use command::{KeyRange, PartitionKey, Partitions, ReadCommand, Resume};
pub use execute::execute;
pub use probe::{Probe, SkipReason};
pub use sink::{ReadEnd, RowSink, Taken};
