//! The database: tables, schema and log of one directory, behind one value.
//!
//! `shared` has the state of a database, `options` its options. `open` opens the directory (lock, schema, replay),
//! `replaying` applies the log, and `progress` reports how far that is. `writing` and `reading` are the two paths;
//! `timeouts` limits reads. `partition_locks` locks partitions for writes that read first, and `counting` is one of
//! these: counter updates. `ddl` changes the schema, `maintenance` flushes in the background and closes. `status` and
//! `details` report, `estimates` counts partitions in ranges of the ring, `clocks` checks the clocks, `host_id` keeps
//! the server's identity.

mod clocks;
mod counting;
mod ddl;
mod details;
mod estimates;
mod host_id;
mod maintenance;
mod open;
mod options;
mod partition_locks;
mod progress;
mod reading;
mod replaying;
mod shared;
mod status;
mod timeouts;
mod writing;

pub use ddl::DdlError;
pub use details::{Spread, TableDetails};
pub use estimates::RangeEstimate;
pub use open::OpenReport;
pub use options::{DatabaseOptions, MemoryShares};
pub use partition_locks::PartitionLock;
pub use progress::{OpenProgress, OpenStage};
pub use reading::ReadRequest;
pub use shared::Database;
pub(crate) use shared::{Shared, Tables};
pub use status::{Status, TableStatus};
pub use timeouts::ReadTimeouts;
