//! The read path: a command selects sources, the sources are merged, and the live rows go to a sink.
//!
//! `command` describes a read, `source` chooses and opens the memtables and SSTables of one partition, `partition`
//! reads one partition, `range` iterates over the partitions of a range, `newest` decides when older SSTables can add
//! nothing, `execute` runs the whole command, `probe` counts, `foresee` is EXPLAIN's forecast, and `scratch` keeps
//! memory from read to read.

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
