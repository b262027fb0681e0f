//! Counters of the whole database since its start, besides those that `metrics` keeps for each table.
//!
//! They are separate from the tables' metrics, so that the sums do not shrink when a table is dropped.

use crate::metrics::Counter;
use helenus_sstable::block::Touched;
use std::sync::atomic::{AtomicU64, Ordering};

/// The counters.
#[derive(Default)]
pub(crate) struct Totals {
    cache_hits: Counter,
    cache_misses: Counter,
    bytes_read: Counter,
    pub(crate) flushes: AtomicU64,
    pub(crate) flush_failures: AtomicU64,
    pub(crate) flushed_bytes: AtomicU64,
    pub(crate) compactions: AtomicU64,
    pub(crate) compaction_failures: AtomicU64,
    pub(crate) compactions_reduced: AtomicU64,
    pub(crate) compaction_sstables_left_out: AtomicU64,
    pub(crate) compaction_bytes_read: AtomicU64,
    pub(crate) compaction_data_bytes: AtomicU64,
    pub(crate) compaction_bytes_written: AtomicU64,
    pub(crate) reads_failed: AtomicU64,
}

/// The counters at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineTotals {
    /// Blocks and index pages that reads by key found in the cache.
    pub cache_hits: u64,
    /// Blocks and index pages that reads by key read from files.
    pub cache_misses: u64,
    /// Bytes that reads by key and range reads read from files.
    pub bytes_read: u64,
    /// Memtables that were flushed.
    pub flushes: u64,
    /// Flushes that failed.
    pub flush_failures: u64,
    /// Bytes of the files that flushes wrote.
    pub flushed_bytes: u64,
    /// Successful compactions.
    pub compactions: u64,
    /// Compactions that failed.
    pub compaction_failures: u64,
    /// Compactions that began with fewer SSTables than chosen, for want of space.
    pub compactions_reduced: u64,
    /// SSTables that were left out of them.
    pub compaction_sstables_left_out: u64,
    /// Bytes that compactions read from files.
    pub compaction_bytes_read: u64,
    /// Uncompressed bytes of data that successful compactions read.
    pub compaction_data_bytes: u64,
    /// Bytes of the files that compactions wrote.
    pub compaction_bytes_written: u64,
    /// Reads that failed because of a damaged file or an error of the operating system.
    pub reads_failed: u64,
}

impl Totals {
    /// Counts the blocks and bytes of a read. `cached`: whether the read uses the cache.
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

    pub(crate) fn done(&self) -> EngineTotals {
        let get = |figure: &AtomicU64| figure.load(Ordering::Relaxed);
        EngineTotals {
            cache_hits: self.cache_hits.value(),
            cache_misses: self.cache_misses.value(),
            bytes_read: self.bytes_read.value(),
            flushes: get(&self.flushes),
            flush_failures: get(&self.flush_failures),
            flushed_bytes: get(&self.flushed_bytes),
            compactions: get(&self.compactions),
            compaction_failures: get(&self.compaction_failures),
            compactions_reduced: get(&self.compactions_reduced),
            compaction_sstables_left_out: get(&self.compaction_sstables_left_out),
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
    /// Bytes appended that are not yet known to be on the disk.
    pub unsynced_bytes: u64,
    /// The duration of syncs, nanoseconds.
    pub syncs: crate::distribution::Distribution,
    /// Why the log refuses writes, if it has failed.
    pub failure: Option<String>,
}
