//! The list of finished compactions, for administrators.
//!
//! It is kept in memory, so a restart clears it.

use parking_lot::Mutex;
use std::collections::VecDeque;
use uuid::Uuid;

/// The most entries of the list.
const KEPT_MAX: usize = 1000;

/// The last finished compactions of a database.
#[derive(Default)]
pub(super) struct PastCompactions(Mutex<VecDeque<PastCompaction>>);

/// A finished compaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastCompaction {
    /// Its own id, a time UUID of its beginning.
    pub id: Uuid,
    /// Its keyspace.
    pub keyspace: String,
    /// Its table.
    pub table: String,
    /// Its kind, as in [`CompactionStatus`](super::CompactionStatus).
    pub kind: &'static str,
    /// When it ended, milliseconds since 1970.
    pub ended_ms: i64,
    /// SSTables that it replaced.
    pub sstables_in: u64,
    /// SSTables that it wrote.
    pub sstables_out: u64,
    /// Bytes of Data.db of the replaced SSTables.
    pub bytes_in: u64,
    /// Bytes of Data.db of the written SSTables.
    pub bytes_out: u64,
}

impl PastCompactions {
    pub(super) fn done(&self, past: PastCompaction) {
        let mut last = self.0.lock();
        if last.len() == KEPT_MAX {
            last.pop_back();
        }
        last.push_front(past);
    }

    /// The list, the latest first.
    pub(super) fn list(&self) -> Vec<PastCompaction> {
        self.0.lock().iter().cloned().collect()
    }
}
