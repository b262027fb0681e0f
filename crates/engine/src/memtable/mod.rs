//! The memtable: recent writes of one table, ordered by token and key, then by clustering.
//!
//! `partition` applies changes and keeps versions, so that a reader sees each write whole or not at all; its rows are a
//! column map that others read while one writes (`concurrent_map`). `cursor` reads one partition as a `Source`. Readers
//! take no lock.

mod arena;
mod concurrent_map;
mod cursor;
mod partition;
mod partition_map;
mod prefetch;
mod skiplist;
mod sparse_index;
mod store;
mod sync;
#[cfg(test)]
mod tests;

pub use arena::MemoryAccount;
pub use concurrent_map::{Concurrent, ConcurrentMap};
pub use cursor::{CursorMemory, MemtableCursor, Selected};
pub use partition::{Partition, WriterLock};
pub use partition_map::PartitionRef;
pub use store::Memtable;
