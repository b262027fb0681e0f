//! What a read touched: the counts behind EXPLAIN ANALYZE, tracing, metrics and `profile`.
//!
//! A read carries one optional probe. Without it nothing is timed and nothing is kept but plain counters
//! (`ReadContext::touched`), which are dropped with the read.
//!
//! How to use it: make a `Probe::default()`, hand it to `Database::read` (or to what calls it: `cql`'s requests carry one
//! too), look at its fields afterwards. The same probe given to several reads adds them up, so the pages of one
//! statement, or a hundred queries of a benchmark, are one sum. Where a read ends with an error the probe holds what was
//! touched until then; a read that is run again after `WouldBlock` starts with a fresh one.

use helenus_model::mutation::Mutation;
use helenus_sstable::block::Touched;
use helenus_sstable::names::Descriptor;
use helenus_sstable::stopwatch::StageTimes;
use helenus_sstable::table::SsTable;

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
    /// Newer sources hold all that is asked of the row.
    Older,
    /// The key is not in it, though the filter did not deny it.
    Absent,
}

impl SkipReason {
    /// All reasons, in the order in which they are tried.
    pub const ALL: [SkipReason; 6] = [
        SkipReason::Older,
        SkipReason::KeyRange,
        SkipReason::Deleted,
        SkipReason::BloomFilter,
        SkipReason::ClusteringRange,
        SkipReason::Absent,
    ];

    /// The reason in words, as EXPLAIN, traces and `profile` show it.
    pub fn words(self) -> &'static str {
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

/// What became of one SSTable, partition by partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableSeen {
    /// Its name.
    pub descriptor: Descriptor,
    /// Bytes of all its components.
    pub size_bytes: u64,
    /// Its partitions.
    pub partitions: u64,
    /// How many partitions of the read it was asked for; one for a range.
    pub asked: u64,
    skipped: [u64; SkipReason::ALL.len()],
}

impl TableSeen {
    fn new(table: &SsTable) -> TableSeen {
        TableSeen {
            descriptor: *table.descriptor(),
            size_bytes: table.size_on_disk(),
            partitions: table.partition_count(),
            asked: 0,
            skipped: Default::default(),
        }
    }

    /// How many partitions of the read it was left out for, for this reason.
    pub fn skipped(&self, reason: SkipReason) -> u64 {
        self.skipped.get(reason as usize).copied().unwrap_or_default()
    }

    /// The reasons why it was left out, with how often.
    pub fn reasons(&self) -> impl Iterator<Item = (SkipReason, u64)> + '_ {
        SkipReason::ALL.iter().map(|reason| (*reason, self.skipped(*reason))).filter(|(_, times)| *times > 0)
    }
}

/// SSTables told apart in a probe; of more, only the sums are kept.
pub const TABLES_SEEN_MAX: usize = 1024;

/// Counts of one or more reads, and of the writes of the same statement.
#[derive(Clone, Debug, Default)]
pub struct Probe {
    /// Reads run: one a page.
    pub reads: u64,
    /// Partitions looked for by key; for a range, those found.
    pub partitions: u64,
    /// Memtables that hold something of a partition read, summed over partitions; once each for a range.
    pub memtables: u64,
    /// SSTables asked, summed over partitions; once each for a range.
    pub sstables: u64,
    /// SSTables left out, summed over partitions.
    pub sstables_skipped: u64,
    /// The SSTables of the table one by one, newest data first, at most `TABLES_SEEN_MAX`.
    pub tables: Vec<TableSeen>,
    /// What the sources touched.
    pub touched: Touched,
    /// Rows given to the sink and counted by it.
    pub rows: u64,
    /// Rows that the sink refused: a filter did.
    pub rows_filtered: u64,
    /// Dead rows and range-tombstone markers passed after merging, those of memtables included.
    pub tombstones: u64,
    /// Time by stage.
    pub times: StageTimes,
    /// Reads of an index's entries.
    pub index_reads: u64,
    /// Entries of indexes that were read.
    pub index_entries: u64,
    /// Entries among them that led to nothing any more, and were taken out.
    pub index_stale: u64,
    /// SSTables of indexes that were asked.
    pub index_sstables: u64,
    /// Partitions written to.
    pub partitions_written: u64,
    /// Bytes of what was written: keys and changes, as they go to log and memtable.
    pub bytes_written: u64,
    /// Whether reads are only timed where they wait for files, which costs next to nothing; `times` then says of `Disk` alone
    /// what is true. For statements that are watched in case they become slow.
    pub disk_alone: bool,
}

impl Probe {
    /// One that counts everything and times waiting for files alone.
    pub fn of_disk() -> Probe {
        Probe { disk_alone: true, ..Probe::default() }
    }

    /// Left out for this reason, summed over partitions.
    pub fn skipped(&self, reason: SkipReason) -> u64 {
        self.tables.iter().map(|table| table.skipped(reason)).sum()
    }

    /// Adds a read of an index's entries: what it touched and how long it took count, its rows are no rows of the answer.
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

    /// Notes what became of a table for one partition, or for a range.
    pub(super) fn note(&mut self, table: &SsTable, skip: Option<SkipReason>) {
        match skip {
            None => self.sstables += 1,
            Some(_) => self.sstables_skipped += 1,
        }
        let descriptor = table.descriptor();
        let place = match self.tables.iter().position(|seen| seen.descriptor == *descriptor) {
            Some(place) => place,
            None if self.tables.len() >= TABLES_SEEN_MAX => return,
            None => {
                self.tables.push(TableSeen::new(table));
                self.tables.len() - 1
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
