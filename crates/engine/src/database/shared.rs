//! `Database`, and `Shared`: the state that writers, readers and background work of a database share.
//!
//! The parts are the commit log, the schema, the tables with their memtables and SSTables, the gate of writes, the
//! partition locks, the block cache, the timestamps, the host id, and the state of compactions and index builds.

use super::options::DatabaseOptions;
use super::partition_locks::PartitionLocks;
use super::timeouts::LiveTimeouts;
use crate::cache::SharedCache;
use crate::commitlog::CommitLog;
use crate::compaction::Compactions;
use crate::index::IndexBuilds;
use crate::memtable::MemoryAccount;
use crate::metrics::Period;
use crate::notify::Notifier;
use crate::read::ScratchPool;
use crate::sharded::CacheLine;
use crate::table::TableStore;
use crate::timestamps::Timestamps;
use crate::totals::Totals;
use crate::write_gate::WriteGate;
use arc_swap::ArcSwap;
use helenus_host::account::Charge;
use helenus_host::{Host, TaskHandle};
use helenus_model::schema::{Schema, TableId};
use helenus_sstable::names::{SsTableId, SsTableIds};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use uuid::Uuid;

/// A database in this process.
pub struct Database {
    pub(crate) shared: Arc<Shared>,
    pub(super) flusher: OnceLock<Arc<dyn TaskHandle>>,
}

/// The storage of tables by their ids.
pub(crate) type Tables = HashMap<TableId, Arc<TableStore>, foldhash::fast::RandomState>;

/// State shared by writers, readers and background work.
pub(crate) struct Shared {
    pub(crate) host: Host,
    pub(crate) options: DatabaseOptions,
    /// At first those of `options`.
    pub(crate) timeouts: LiveTimeouts,
    pub(crate) log: Option<Arc<CommitLog>>,
    pub(crate) schema: ArcSwap<Schema>,
    /// Stores of all tables, the hidden tables of indexes included.
    pub(crate) tables: ArcSwap<Tables>,
    /// Entered by a write from its log record until it is in the memtable; closed to relate a log position to a
    /// memtable.
    pub(crate) gate: WriteGate,
    /// Held by a schema change: one at a time. The memory of the schema's tables on the account.
    pub(crate) ddl: Mutex<Charge>,
    pub(crate) cache: Arc<SharedCache>,
    pub(crate) scratches: ScratchPool,
    pub(crate) memory: MemoryAccount,
    pub(crate) announcer: Arc<Notifier>,
    pub(crate) timestamps: CacheLine<Timestamps>,
    pub(crate) host_id: Uuid,
    pub(crate) closing: AtomicBool,
    /// The failure of a table's last flush, if any; cleared when all succeed. Writes that find memory full report it.
    pub(crate) flush_failure: Mutex<Option<String>>,
    /// Counters since the start.
    pub(crate) work: Totals,
    pub(crate) compactions: Compactions,
    pub(crate) index_builds: IndexBuilds,
    pub(super) partition_locks: PartitionLocks,
    pub(super) ids: Mutex<SsTableIds>,
    pub(super) file_numbers: AtomicU64,
    /// The directory's lock, until the database is closed.
    pub(super) lock: Mutex<Option<Box<dyn Send + Sync>>>,
}

impl Shared {
    pub(crate) fn data_dir(&self) -> PathBuf {
        self.options.dir.join("data")
    }

    /// The span of recent events, for metrics.
    pub(crate) fn recently(&self) -> Period {
        Period::Recent { now_ns: self.host.clock.monotonic_ns() }
    }

    pub(crate) fn next_sstable_id(&self) -> SsTableId {
        self.ids.lock().next(self.host.clock.wall_us())
    }

    /// A new time UUID.
    pub(crate) fn next_uuid(&self) -> Uuid {
        self.next_sstable_id().to_uuid().unwrap_or_default()
    }

    /// A number that no other file of this process has.
    pub(crate) fn next_file_number(&self) -> u64 {
        self.file_numbers.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn table(&self, id: TableId) -> Option<Arc<TableStore>> {
        self.tables.load().get(&id).cloned()
    }
}
