//! What the storage of tables and the background work need of their database, which is above them.

use crate::commitlog::CommitLog;
use crate::journal::JournalSlot;
use crate::memtable::MemoryAccount;
use crate::sharded::CacheLine;
use crate::timestamps::Timestamps;
use crate::totals::Totals;
use crate::workers::Workers;
use crate::write_gate::WriteGate;
use helenus_host::Host;
use helenus_model::schema::Table;
use helenus_sstable::buffer::BufferPool;
use helenus_sstable::names::{SsTableId, SsTableIds};
use helenus_sstable::table::SsTable;
use parking_lot::Mutex;
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use uuid::Uuid;

/// The environment of a database's tables.
pub(crate) struct Env {
    pub(crate) host: Host,
    /// The directory of the database.
    pub(crate) dir: PathBuf,
    pub(crate) journal: JournalSlot,
    /// The server's identity, which each SSTable records.
    pub(crate) host_id: Uuid,
    pub(crate) log: Option<Arc<CommitLog>>,
    /// Entered by a write from its log record until it is in the memtable; closed to relate a log position to a
    /// memtable.
    pub(crate) gate: WriteGate,
    pub(crate) buffers: BufferPool,
    pub(crate) memory: MemoryAccount,
    pub(crate) timestamps: CacheLine<Timestamps>,
    /// Counters since the start.
    pub(crate) work: Totals,
    /// The compaction workers, to wake when a table has got SSTables.
    pub(crate) compactors: Workers,
    pub(crate) ids: Mutex<SsTableIds>,
    pub(crate) obsolete: Obsolete,
    /// This run of the database.
    pub(crate) run: Uuid,
}

/// SSTables that no view has any more. Their files have no names, but take space until the last reader is done.
#[derive(Default)]
pub(crate) struct Obsolete(Mutex<Vec<(Arc<Table>, Weak<SsTable>)>>);

impl Obsolete {
    /// Adds SSTables of a table that have just left its view.
    pub(crate) fn add(&self, table: &Arc<Table>, sstables: &[Arc<SsTable>]) {
        let mut all = self.0.lock();
        all.retain(|(_, sstable)| sstable.strong_count() > 0);
        all.extend(sstables.iter().map(|sstable| (table.clone(), Arc::downgrade(sstable))));
    }

    /// Those that are still open, with their tables.
    pub(crate) fn open(&self) -> Vec<(Arc<Table>, Arc<SsTable>)> {
        let all = self.0.lock();
        all.iter().filter_map(|(table, sstable)| Some((table.clone(), sstable.upgrade()?))).collect()
    }
}

impl Env {
    pub(crate) fn data_dir(&self) -> PathBuf {
        self.dir.join("data")
    }

    /// The folder in which an export links files.
    pub(crate) fn export_dir(&self) -> PathBuf {
        self.dir.join("export")
    }

    /// The folder in which an import gathers files.
    pub(crate) fn import_dir(&self) -> PathBuf {
        self.dir.join("import")
    }

    pub(crate) fn next_sstable_id(&self) -> SsTableId {
        self.ids.lock().next(self.host.clock.wall_us())
    }

    /// A new time UUID.
    pub(crate) fn next_uuid(&self) -> Uuid {
        self.next_sstable_id().to_uuid().unwrap_or_default()
    }
}
