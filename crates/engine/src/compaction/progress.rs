//! The progress of a compaction.

use super::choose::Reason;
use helenus_model::schema::Table;
use helenus_sstable::table::SsTable;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use uuid::Uuid;

/// Shared by the compaction and the status reports.
pub(super) struct Progress {
    id: Uuid,
    keyspace: Arc<str>,
    table: Arc<str>,
    reason: Reason,
    sstables: u64,
    bytes_total: u64,
    stored_bytes_total: u64,
    bytes_done: AtomicU64,
}

/// The status of a running compaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompactionStatus {
    /// Its own id, a time UUID of its beginning.
    pub id: Uuid,
    /// Its keyspace.
    pub keyspace: String,
    /// Its table.
    pub table: String,
    /// Its kind: `compaction`, `tombstones` or `major`; `secondary index build` for an index build, which is listed
    /// too.
    pub kind: &'static str,
    /// SSTables that it replaces.
    pub sstables: u64,
    /// Uncompressed bytes to read.
    pub bytes_total: u64,
    /// Bytes of the files that contain them; 0 for an index build.
    pub stored_bytes_total: u64,
    /// Bytes read so far.
    pub bytes_done: u64,
}

impl Progress {
    /// The progress of a compaction that replaces `inputs` and reads `read`.
    pub(super) fn new(
        id: Uuid,
        table: &Table,
        reason: Reason,
        inputs: &[Arc<SsTable>],
        read: &[Arc<SsTable>],
    ) -> Progress {
        Progress {
            id,
            keyspace: table.keyspace.clone(),
            table: table.name.clone(),
            reason,
            sstables: inputs.len() as u64,
            bytes_total: read.iter().map(|input| input.uncompressed_bytes()).sum(),
            stored_bytes_total: read.iter().map(|input| input.size_on_disk()).sum(),
            bytes_done: AtomicU64::new(0),
        }
    }

    pub(super) fn set(&self, bytes_done: u64) {
        self.bytes_done.store(bytes_done, Ordering::Relaxed);
    }

    /// About the bytes of files that are not read yet.
    pub(super) fn stored_bytes_left(&self) -> u64 {
        let done = self.bytes_done.load(Ordering::Relaxed).min(self.bytes_total);
        let part = (self.bytes_total - done) as f64 / self.bytes_total.max(1) as f64;
        (self.stored_bytes_total as f64 * part) as u64
    }

    pub(super) fn status(&self) -> CompactionStatus {
        CompactionStatus {
            id: self.id,
            keyspace: self.keyspace.to_string(),
            table: self.table.to_string(),
            kind: match self.reason {
                Reason::Strategy => "compaction",
                Reason::Tombstones => "tombstones",
                Reason::Major => "major",
            },
            sstables: self.sstables,
            bytes_total: self.bytes_total,
            stored_bytes_total: self.stored_bytes_total,
            bytes_done: self.bytes_done.load(Ordering::Relaxed),
        }
    }
}
