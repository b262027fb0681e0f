//! `Database`, and `Shared`: the state that writers, readers and background work of a database share.
//!
//! The parts are the commit log, the schema, the tables with their memtables and SSTables, the gate of writes, the
//! partition locks, the block cache, the timestamps, the host id, and the state of compactions and index builds.

use super::clocks::DatabaseClock;
use super::details::TableInspection;
use super::index_builds::IndexBuilds;
use super::leftovers::Leftovers;
use super::options::DatabaseOptions;
use super::partition_locks::PartitionLocks;
use super::timeouts::LiveTimeouts;
use super::watching::{ChangeFeed, Watching};
use crate::compaction::Compactions;
use crate::metrics::Period;
use crate::notify::Notifier;
use crate::read::ScratchPool;
use crate::table::Storage;
use arc_swap::ArcSwap;
use helenus_host::TaskHandle;
use helenus_host::account::Charge;
use helenus_model::schema::Schema;
use parking_lot::Mutex;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

/// A database in this process.
pub struct Database {
    pub(crate) shared: Arc<Shared>,
    pub(super) flusher: OnceLock<Arc<dyn TaskHandle>>,
}

/// State shared by writers, readers and background work.
pub(crate) struct Shared {
    /// What the parts below the database use.
    pub(crate) storage: Arc<Storage>,
    pub(crate) options: DatabaseOptions,
    /// At first those of `options`.
    pub(crate) timeouts: LiveTimeouts,
    pub(crate) schema: ArcSwap<Schema>,
    /// Held by a schema change: one at a time. The memory of the schema's tables on the account.
    pub(crate) ddl: Mutex<Charge>,
    pub(crate) scratches: ScratchPool,
    pub(crate) announcer: Arc<Notifier>,
    /// The failure of a table's last flush, if any; cleared when all succeed. Writes that find memory full report it.
    pub(crate) flush_failure: Mutex<Option<String>>,
    pub(crate) compactions: Arc<Compactions>,
    pub(crate) index_builds: IndexBuilds,
    /// Failed work that is tried again.
    pub(crate) leftovers: Leftovers,
    pub(super) partition_locks: PartitionLocks,
    pub(super) watching: Watching,
}

impl Database {
    /// Compactions: their settings, which last until the next start, and what was done.
    pub fn compactions(&self) -> &Compactions {
        &self.shared.compactions
    }

    /// Builds of indexes.
    pub fn index_builds(&self) -> &IndexBuilds {
        &self.shared.index_builds
    }

    /// The feed of changes.
    pub fn changes(&self) -> ChangeFeed<'_> {
        ChangeFeed::new(self)
    }

    /// The clocks.
    pub fn clock(&self) -> DatabaseClock<'_> {
        DatabaseClock::new(&self.shared)
    }

    /// What tables hold, in files and in memory.
    pub fn inspect(&self) -> TableInspection<'_> {
        TableInspection::new(&self.shared)
    }
}

impl Deref for Shared {
    type Target = Storage;

    fn deref(&self) -> &Storage {
        &self.storage
    }
}

impl Shared {
    /// The span of recent events, for metrics.
    pub(crate) fn recently(&self) -> Period {
        Period::Recent { now_ns: self.host.clock.monotonic_ns() }
    }
}
