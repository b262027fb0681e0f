//! The storage engine: commit log, memtables, flush, compaction, read and write paths. It knows no CQL and no network.
//!
//! The write path: `database::writing` -> `commitlog` -> `memtable`. The read path: `database::reading` -> `read` over
//! a `table::View`.
//!
//! What stands below `database` takes an `env::Env`, or all tables with it (`table::Storage`), and never the database.

pub mod changes;
mod changes_error;
mod check_mutation;
mod checked_name;
mod clock_watch;
mod commitlog;
mod compaction;
mod database;
mod decaying_histogram;
mod distribution;
mod env;
mod error;
mod export;
mod folder;
pub mod import;
mod index;
mod index_search;
mod journal;
mod listeners;
mod log_position;
#[expect(unsafe_code, reason = "the arena and the map that readers walk without a lock; each block says why")]
mod memtable;
mod metrics;
mod notify;
mod open_progress;
pub mod read;
mod schema;
mod sharded;
mod snapshot;
mod table;
mod timestamps;
mod top_partitions;
mod totals;
mod workers;
mod write_gate;

pub use changes_error::ChangesError;
pub use checked_name::{CheckedName, CheckedPath, NameError};
pub use clock_watch::ClockJump;
pub use commitlog::{DefinitionKind, KeptLimits, SyncMode, Ticket};
pub use compaction::{
    CompactionRequest, CompactionSettings, CompactionStatus, CompactionTrouble, Compactions, PastCompaction,
    PurgeOptions, RequestStatus, parse_percent, parse_scaling_parameters, parse_size,
};
pub use database::{
    ChangeFeed, Database, DatabaseClock, DatabaseOptions, DdlError, DiskUsage, IndexBuildStatus, IndexBuilds,
    MemoryShares, OpenReport, PartitionLock, RangeEstimate, ReadRequest, ReadTimeouts, SpaceHolder,
    SpacePurpose, SpaceUse, Spread, Status, TableDetails, TableInspection, TableStatus, is_cassandra_node,
};
pub use distribution::Distribution;
pub use error::{DiskTrouble, Error, Result, UnappliableRecord};
pub use export::{Exported, Exports};
pub use folder::uuid_of_name;
pub use helenus_host::{account, contain};
pub use helenus_sstable::writer::{LargePartition, PartitionLimits};
pub use index_search::read_indexed;
pub use journal::{Event, Journal, JournalSlot};
pub use listeners::{Listeners, Listening};
pub use memtable::{Concurrent, ConcurrentMap};
pub use metrics::{Distributions, MetricSummaries, Period, Summary, TableMetrics};
pub use open_progress::{OpenProgress, OpenStage};
pub use schema::{
    SchemaChange, SchemaChangeKind, index_id, is_replicated_system_keyspace, is_system_keyspace, parse_type,
};
pub use snapshot::{FoundSnapshot, SNAPSHOT_MANIFEST, Snapshots, TakenSnapshot};
pub use table::{SsTables, Unreadable, View};
pub use timestamps::{ClockStatus, ServerTime, TIME_OF_DAY_MAX_S};
pub use top_partitions::TopPartition;
pub use totals::{EngineTotals, LogStatus};
