//! The progress of opening a database: written by `open`, read by the caller that reports it to a person.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of an opening under way. All begin at zero. A total is known before the first step towards it.
#[derive(Debug, Default)]
pub struct OpenProgress {
    /// Bytes of the commit log.
    pub log_bytes: AtomicU64,
    /// Bytes of the log that were read and checked.
    pub log_bytes_read: AtomicU64,
    /// Records in the log; known when all of it is read.
    pub records: AtomicU64,
    /// Records that were replayed or skipped.
    pub records_done: AtomicU64,
}

/// The present stage of opening.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenStage {
    /// Reading and checking the commit log: bytes done, bytes in all.
    ReadingLog(u64, u64),
    /// Replaying the log: records done, records in all.
    Replaying(u64, u64),
    /// Opening files, before or after that.
    Files,
}

impl OpenProgress {
    /// The present stage.
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
