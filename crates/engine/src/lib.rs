//! The storage engine: commit log, memtables, flush, compaction, read and write paths. It knows no CQL and no network.
//!
//! The write path: `database::writing` -> `commitlog` -> `memtable`. The read path: `database::reading` -> `read` over
//! a `table::View`.

mod announce;
mod cache;
mod checked_name;
mod clock_watch;
mod commitlog;
mod compaction;
mod database;
mod error;
mod export;
mod figures;
mod folder;
mod gate;
pub mod import;
mod index;
mod journal;
mod lanes;
#[expect(unsafe_code, reason = "the arena and the map that readers walk without a lock; each block says why")]
mod memtable;
pub mod read;
mod samples;
mod schema;
mod snapshot;
mod storable;
mod table;
mod timestamps;
mod top;
mod work;

pub use checked_name::{CheckedName, CheckedPath, NameError};
pub use clock_watch::ClockJump;
pub use commitlog::{SyncMode, Ticket, UnappliableRecord};
pub use compaction::{
    CompactionRequest, CompactionSettings, CompactionStatus, PastCompaction, PurgeOptions, RequestStatus,
    parse_percent, parse_scaling_parameters, parse_size,
};
pub use database::{
    Database, DatabaseOptions, DdlError, MemoryShares, OpenProgress, OpenReport, OpenStage, RangeEstimate,
    ReadRequest, ReadTimeouts, Spread, Status, TableDetails, TableStatus, Turn,
};
pub use error::{DiskTrouble, Error, Result};
pub use export::Exported;
pub use figures::{Distribution, Distributions, FigureSummaries, Figures, Span, Summary};
pub use helenus_host::{account, contain};
pub use index::IndexBuildStatus;
pub use journal::{Event, Journal, JournalSlot};
pub use memtable::{Concurrent, ConcurrentMap};
pub use schema::{
    SchemaChange, SchemaChangeKind, index_id, is_replicated_system_keyspace, is_system_keyspace, parse_type,
};
pub use snapshot::{FoundSnapshot, SNAPSHOT_MANIFEST, TakenSnapshot};
pub use table::{Unreadable, View};
pub use timestamps::{ClockStatus, ServerTime, TIME_OF_DAY_MAX_S};
pub use top::TopPartition;
pub use work::{LogStatus, WorkDone};
