//! Counts of what a read touched, for EXPLAIN ANALYZE, tracing, metrics and `profile`.
//!
//! A read takes an optional probe. Without one nothing is timed, and only plain counters are kept
//! (`ReadContext::touched`), which are dropped with the read.
//!
//! Usage: make a `Probe::default()`, pass it to `Database::read` (or to its callers: `cql`'s requests carry one too),
//! and read its fields afterwards. A probe that is passed to several reads adds them up: the pages of one statement, or
//! a hundred queries of a benchmark. If a read fails, the probe has the counts until the failure. A read that runs
//! again after `WouldBlock` gets a fresh probe.

use helenus_model::mutation::Mutation;
use helenus_sstable::block::Touched;
use helenus_sstable::names::Descriptor;
use helenus_sstable::stopwatch::StageTimes;
use helenus_sstable::table::SsTable;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

/// Why an SSTable was skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SkipReason {
    /// The partitions lie outside its range of keys.
    KeyRange,
    /// Its Bloom filter excludes the key.
    BloomFilter,
    /// Its range of clusterings lies outside the filter, and it has no tombstones.
    ClusteringRange,
    /// A newer partition deletion hides all of it.
    Deleted,
    /// Newer sources determine all requested columns of the row.
    Older,
    /// The key is not in it, although the Bloom filter did not exclude it.
    Absent,
}

impl SkipReason {
    /// All reasons, in the order in which they are checked.
    pub const ALL: [SkipReason; 6] = [
        SkipReason::Older,
        SkipReason::KeyRange,
        SkipReason::Deleted,
        SkipReason::BloomFilter,
        SkipReason::ClusteringRange,
        SkipReason::Absent,
    ];

    /// The reason in words, as EXPLAIN, traces and `profile` show it.
    pub fn describe(self) -> &'static str {
        match self {
            SkipReason::KeyRange => "key range",
            SkipReason::BloomFilter => "Bloom filter",
            SkipReason::ClusteringRange => "clustering range",
            SkipReason::Deleted => "newer partition deletion",
            SkipReason::Older => "older than the row",
            SkipReason::Absent => "partition absent",
        }
    }
}

/// How often one SSTable was read and skipped, counted by partitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SsTableCounts {
    /// Its name.
    pub descriptor: Descriptor,
    /// Bytes of all its components.
    pub size_bytes: u64,
    /// The number of its partitions.
    pub partitions: u64,
    /// The number of the read's partitions for which it was read; 1 for a range.
    pub asked: u64,
    skipped: [u64; SkipReason::ALL.len()],
}

impl SsTableCounts {
    fn new(table: &SsTable) -> SsTableCounts {
        SsTableCounts {
            descriptor: *table.descriptor(),
            size_bytes: table.size_on_disk(),
            partitions: table.partition_count(),
            asked: 0,
            skipped: Default::default(),
        }
    }

    /// The number of the read's partitions for which it was skipped for this reason.
    pub fn skipped(&self, reason: SkipReason) -> u64 {
        self.skipped.get(reason as usize).copied().unwrap_or_default()
    }

    /// The reasons why it was skipped, with their numbers.
    pub fn reasons(&self) -> impl Iterator<Item = (SkipReason, u64)> + '_ {
        SkipReason::ALL.iter().map(|reason| (*reason, self.skipped(*reason))).filter(|(_, times)| *times > 0)
    }
}

/// The most SSTables that a probe lists one by one. Further ones count only in the sums.
pub const SSTABLES_LISTED_MAX: usize = 1024;

/// The indexes that could answer a read, and the one that was searched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexChoice {
    /// Their names, each with the mean number of rows for one value in its SSTables; `None` for a storage-attached one,
    /// which is not estimated.
    pub candidates: Vec<(Arc<str>, Option<i64>)>,
    /// The name of the one that was searched.
    pub chosen: Arc<str>,
}

/// Counts of one or more reads, and of the writes of the same statement.
#[derive(Clone, Debug, Default)]
pub struct Probe {
    /// Reads: one for each page.
    pub reads: u64,
    /// Partitions looked for by key; for a range, those found.
    pub partitions: u64,
    /// Memtables that contain a partition that was read, summed over partitions; for a range, each counts once.
    pub memtables: u64,
    /// SSTables read, summed over partitions; for a range, each counts once.
    pub sstables: u64,
    /// SSTables skipped, summed over partitions.
    pub sstables_skipped: u64,
    /// Those of them that nobody looked at: the index by token has excluded them. They are not in `tables`.
    pub sstables_elsewhere: u64,
    /// The SSTables of the table one by one, newest data first, at most `SSTABLES_LISTED_MAX`.
    pub tables: Vec<SsTableCounts>,
    /// The position of each SSTable in `tables`.
    places: BTreeMap<Descriptor, usize>,
    /// Blocks and bytes that the sources touched.
    pub touched: Touched,
    /// Rows that the sink counted.
    pub rows: u64,
    /// Rows that a filter of the sink refused.
    pub rows_filtered: u64,
    /// Dead rows and range-tombstone markers passed after merging, those of memtables included.
    pub tombstones: u64,
    /// Time by stage.
    pub times: StageTimes,
    /// Reads of index entries.
    pub index_reads: u64,
    /// Index entries read.
    pub index_entries: u64,
    /// Stale ones among them: no row matches any more, and the entries were deleted.
    pub index_stale: u64,
    /// SSTables of indexes that were read.
    pub index_sstables: u64,
    /// The indexes that could answer the last page that was read through one; `None` if only waits are timed.
    pub index_choice: Option<IndexChoice>,
    /// Partitions written to.
    pub partitions_written: u64,
    /// Bytes written: keys and changes, as they go to the log and the memtable.
    pub bytes_written: u64,
    /// Whether only waits for files are timed, which costs almost nothing. Then `times` is true for `Disk` alone. For
    /// statements that are watched in case they become slow.
    pub disk_alone: bool,
}

impl Probe {
    /// A probe that counts everything and times only waits for files.
    pub fn of_disk() -> Probe {
        Probe { disk_alone: true, ..Probe::default() }
    }

    /// The number of skips for this reason, summed over partitions.
    pub fn skipped(&self, reason: SkipReason) -> u64 {
        let elsewhere = if reason == SkipReason::KeyRange { self.sstables_elsewhere } else { 0 };
        self.tables.iter().map(|table| table.skipped(reason)).sum::<u64>() + elsewhere
    }

    /// Adds a read of index entries: its work and its time count, but its rows are not rows of the answer.
    pub(crate) fn add_index(&mut self, index: &Probe, entries: u64) {
        self.index_reads += index.reads;
        self.index_entries += entries;
        self.index_sstables += index.sstables;
        self.tombstones += index.tombstones;
        self.touched.add(&index.touched);
        self.times.add_all(&index.times);
    }

    /// Counts a write.
    pub fn count_write(&mut self, mutation: &Mutation) {
        self.partitions_written += mutation.updates.len() as u64;
        let bytes = mutation.updates.iter().map(|update| update.key.len() + update.changes.as_bytes().len());
        self.bytes_written += bytes.sum::<usize>() as u64;
    }

    /// Records SSTables that the index by token has excluded for one partition, or for a range.
    pub(super) fn note_elsewhere(&mut self, sstables: usize) {
        self.sstables_skipped += sstables as u64;
        self.sstables_elsewhere += sstables as u64;
    }

    /// Records that a table was read or skipped for one partition, or for a range.
    pub(super) fn note(&mut self, table: &SsTable, skip: Option<SkipReason>) {
        match skip {
            None => self.sstables += 1,
            Some(_) => self.sstables_skipped += 1,
        }
        let descriptor = *table.descriptor();
        let place = match self.places.entry(descriptor) {
            Entry::Occupied(place) => *place.get(),
            Entry::Vacant(_) if self.tables.len() >= SSTABLES_LISTED_MAX => return,
            Entry::Vacant(place) => {
                self.tables.push(SsTableCounts::new(table));
                *place.insert(self.tables.len() - 1)
            }
        };
        let Some(seen) = self.tables.get_mut(place) else { return };
        match skip {
            None => seen.asked += 1,
            Some(reason) => {
                if let Some(times) = seen.skipped.get_mut(reason as usize) {
                    *times += 1;
                }
            }
        }
    }
}
