//! Keyspaces, tables and columns as immutable values.
//!
//! A change replaces the whole `Schema`; a holder of a `Schema` keeps a consistent snapshot.

mod cell_shapes;
mod column;
mod column_index;
mod column_order;
mod index;
mod keyspace;
mod mask;
mod options;
mod table;

pub use cell_shapes::{CellShape, CellShapes, ClusteringShape, LazyCellShapes};
pub use column::{Column, ColumnKind, DroppedColumn};
pub use column_index::ColumnIndex;
pub use index::{
    CLASS_OPTION, Index, IndexKind, IndexPart, SAI_CLASS, SASI_CLASS, TARGET_OPTION, index_class,
};
pub use keyspace::{Keyspace, Schema};
pub use mask::{ColumnMask, MaskArgument};
pub use options::{
    CompressionParams, DROPPED_COLUMN_EXTENSION, FLAGS_EXTENSION, InvalidGranularity, ROW_INDEX_GRANULARITY,
    ROW_INDEX_GRANULARITY_BYTES, TableOptions, UNNAMED_COLUMN_EXTENSION, row_index_granularity,
};
pub use table::{Table, TableId};
