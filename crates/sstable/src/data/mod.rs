//! The rows and markers of Data.db: their encoding, and the cursors that go through them.
//!
//! `layout` resolves a file's header against a table; `encode` and `decode` are the two directions of Cassandra's
//! unfiltered serialisation; `window` provides contiguous bytes across blocks; `forward` and `backward` read one slice of
//! a partition for the readers of `crate::table`.

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
mod plain;
mod position;
mod row_batch;
mod skip;
mod slice;
#[cfg(test)]
pub(crate) mod test_random;
mod validity;
mod window;

pub(crate) use backward::{Backward, BackwardStep, IndexBlock};
pub(crate) use cursor::{Cursor, Found, RELEASED_BYTES_MAX, Rows};
pub(crate) use element_reader::{ElementReader, Supposed};
pub use encode::Encoder;
pub(crate) use forward::Forward;
pub use helenus_model::partitions::KeyRange;
pub use layout::{ClusteringLayout, ColumnLayout, ColumnSet, RowLayout};
pub(crate) use slice::{Range, Step, closing};
pub(crate) use validity::Validity;
