//! The rows and markers of Data.db: their encoding, and the readers that go through them.
//!
//! `layout` resolves a file's header against a table; `encode` and `decode` are the two directions of Cassandra's
//! unfiltered serialisation; `window` provides contiguous bytes across blocks; reads use `partition` and `scan`.

#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

mod backward;
mod cursor;
mod decode;
mod element_reader;
mod encode;
mod encode_plain;
mod fast_path;
mod forward;
mod input;
mod layout;
mod partition;
mod plain;
mod position;
mod row_batch;
mod scan;
mod skip;
mod slice;
#[cfg(test)]
pub(crate) mod test_random;
mod validity;
mod window;

pub(crate) use element_reader::ElementReader;
pub use encode::Encoder;
pub use helenus_model::partitions::KeyRange;
pub use layout::{ClusteringLayout, ColumnLayout, ColumnSet, RowLayout};
pub use partition::{PartitionReader, SpareReaders};
pub use scan::Scan;
pub(crate) use validity::Validity;
