//! Metrics of a running database, for `admin status` and the metrics endpoint.

use super::index_builds::IndexBuildStatus;
use super::shared::Database;
use crate::compaction::CompactionStatus;
use crate::journal::Event;
use crate::metrics::{MetricSummaries, Period, TableMetrics};
use crate::table::View;
use crate::timestamps::ClockStatus;
use crate::top_partitions::TopPartition;
use crate::totals::{EngineTotals, LogStatus};
use helenus_sstable::table::SsTable;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The status of a database.
#[derive(Clone, Debug)]
pub struct Status {
    /// Identity of the server.
    pub host_id: uuid::Uuid,
    /// Bytes of all memtables.
    pub memtable_bytes: u64,
    /// Limit of memtable bytes; writers wait beyond it.
    pub memtable_bytes_max: u64,
    /// Bytes in the block cache.
    pub cache_bytes: u64,
    /// Capacity of the block cache in bytes.
    pub cache_bytes_max: u64,
    /// Blocks in the block cache.
    pub cache_blocks: u64,
    /// Number of commit log segments.
    pub log_segments: u64,
    /// The commit log; `None` if the database has none.
    pub log: Option<LogStatus>,
    /// The status of the clocks.
    pub clock: ClockStatus,
    /// Work done since the start.
    pub work: EngineTotals,
    /// Why a table's last flush failed, if one did.
    pub flush_failure: Option<String>,
    /// Running compactions and index builds.
    pub compactions: Vec<CompactionStatus>,
    /// Why the last compaction failed, if it did.
    pub compaction_failure: Option<String>,
    /// The tables, by keyspace and name.
    pub tables: Vec<TableStatus>,
}

/// The status of a table.
#[derive(Clone, Debug)]
pub struct TableStatus {
    /// Its keyspace.
    pub keyspace: String,
    /// Its name; for an index's hidden table, the table's and the index's with a dot between.
    pub table: String,
    /// Whether it is the hidden table of an index.
    pub is_index: bool,
    /// Number of SSTables.
    pub sstables: u64,
    /// Approximate number of compactions that are due.
    pub pending_compactions: u64,
    /// Bytes of its SSTables' files.
    pub disk_bytes: u64,
    /// Bytes of its memtables.
    pub memtable_bytes: u64,
    /// Rows in its memtables.
    pub memtable_rows: u64,
    /// Bytes of its largest SSTable.
    pub sstable_bytes_max: u64,
    /// Bytes of the largest partition within one SSTable, rounded up by at most a fifth.
    pub partition_bytes_max: u64,
    /// The greatest TTL in its SSTables, seconds; 0 without TTLs.
    pub ttl_s_max: u64,
    /// Approximate number of tombstones and expiring cells in its SSTables.
    pub tombstones: u64,
    /// Partitions in its SSTables. One that is in several counts in each.
    pub partitions: u64,
    /// Rows in its SSTables, counted likewise.
    pub rows: u64,
    /// SSTables that cannot be read: reads of the table fail.
    pub unreadable: u64,
    /// Bytes of its SSTables' data before compression.
    pub uncompressed_bytes: u64,
    /// Memtables flushed since the start.
    pub flushes: u64,
    /// Bytes of files written by flushes.
    pub flushed_bytes: u64,
    /// Compactions that succeeded since the start.
    pub compactions: u64,
    /// Bytes of files written by compactions.
    pub compacted_bytes: u64,
    /// Approximate memory of its SSTables' filters, indexes and chunk offsets, bytes.
    pub index_memory_bytes: u64,
    /// Bytes before compression of SSTables that are marked repaired.
    pub repaired_bytes: u64,
    /// Memtables that wait for their flush.
    pub flushes_pending: u64,
    /// Why its last flush failed, if it did.
    pub flush_failure: Option<String>,
    /// Why its last compaction failed, if it did.
    pub compaction_failure: Option<String>,
    /// The last panic of a read of the table since the start.
    pub read_panic: Option<String>,
    /// Summaries of its recent reads and writes; counts cover all since the start.
    pub figures: MetricSummaries,
    /// The table's metrics, with full distributions.
    pub counters: Arc<TableMetrics>,
    /// The partitions that were read most since the start, approximately.
    pub top_reads: Vec<TopPartition>,
    /// The partitions that were written most, likewise.
    pub top_writes: Vec<TopPartition>,
}

/// Number of most-used partitions shown for a table.
const TOP_MAX: usize = 10;

fn greatest(view: &View, of: impl Fn(&SsTable) -> u64) -> u64 {
    view.sstables.iter().map(|sstable| of(sstable)).max().unwrap_or(0)
}

fn sum(view: &View, of: impl Fn(&SsTable) -> u64) -> u64 {
    view.sstables.iter().map(|sstable| of(sstable)).sum()
}

impl Database {
    /// Notes in the journal that something stored is not understood and has no effect.
    pub fn note_ignored(&self, text: &str) {
        self.shared.options.journal.note(&Event::Ignored { text });
    }

    /// The present status.
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
                    // Table names in a schema have no dots.
                    is_index: table.name.contains('.'),
                    sstables: view.sstables.len() as u64,
                    pending_compactions: store.compaction.pending(),
                    disk_bytes: view.sstables.iter().map(|sstable| sstable.size_on_disk()).sum(),
                    memtable_bytes: view.memtables.iter().map(|memtable| memtable.bytes() as u64).sum(),
                    memtable_rows: view.memtables.iter().map(|memtable| memtable.stats().rows).sum(),
                    sstable_bytes_max: greatest(&view, SsTable::size_on_disk),
                    partition_bytes_max: greatest(&view, |sstable| sstable.stats().partition_sizes.max()),
                    ttl_s_max: greatest(&view, |sstable| {
                        u64::try_from(sstable.stats().ttl_s_max).unwrap_or(0)
                    }),
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
            cache_bytes: shared.buffers.bytes(),
            cache_bytes_max: shared.options.memory.cache,
            cache_blocks: shared.buffers.blocks(),
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

    /// Running compactions and index builds.
    fn tasks(&self) -> Vec<CompactionStatus> {
        let builds = self.shared.index_builds.unfinished();
        let mut tasks = self.shared.compactions.running();
        tasks.extend(builds.iter().map(IndexBuildStatus::as_task));
        tasks
    }

    /// The span of recent events, for callers that ask a table's metrics for distributions.
    pub fn recently(&self) -> Period {
        self.shared.recently()
    }

    /// Identity of the server, kept in its directory.
    pub fn host_id(&self) -> uuid::Uuid {
        self.shared.host_id
    }

    /// The host it runs on.
    pub fn host(&self) -> &helenus_host::Host {
        &self.shared.host
    }
}
