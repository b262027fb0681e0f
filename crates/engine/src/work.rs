//! What a database has done since its start, besides the reads and writes that `figures` counts by table.
//!
//! Kept apart from the tables' figures, so that the sums do not shrink when a table is dropped.

use crate::figures::Counter;
use helenus_sstable::block::Touched;
use std::sync::atomic::{AtomicU64, Ordering};

/// The counters.
#[derive(Default)]
pub(crate) struct Work {
    cache_hits: Counter,
    cache_misses: Counter,
    bytes_read: Counter,
    pub(crate) flushes: AtomicU64,
    pub(crate) flush_failures: AtomicU64,
    pub(crate) flushed_bytes: AtomicU64,
    pub(crate) compactions: AtomicU64,
    pub(crate) compaction_failures: AtomicU64,
    pub(crate) compaction_bytes_read: AtomicU64,
    pub(crate) compaction_data_bytes: AtomicU64,
    pub(crate) compaction_bytes_written: AtomicU64,
    pub(crate) reads_failed: AtomicU64,
}

/// What they say at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkDone {
    /// Blocks and index pages that reads by key found in the cache.
    pub cache_hits: u64,
    /// Those that they read from files.
    pub cache_misses: u64,
    /// Bytes that reads took from files, those over ranges included.
    pub bytes_read: u64,
    /// Memtables that were flushed.
    pub flushes: u64,
    /// Flushes that failed.
    pub flush_failures: u64,
    /// Bytes of the files that flushes wrote.
    pub flushed_bytes: u64,
    /// Compactions that ended well.
    pub compactions: u64,
    /// Compactions that failed.
    pub compaction_failures: u64,
    /// Bytes that compactions read from files.
    pub compaction_bytes_read: u64,
    /// Bytes of data that those which ended well read, before compression.
    pub compaction_data_bytes: u64,
    /// Bytes of the files that they wrote.
    pub compaction_bytes_written: u64,
    /// Reads that a damaged file ended, or one that the system did not give.
    pub reads_failed: u64,
}

impl Work {
    /// Counts what a read touched. `cached`: it was one that uses the cache.
    #[inline]
    pub(crate) fn count_read(&self, touched: &Touched, cached: bool) {
        let read = touched.blocks_read + touched.index_pages_read;
        if cached {
            let hits = touched.blocks_cached + touched.index_pages_cached;
            if hits > 0 {
                self.cache_hits.add(hits);
            }
            if read > 0 {
                self.cache_misses.add(read);
            }
        }
        if touched.bytes_read > 0 {
            self.bytes_read.add(touched.bytes_read);
        }
    }

    pub(crate) fn flushed(&self, bytes: u64) {
        self.flushes.fetch_add(1, Ordering::Relaxed);
        self.flushed_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn compacted(&self, bytes: u64) {
        self.compactions.fetch_add(1, Ordering::Relaxed);
        self.compaction_bytes_written.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn done(&self) -> WorkDone {
        let get = |figure: &AtomicU64| figure.load(Ordering::Relaxed);
        WorkDone {
            cache_hits: self.cache_hits.value(),
            cache_misses: self.cache_misses.value(),
            bytes_read: self.bytes_read.value(),
            flushes: get(&self.flushes),
            flush_failures: get(&self.flush_failures),
            flushed_bytes: get(&self.flushed_bytes),
            compactions: get(&self.compactions),
            compaction_failures: get(&self.compaction_failures),
            compaction_bytes_read: get(&self.compaction_bytes_read),
            compaction_data_bytes: get(&self.compaction_data_bytes),
            compaction_bytes_written: get(&self.compaction_bytes_written),
            reads_failed: get(&self.reads_failed),
        }
    }
}

/// The commit log at one moment.
#[derive(Clone, Debug, Default)]
pub struct LogStatus {
    /// Segments on disk.
    pub segments: u64,
    /// Bytes of their files.
    pub bytes: u64,
    /// Bytes that were appended since the start.
    pub appended_bytes: u64,
    /// Bytes that were appended and are not known to be on the disk.
    pub unsynced_bytes: u64,
    /// How long syncs took, nanoseconds.
    pub syncs: crate::figures::Distribution,
    /// Why it takes no more writes, if it has failed.
    pub failure: Option<String>,
}
