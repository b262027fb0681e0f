//! Figures of a running database, for `admin status` and metrics.

use super::shared::Database;
use crate::compaction::CompactionStatus;
use crate::figures::{FigureSummaries, Figures, Span};
use crate::index::IndexBuildStatus;
use crate::table::View;
use crate::timestamps::ClockStatus;
use crate::top::TopPartition;
use crate::work::{LogStatus, WorkDone};
use helenus_sstable::table::SsTable;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A database's figures.
#[derive(Clone, Debug)]
pub struct Status {
    /// Identity of the server.
    pub host_id: uuid::Uuid,
    /// Bytes of all memtables.
    pub memtable_bytes: u64,
    /// Bytes that they may hold: writers wait then.
    pub memtable_bytes_max: u64,
    /// Bytes in the block cache.
    pub cache_bytes: u64,
    /// Bytes it may hold.
    pub cache_bytes_max: u64,
    /// Blocks in it.
    pub cache_blocks: u64,
    /// Segments of the commit log.
    pub log_segments: u64,
    /// The commit log; `None` where nothing is to survive.
    pub log: Option<LogStatus>,
    /// The clocks.
    pub clock: ClockStatus,
    /// What was done since the start.
    pub work: WorkDone,
    /// Why the last flush failed, if it did.
    pub flush_failure: Option<String>,
    /// Compactions under way, and builds of indexes.
    pub compactions: Vec<CompactionStatus>,
    /// Why the last compaction failed, if it did.
    pub compaction_failure: Option<String>,
    /// A line a table, by keyspace and name.
    pub tables: Vec<TableStatus>,
}

/// A table's figures.
#[derive(Clone, Debug)]
pub struct TableStatus {
    /// Its keyspace.
    pub keyspace: String,
    /// Its name; of what is stored for an index, the table's and the index's with a dot between.
    pub table: String,
    /// Whether it is what is stored for an index.
    pub is_index: bool,
    /// SSTables.
    pub sstables: u64,
    /// Compactions that are due, about.
    pub pending_compactions: u64,
    /// Bytes of their files.
    pub disk_bytes: u64,
    /// Bytes of its memtables.
    pub memtable_bytes: u64,
    /// Rows in its memtables.
    pub memtable_rows: u64,
    /// Bytes of its largest SSTable.
    pub sstable_bytes_max: u64,
    /// Bytes of the largest partition within one SSTable, rounded up by a fifth at most.
    pub partition_bytes_max: u64,
    /// Tombstones and expiring cells in its SSTables, about.
    pub tombstones: u64,
    /// Partitions of its SSTables, one that is in several counted in each.
    pub partitions: u64,
    /// Rows of its SSTables, counted likewise.
    pub rows: u64,
    /// SSTables that cannot be read: reads of the table fail.
    pub unreadable: u64,
    /// Bytes of the data of its SSTables before compression.
    pub uncompressed_bytes: u64,
    /// Memtables that were flushed since the start.
    pub flushes: u64,
    /// Bytes of the files that flushes wrote.
    pub flushed_bytes: u64,
    /// Compactions that ended well since the start.
    pub compactions: u64,
    /// Bytes of the files that they wrote.
    pub compacted_bytes: u64,
    /// Bytes of memory that filters, indexes and chunk offsets of its SSTables take, about.
    pub index_memory_bytes: u64,
    /// Bytes of data before compression of SSTables that say they are repaired.
    pub repaired_bytes: u64,
    /// Memtables that wait to be written.
    pub flushes_pending: u64,
    /// Why its last flush failed, if it did.
    pub flush_failure: Option<String>,
    /// Why its last compaction failed, if it did.
    pub compaction_failure: Option<String>,
    /// The last panic of a read of it since the start.
    pub read_panic: Option<String>,
    /// What its recent reads and writes cost, in short; counts are of all since the start.
    pub figures: FigureSummaries,
    /// The same at length: ask it for its distributions.
    pub counters: Arc<Figures>,
    /// Partitions that were read most since the start, about.
    pub top_reads: Vec<TopPartition>,
    /// Those that were written most.
    pub top_writes: Vec<TopPartition>,
}

/// Most asked for partitions that are shown of a table.
const TOP_MAX: usize = 10;

fn greatest(view: &View, of: impl Fn(&SsTable) -> u64) -> u64 {
    view.sstables.iter().map(|sstable| of(sstable)).max().unwrap_or(0)
}

fn sum(view: &View, of: impl Fn(&SsTable) -> u64) -> u64 {
    view.sstables.iter().map(|sstable| of(sstable)).sum()
}

impl Database {
    /// The figures at this moment.
    pub fn status(&self) -> Status {
        let shared = &self.shared;
        let recent = shared.recently();
        let mut tables: Vec<TableStatus> = shared
            .tables
            .load()
            .values()
            .map(|store| {
                let (table, view) = (store.table(), store.view());
                let troubles = store.troubles.now();
                TableStatus {
                    keyspace: table.keyspace.to_string(),
                    table: table.name.to_string(),
                    // No table of a schema has a dot in its name.
                    is_index: table.name.contains('.'),
                    sstables: view.sstables.len() as u64,
                    pending_compactions: store.compaction.pending(),
                    disk_bytes: view.sstables.iter().map(|sstable| sstable.size_on_disk()).sum(),
                    memtable_bytes: view.memtables.iter().map(|memtable| memtable.bytes() as u64).sum(),
                    memtable_rows: view.memtables.iter().map(|memtable| memtable.stats().rows).sum(),
                    sstable_bytes_max: greatest(&view, SsTable::size_on_disk),
                    partition_bytes_max: greatest(&view, |sstable| sstable.stats().partition_sizes.max()),
                    tombstones: sum(&view, |sstable| {
                        sstable.stats().tombstone_drop_times.sum_until(i64::MAX) as u64
                    }),
                    partitions: sum(&view, SsTable::partition_count),
                    rows: sum(&view, |sstable| u64::try_from(sstable.stats().rows).unwrap_or(0)),
                    unreadable: view.unreadable.len() as u64,
                    uncompressed_bytes: sum(&view, SsTable::uncompressed_bytes),
                    index_memory_bytes: sum(&view, |sstable| sstable.memory_bytes() as u64),
                    repaired_bytes: view
                        .sstables
                        .iter()
                        .filter(|sstable| sstable.stats().repaired_at_ms > 0)
                        .map(|sstable| sstable.uncompressed_bytes())
                        .sum(),
                    flushes_pending: view.memtables.len() as u64 - 1,
                    flushes: view.figures.flushes.load(Ordering::Relaxed),
                    flushed_bytes: view.figures.flushed_bytes.load(Ordering::Relaxed),
                    compactions: view.figures.compactions.load(Ordering::Relaxed),
                    compacted_bytes: view.figures.compacted_bytes.load(Ordering::Relaxed),
                    flush_failure: troubles.flush,
                    compaction_failure: troubles.compaction,
                    read_panic: troubles.read,
                    figures: view.figures.summaries(recent),
                    counters: view.figures.clone(),
                    top_reads: view.figures.top_reads.list(TOP_MAX),
                    top_writes: view.figures.top_writes.list(TOP_MAX),
                }
            })
            .collect();
        tables.sort_by(|a, b| (&a.keyspace, &a.table).cmp(&(&b.keyspace, &b.table)));
        Status {
            host_id: shared.host_id,
            memtable_bytes: shared.memory.bytes() as u64,
            memtable_bytes_max: shared.options.memory.memtables as u64,
            cache_bytes: shared.cache.bytes(),
            cache_bytes_max: shared.options.memory.cache,
            cache_blocks: shared.cache.blocks(),
            log_segments: shared.log.as_ref().map_or(0, |log| log.segments_count() as u64),
            log: shared.log.as_ref().map(|log| log.status()),
            clock: shared.timestamps.status(),
            work: shared.work.done(),
            flush_failure: shared.first_flush_failure(),
            compactions: self.tasks(),
            compaction_failure: shared.compactions.failure(),
            tables,
        }
    }

    /// Compactions under way, and builds of indexes.
    fn tasks(&self) -> Vec<CompactionStatus> {
        let builds = self.index_builds();
        let mut tasks = self.shared.compactions.running();
        tasks.extend(builds.iter().map(IndexBuildStatus::as_task));
        tasks
    }

    /// Recent events, for whoever asks a table's counters for their distributions.
    pub fn recently(&self) -> Span {
        self.shared.recently()
    }

    /// Identity of the server, kept in its directory.
    pub fn host_id(&self) -> uuid::Uuid {
        self.shared.host_id
    }

    /// The machine it runs on.
    pub fn host(&self) -> &helenus_host::Host {
        &self.shared.host
    }
}
