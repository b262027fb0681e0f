//! The read path: a command selects sources, the sources are merged, and the live rows go to a sink.
//!
//! `command` describes a read, `source` chooses and opens the memtables and SSTables of one partition, `partition`
//! reads one partition, `page_position` finds where a page ends between markers, `range` iterates over the partitions of a range, `newest_row` decides when older SSTables can
//! add nothing, `execute` runs the whole command, `sink` is the interface that receives the rows, `probe` counts,
//! `unfiltered` reads what is dead too, `forecast` is EXPLAIN's forecast, and `scratch` keeps memory from read to read.

mod command;
mod execute;
mod forecast;
mod newest_row;
mod page_position;
mod partition;
mod probe;
mod range;
mod scratch;
mod sink;
mod source;
mod unfiltered;

pub use command::{KeyRange, PartitionKey, Partitions, ReadCommand, Resume, left_of};
pub use execute::execute;
pub use forecast::forecast;
pub use helenus_sstable::block::Touched;
pub use helenus_sstable::stopwatch::{Stage, StageTimes};
pub use probe::{IndexChoice, Probe, SSTABLES_LISTED_MAX, SkipReason, SsTableCounts};
pub use scratch::ReadScratch;
pub(crate) use scratch::ScratchPool;
pub use sink::{BatchSink, ReadEnd, RowOutcome, RowSink, TombstoneLimit};
pub use unfiltered::UnfilteredSink;
pub(crate) use unfiltered::scan_unfiltered;
