//! What a read touched: the counts behind EXPLAIN ANALYZE, tracing, metrics and `profile`.
//!
//! A read carries one optional probe. Without it nothing is timed and nothing is kept but plain counters.

use helenus_sstable::block::Touched;

/// Why an SSTable was not asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SkipReason {
    /// Its first and last partition lie elsewhere.
    KeyRange,
    /// Its Bloom filter denies the key.
    BloomFilter,
    /// Its clusterings lie outside what is asked, and it has nothing that deletes.
    ClusteringRange,
    /// A newer partition deletion hides all of it.
    Deleted,
    /// The key is not in it, though the filter did not deny it.
    Absent,
}

/// Counts of one read.
#[derive(Clone, Debug, Default)]
pub struct Probe {
    /// Memtables asked.
    pub memtables: u64,
    /// SSTables asked.
    pub sstables: u64,
    /// SSTables not asked, and why: the generation as its file name shows it.
    pub skipped: Vec<(String, SkipReason)>,
    /// What the sources touched.
    pub touched: Touched,
    /// Rows given to the sink.
    pub rows: u64,
    /// Tombstones and dead rows passed.
    pub tombstones: u64,
}
