//! The read path: a command becomes sources, sources are merged, what is alive goes to a sink.
//!
//! `command` says what is asked, `source` chooses and opens the memtables and SSTables of one partition, `partition`
//! runs one partition, `newest` knows when older SSTables have nothing to add, `execute` the whole command, `probe` counts, `foresee` says
//! what is known before, `scratch` keeps memory from read to read.

mod command;
mod execute;
mod foresee;
mod newest;
mod partition;
mod probe;
mod range;
mod scratch;
mod sink;
mod source;

pub use command::{KeyRange, PartitionKey, Partitions, ReadCommand, Resume, left_of};
pub use execute::execute;
pub use foresee::foresee;
pub use helenus_sstable::block::Touched;
pub use helenus_sstable::stopwatch::{Stage, StageTimes};
pub use probe::{Probe, SkipReason, TABLES_SEEN_MAX, TableSeen};
pub use scratch::ReadScratch;
pub(crate) use scratch::ScratchPool;
pub use sink::{ReadEnd, RowSink, RunSink, Taken, TombstoneLimit};
