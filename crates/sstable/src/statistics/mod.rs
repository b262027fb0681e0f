//! Statistics.db: statistics of a table's content, and the encoding of its rows.
//!
//! It has four parts after a table of contents, each with a CRC32 (Cassandra's `MetadataSerializer`): validation
//! (partitioner, filter), compaction (an estimate of the number of partitions), stats, and the serialization header.
//! The SSTable writer feeds a `StatisticsCollector`; readers get `Statistics`.

mod cardinality;
mod clustering_range;
mod collector;
mod component;
mod header;
mod histogram;
mod input;
mod stats;
mod tombstone_histogram;

pub use cardinality::Cardinality;
pub use clustering_range::{ClusteringBound, ClusteringRange};
pub use collector::StatisticsCollector;
pub use component::{MURMUR3_PARTITIONER, Statistics, Validation, with_level};
pub use header::{EncodingStats, Header, HeaderColumn};
pub use histogram::EstimatedHistogram;
pub use stats::{CommitLogPosition, Stats};
pub use tombstone_histogram::{TombstoneHistogram, TombstoneHistogramBuilder};
