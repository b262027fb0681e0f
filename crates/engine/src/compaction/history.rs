//! Compactions that are over, for whoever asks what happened.
//!
//! Kept in memory: a restart forgets them.

use parking_lot::Mutex;
use std::collections::VecDeque;
use uuid::Uuid;

/// Compactions that are kept one by one.
const KEPT_MAX: usize = 1000;

/// What is kept of the compactions of a database.
#[derive(Default)]
pub(super) struct PastCompactions(Mutex<VecDeque<PastCompaction>>);

/// A compaction that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastCompaction {
    /// Its own id, a time UUID of its beginning.
    pub id: Uuid,
    /// Its keyspace.
    pub keyspace: String,
    /// Its table.
    pub table: String,
    /// What it was for, as in [`CompactionStatus`](super::CompactionStatus).
    pub kind: &'static str,
    /// When it ended, milliseconds since 1970.
    pub ended_ms: i64,
    /// SSTables that it replaced.
    pub sstables_in: u64,
    /// SSTables that it wrote.
    pub sstables_out: u64,
    /// Bytes of Data.db of the former.
    pub bytes_in: u64,
    /// Bytes of Data.db of the latter.
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

    /// The last first.
    pub(super) fn list(&self) -> Vec<PastCompaction> {
        self.0.lock().iter().cloned().collect()
    }
}
