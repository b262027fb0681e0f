//! Keyspaces, tables and columns as immutable values.
//!
//! A `Schema` is replaced whole by a change; whoever holds one keeps a consistent picture.

mod column;
mod keyspace;
mod options;
mod table;

pub use column::{Column, ColumnKind, DroppedColumn};
pub use keyspace::{Keyspace, Schema};
pub use options::{CompressionParams, TableOptions};
pub use table::{Table, TableId};
