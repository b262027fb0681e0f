//! What a database is: commit log, memtable, flush, read and write paths. Knows no statement and no socket.
//!
//! The write path: `database::writing` -> `commitlog` -> `memtable`. The read path: `database::reading` -> `read` over a
//! `table::View`.

mod announce;
mod cache;
mod commitlog;
mod compaction;
mod database;
mod error;
mod export;
mod figures;
mod folder;
pub mod import;
mod index;
#[expect(unsafe_code, reason = "the arena and the map that readers walk without a lock; each block says why")]
mod memtable;
pub mod read;
mod schema;
mod table;
mod timestamps;
mod top;

pub use commitlog::{SyncMode, Ticket};
pub use compaction::{
    CompactionRequest, CompactionSettings, CompactionStatus, PurgeOptions, RequestStatus, parse_percent,
    parse_scaling_parameters, parse_size,
};
pub use database::{
    Database, DatabaseOptions, DdlError, MemoryShares, OpenProgress, OpenReport, OpenStage, ReadRequest,
    ReadTimeouts, Status, TableStatus, Turn,
};
pub use error::{Error, Result};
pub use export::Exported;
pub use figures::{FigureSummaries, Figures, Summary};
pub use index::IndexBuildStatus;
pub use memtable::{Concurrent, ConcurrentMap};
pub use schema::{SchemaChange, SchemaChangeKind, index_id, is_system_keyspace, parse_type};
pub use table::{Unreadable, View};
pub use top::TopPartition;
