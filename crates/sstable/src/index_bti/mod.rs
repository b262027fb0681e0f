//! The indexes of the BTI format: Partitions.db finds a partition, Rows.db a position inside a wide partition.
//!
//! Both are tries of byte-comparable keys (`crate::trie`). Of each key they store only the prefix that distinguishes it
//! from its neighbours. Source: Cassandra's `io.sstable.format.bti` and `BtiFormat.md`, version `da`.

mod known_blocks;
mod landmarks;
mod page_cursor;
mod partition_index;
mod remembered;
mod row_index;
mod row_index_writer;

#[cfg(test)]
mod against_cassandra;
#[cfg(test)]
mod from_a_node;

pub use crate::deletion_time::{DeletionTimeBytes, read_deletion_time};
pub(crate) use known_blocks::KnownBlocks;
pub use page_cursor::PageCursor;
pub use partition_index::{IndexPosition, PartitionIndex, PartitionIndexBuilder, PartitionIter};
pub(crate) use remembered::Remembered;
pub use row_index::{IndexBlock, RowIndexEntry, RowIndexReader, RowIndexStacks};
pub use row_index_writer::{PartitionEnd, RowIndexWriter};
