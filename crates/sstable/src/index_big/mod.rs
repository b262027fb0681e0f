//! The index of the BIG format: Index.db finds a partition and, within a wide one, a block of rows; Summary.db finds a
//! position in Index.db.
//!
//! Index.db contains for each partition, in order: the key (length in two bytes, bytes), its position in Data.db
//! (vint), and the size of its promoted index (vint, 0 without one). A promoted index: length of the partition's head
//! (vint), the partition's deletion, number of blocks (vint), the blocks, and the offset of each block among them
//! (u32). A block: the clustering positions of its first and last row or marker, its offset from the partition's start
//! (vint), its size less 64 KiB (signed vint), whether a range deletion is open at its end (a byte), and that deletion.
//! Only deletion times differ between versions.
//!
//! Sources: `RowIndexEntry`, `IndexInfo`, `IndexSummary`, `BigTableReader`, `BigFormatPartitionWriter`,
//! `BigTableWriter`.

mod entries;
mod partition_index;
mod promoted;
mod summary;
mod writer;

pub use partition_index::{BigIndex, BigPosition};
pub use promoted::{PromotedIndex, PromotedMemory, PromotedReader};
pub(crate) use summary::summary_of;
pub use summary::{Summary, SummaryBuilder};
pub use writer::{BigBlock, BigIndexWriter, BigPartitionEnd};
