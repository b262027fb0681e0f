//! The schema as data: `system_schema` tables with Cassandra's ids and columns, which are written and read like other
//! tables.
//!
//! A schema change is one mutation of these tables, so it is one log record. At start the schema is read from them
//! before any other table is opened.

mod definitions;
mod delta;
mod diff;
mod load;
mod type_text;

pub(crate) use definitions::{BUILT_TABLE, system_schema};
pub use definitions::{is_replicated_system_keyspace, is_system_keyspace, system_keyspaces};
pub(crate) use delta::SchemaDelta;
pub use diff::{SchemaChange, SchemaChangeKind, changes_between};
pub use load::index_id;
pub(crate) use load::{SchemaRow, WRITE_TIME, load_schema};
pub use type_text::parse_type;
