//! How far opening has got: written while a database opens, read by whoever tells a person.

use std::sync::atomic::{AtomicU64, Ordering};

/// Figures of an opening under way. All begin at zero; totals are known before the first step towards them.
#[derive(Debug, Default)]
pub struct OpenProgress {
    /// Bytes of commit log there are.
    pub log_bytes: AtomicU64,
    /// Bytes of them that were read and checked.
    pub log_bytes_read: AtomicU64,
    /// Records in them, known when all are read.
    pub records: AtomicU64,
    /// Records that were replayed or passed over.
    pub records_done: AtomicU64,
}

/// What an opening is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenStage {
    /// Reading and checking the commit log: bytes done, and of how many.
    ReadingLog(u64, u64),
    /// Replaying it: records done, and of how many.
    Replaying(u64, u64),
    /// Opening files, before or after.
    Files,
}

impl OpenProgress {
    /// What is being done now.
    pub fn stage(&self) -> OpenStage {
        let get = |figure: &AtomicU64| figure.load(Ordering::Relaxed);
        let (read, bytes) = (get(&self.log_bytes_read), get(&self.log_bytes));
        let (done, records) = (get(&self.records_done), get(&self.records));
        if read < bytes {
            OpenStage::ReadingLog(read, bytes)
        } else if done < records {
            OpenStage::Replaying(done, records)
        } else {
            OpenStage::Files
        }
    }

    pub(crate) fn add(figure: &AtomicU64, more: u64) {
        figure.fetch_add(more, Ordering::Relaxed);
    }
}
