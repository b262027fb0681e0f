//! Virtual tables, whose rows are computed when they are read: information for drivers, and metrics of the engine and
//! the event loops.
//!
//! `table` is the interface of a virtual table and its rows. `registry` holds the virtual tables and adds them to the
//! schema. `read` runs a read over their rows. `local`, `peers`, `estimates` and `compaction_history` are tables of
//! `system`, `views`, `top_partitions` and `changes` are those of `system_views`, `virtual_schema` is `system_virtual_schema`.

mod changes;
mod compaction_history;
mod estimates;
mod local;
mod peers;
mod read;
mod registry;
mod table;
mod top_partitions;
mod views;
mod virtual_schema;

pub use local::{NodeInfo, RELEASE_VERSION, ring_tokens};
pub(crate) use read::read;
pub use registry::VirtualTables;
pub(crate) use registry::is_virtual_keyspace;
pub use table::{VirtualContext, VirtualRead, VirtualRows, VirtualTable, virtual_definition};
