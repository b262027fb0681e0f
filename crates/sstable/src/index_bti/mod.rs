//! The indexes of the BTI format: Partitions.db finds a partition, Rows.db a position inside a wide partition.
//!
//! Both are tries of byte-comparable keys (`crate::trie`). Of each key they store only the prefix that distinguishes it
//! from its neighbours. `partition_index` reads and writes Partitions.db; `row_index_writer` writes Rows.db, and
//! `row_index` reads it; `page_cursor` reads consecutive values across blocks. `row_index_cache` keeps the row indexes
//! of wide partitions in memory (`cached_row_index` is one of them), and `cached_blocks` reads through it. Source:
//! Cassandra's `io.sstable.format.bti` and `BtiFormat.md`, version `da`.

mod cached_blocks;
mod cached_row_index;
mod page_cursor;
mod partition_index;
mod row_index;
mod row_index_cache;
mod row_index_writer;

#[cfg(test)]
mod against_cassandra;
#[cfg(test)]
mod cassandra_files;

pub use crate::deletion_time::{DeletionTimeBytes, read_deletion_time};
pub(crate) use cached_blocks::CachedBlocks;
pub use page_cursor::PageCursor;
pub use partition_index::{IndexPosition, PartitionIndex, PartitionIndexBuilder, PartitionIter};
pub use row_index::{IndexBlock, RowIndexEntry, RowIndexReader, RowIndexStacks};
pub(crate) use row_index_cache::RowIndexCache;
pub use row_index_writer::{PartitionEnd, RowIndexWriter};
