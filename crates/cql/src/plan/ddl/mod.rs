//! CREATE, ALTER and DROP: each makes a new schema from the current one.
//!
//! `change` runs a statement. `keyspace`, `create_table`, `alter_table`, `user_type` and `index` are the statements;
//! `mask` and `layout` are parts of those for tables. `properties` reads WITH; `options`, `compaction`, `compression`,
//! `replication`, `retry` and `java_class` check its values. `readded` compares a new column with a dropped one of the
//! same name. `absent` handles kinds that are not supported.

mod absent;
mod alter_table;
mod change;
mod compaction;
mod compression;
mod create_table;
mod index;
mod java_class;
mod keyspace;
mod layout;
mod mask;
mod options;
mod properties;
mod readded;
mod replication;
mod retry;
mod user_type;

pub(crate) use change::{DdlPlan, DdlSettings, SchemaEdit};
pub(crate) use create_table::{compact_flags, complete_compact};
pub(crate) use index::KEYS;
pub use index::check_index;
pub(crate) use readded::reads_cells_of;
