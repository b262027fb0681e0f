//! The memtable: recent writes of one table, ordered by token and key, then by clustering.
//!
//! `partition` applies changes and keeps versions, so that a reader sees each write whole or not at all; its rows are a
//! column map that others read while one writes (`concurrent_map`). Large rows are lists of parts (`row_parts`), range
//! deletions lists of runs (`range_runs`); `tiers` decides when parts and runs are merged. `cursor` reads one partition
//! as a `Source`. Readers take no lock.

mod arena;
mod concurrent_map;
mod cursor;
#[cfg(test)]
mod growth;
mod partition;
mod partition_map;
mod prefetch;
mod range_runs;
mod row_parts;
mod skiplist;
mod sparse_index;
mod store;
mod stuck;
mod sync;
#[cfg(test)]
mod tests;
mod tiers;
mod work;

pub use arena::MemoryAccount;
pub use concurrent_map::{Concurrent, ConcurrentMap};
pub use cursor::{CursorMemory, MemtableCursor, Selected};
pub use partition::{Partition, WriterLock};
pub use partition_map::PartitionRef;
pub use row_parts::{RowBuffers, StoredRow};
pub use store::Memtable;
pub(crate) use stuck::StuckMemory;
