//! CREATE, ALTER and DROP: each makes a new schema from the current one.
//!
//! `change` runs a statement. `keyspace`, `create_table`, `alter_table`, `user_type` and `index` are the statements;
//! `mask` and `layout` are parts of those for tables. `properties` reads WITH; `options`, `compaction`, `compression`,
//! `replication`, `speculative_retry` and `java_class` check its values. `dropped_type` compares a new column with a dropped one of the
//! same name. `foreign_options` adapts the WITH of schema files. `unsupported` handles kinds that are not supported.

mod alter_table;
mod change;
mod compaction;
mod compression;
mod create_table;
mod dropped_type;
mod foreign_options;
mod index;
mod java_class;
mod keyspace;
mod layout;
mod mask;
mod options;
mod properties;
mod replication;
mod speculative_retry;
mod unsupported;
mod user_type;

pub(crate) use change::{DdlPlan, DdlSettings, SchemaEdit};
pub(crate) use create_table::{compact_flags, complete_compact};
pub(crate) use dropped_type::reads_cells_of;
pub(crate) use foreign_options::{LeftOut, adapt_keyspace_options, adapt_table_options};
pub(crate) use index::KEYS;
pub use index::check_index;
pub(crate) use user_type::with_type;
