//! The index of the BIG format: Index.db finds a partition and, within a wide one, a block of rows; Summary.db finds a
//! place in Index.db.
//!
//! Index.db, for each partition in order: the key (length in two bytes, bytes), its place in Data.db (vint), the bytes of
//! its own index (vint, 0 without). Such a promoted index: length of the partition's head (vint), the partition's deletion,
//! number of blocks (vint), the blocks, and for each block where it begins among them (u32). A block: the positions of its
//! first and last row or marker, its start from that of the partition (vint), its length less 64 KiB (signed vint), whether
//! a range deletion is open behind it (a byte) and which. Only deletion times differ by version.
//!
//! Sources: `RowIndexEntry`, `IndexInfo`, `IndexSummary`, `BigTableReader`, `BigFormatPartitionWriter`, `BigTableWriter`.

mod entries;
mod partition_index;
mod promoted;
mod summary;
mod writer;

pub use partition_index::{BigIndex, BigPosition};
pub use promoted::{PromotedIndex, PromotedMemory, PromotedReader};
pub use summary::{Summary, SummaryBuilder};
pub use writer::{BigBlock, BigIndexWriter, BigPartitionEnd};
