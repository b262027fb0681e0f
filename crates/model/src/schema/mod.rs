//! Keyspaces, tables and columns as immutable values.
//!
//! A `Schema` is replaced whole by a change; whoever holds one keeps a consistent picture.

mod column;
mod keyspace;
mod options;
mod table;

pub use column::{Column, ColumnKind, DroppedColumn};
pub use keyspace::{Keyspace, Schema};
pub use options::{
    CompressionParams, NoGranularity, ROW_INDEX_GRANULARITY, ROW_INDEX_GRANULARITY_BYTES, TableOptions,
    row_index_granularity,
};
pub use table::{Table, TableId};
