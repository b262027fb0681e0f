//! The database: tables, schema and log of one directory, behind one value.
//!
//! `shared` has the state of a database, `options` its options. `open` opens the directory (lock, schema, replay), and
//! `replaying` applies the log. `writing` and `reading` are the two paths; `timeouts` limits reads. `partition_locks` locks
//! partitions for writes that read first, and `counting` is one of these: counter updates. `ddl` changes the schema,
//! `maintenance` flushes in the background and closes, `index_builds` fills new indexes. `status`, `details` and `disk_usage` report,
//! `compacting` passes an administrator's calls to `crate::compaction`, `estimates` counts partitions in ranges of the
//! ring, `clocks` checks the clocks, `watching` reads the
//! feed of changes, `host_id` keeps the server's identity.

mod cassandra_node;
mod clocks;
mod counting;
mod ddl;
mod details;
mod disk_usage;
mod estimates;
mod flush_choice;
mod host_id;
mod index_builds;
mod index_check;
mod leftovers;
mod maintenance;
mod open;
mod options;
mod own_directory;
mod partition_locks;
mod reading;
mod replaying;
mod row_images;
mod schema_memory;
mod shared;
mod stalled_log;
mod status;
mod timeouts;
mod watching;
mod writing;

pub use cassandra_node::is_cassandra_node;
pub use clocks::DatabaseClock;
pub use ddl::DdlError;
pub use details::{Spread, TableDetails, TableInspection};
pub use disk_usage::{DiskUsage, SpaceHolder, SpacePurpose, SpaceUse};
pub use estimates::RangeEstimate;
pub use index_builds::{IndexBuildStatus, IndexBuilds};
pub(crate) use index_builds::{rebuild, record_not_built};
pub use open::OpenReport;
pub use options::{DatabaseOptions, MemoryShares};
pub(crate) use own_directory::is_database;
pub use partition_locks::PartitionLock;
pub use reading::ReadRequest;
pub use shared::Database;
pub(crate) use shared::Shared;
pub use status::{Status, TableStatus};
pub use timeouts::ReadTimeouts;
pub use watching::ChangeFeed;
