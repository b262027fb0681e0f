//! The database: tables, schema and log of one directory, behind one value.
//!
//! `open` brings a directory to life (lock, schema, replay), `write` and `read` are the two paths, `ddl` changes the
//! schema, `maintenance` flushes in the background and closes, `clocks` says how the clocks are, `details` tells all of one table, `estimates` how much it has in ranges of the ring, `progress` says how far opening is, `turns` keeps those
//! apart who read before they write, `counting` is one of them: the updates of counters. `host_id` is the identity.

mod clocks;
mod counting;
mod ddl;
mod details;
mod estimates;
mod host_id;
mod maintenance;
mod open;
mod options;
mod progress;
mod reading;
mod replaying;
mod shared;
mod status;
mod timeouts;
mod turns;
mod writing;

pub use ddl::DdlError;
pub use details::{Spread, TableDetails};
pub use estimates::RangeEstimate;
pub use open::OpenReport;
pub use options::{DatabaseOptions, MemoryShares};
pub use progress::{OpenProgress, OpenStage};
pub use reading::ReadRequest;
pub use shared::Database;
pub(crate) use shared::{Shared, Tables};
pub use status::{Status, TableStatus};
pub use timeouts::ReadTimeouts;
pub use turns::Turn;
