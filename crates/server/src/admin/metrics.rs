//! The metrics that tools get: what the engine and the listeners report, as data. Tools do the layout.

use serde::{Deserialize, Serialize};

use helenus_engine::{ClockStatus, Spread as Found};

/// The server as a node of a ring.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeMetrics {
    /// The server's host id.
    pub host_id: String,
    /// Warnings about the configuration, a sentence each.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// Name of the cluster.
    pub cluster_name: String,
    /// Datacenter.
    pub datacenter: String,
    /// Rack.
    pub rack: String,
    /// The address that clients are told to connect to.
    pub address: String,
    /// Its port.
    pub port: u16,
    /// The Cassandra release whose features it has.
    pub release_version: String,
    /// Version of Helenus.
    pub version: String,
    /// Version of the schema.
    pub schema_version: String,
    /// Seconds since the start.
    pub uptime_s: u64,
    /// When it started, seconds since 1970.
    pub started_s: i64,
    /// Whether clients are served.
    pub serves: bool,
    /// Bytes of all SSTables.
    pub disk_bytes: u64,
    /// Bytes of their data, uncompressed.
    pub unpacked_bytes: u64,
    /// Uncompressed bytes of the SSTables that are marked as repaired.
    pub repaired_bytes: u64,
    /// The tokens of the node, ascending. The node owns the whole ring.
    pub tokens: Vec<i64>,
    /// Keyspaces with their replication class and options.
    pub keyspaces: Vec<(String, String)>,
    /// Memory use.
    pub memory: MemoryMetrics,
    /// The state of the clocks.
    #[serde(default)]
    pub clock: ClockMetrics,
}

/// The state of the clocks. Times are in microseconds since 1970.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockMetrics {
    /// The machine's clock.
    pub wall_us: i64,
    /// The last timestamp that the server gave to a write; 0 for none.
    pub last_timestamp_us: i64,
    /// How far that timestamp is ahead of the machine's clock.
    pub ahead_us: i64,
    /// Jumps of the machine's clock by more than an hour since the start, including one found at the start.
    pub jumps: u64,
    /// The time that the clock should have shown at the last jump, and the time that it showed.
    pub last_jump: Option<(i64, i64)>,
    /// Whether writes without a timestamp are refused because the machine's clock is too far ahead.
    pub is_refused: bool,
}

impl From<ClockStatus> for ClockMetrics {
    fn from(status: ClockStatus) -> ClockMetrics {
        ClockMetrics {
            wall_us: status.wall_us,
            last_timestamp_us: status.last_us,
            ahead_us: status.ahead_us(),
            jumps: status.jumps,
            last_jump: status.last_jump.map(|jump| (jump.expected_us, jump.found_us)),
            is_refused: status.is_refused,
        }
    }
}

/// Memory use, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryMetrics {
    /// Resident memory of the process, as the system reports it; `None` if it does not.
    pub resident: Option<u64>,
    /// Memtables.
    pub memtables: u64,
    /// Limit of the memtables.
    pub memtables_max: u64,
    /// The block cache.
    pub cache: u64,
    /// Limit of the block cache.
    pub cache_max: u64,
    /// Number of blocks in the cache.
    pub cache_blocks: u64,
    /// Block cache hits since the start.
    pub cache_hits: u64,
    /// Block cache misses since the start.
    pub cache_misses: u64,
    /// Filters, indexes and chunk offsets of open SSTables, approximately.
    pub sstables: u64,
    /// Requests in flight.
    pub requests: u64,
    /// Limit of the requests in flight.
    pub requests_max: u64,
    /// The memory account, by share.
    #[serde(default)]
    pub shares: Vec<MemoryShare>,
    /// Requests that waited for memory since the start.
    #[serde(default)]
    pub waited: u64,
    /// Requests that were refused for lack of memory.
    #[serde(default)]
    pub refused: u64,
}

/// One share of `memory_limit`, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryShare {
    /// The name of the share.
    pub name: String,
    /// Bytes in use.
    pub used: u64,
    /// Its limit; `None` if it has none of its own.
    pub limit: Option<u64>,
    /// The highest use so far; `None` if unknown.
    pub peak: Option<u64>,
}

/// A distribution, in the form for tools. Times are in microseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The number of all events.
    pub count: u64,
    /// The mean of recent events; `None` without any.
    pub mean: Option<f64>,
    /// The 50th, 75th, 95th, 98th and 99th percentiles.
    pub percentiles: Vec<f64>,
    /// The least value.
    pub min: f64,
    /// The greatest value.
    pub max: f64,
}

impl Spread {
    /// Converts the engine's distribution to other units.
    pub fn of(found: &Found, scale: f64) -> Spread {
        let scaled = |value: u64| value as f64 * scale;
        Spread {
            count: found.count,
            mean: (found.count > 0 && !found.mean.is_nan()).then_some(found.mean * scale),
            percentiles: found.percentiles.iter().map(|value| scaled(*value)).collect(),
            min: scaled(found.min),
            max: scaled(found.max),
        }
    }
}

/// The metrics of a table, or of an index's storage.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TableMetrics {
    /// Its keyspace.
    pub keyspace: String,
    /// Its name. For an index's storage: the table's name, a dot and the index's name.
    pub table: String,
    /// Whether this is an index's storage.
    pub is_index: bool,
    /// Number of SSTables.
    pub sstables: u64,
    /// SSTables in older format versions than the one that is written.
    pub sstables_old: u64,
    /// Bytes of the largest SSTable.
    pub sstable_bytes_max: u64,
    /// Number and data bytes of SSTables for each level; empty unless the table uses levelled compaction.
    pub levels: Vec<(u64, u64)>,
    /// Bytes of all files.
    pub disk_bytes: u64,
    /// Bytes that only its snapshots still use.
    pub snapshot_bytes: u64,
    /// Bytes of memory for filters, indexes and chunk offsets, approximately.
    pub index_memory_bytes: u64,
    /// Bytes of the filter files.
    pub filter_bytes: u64,
    /// Compressed size divided by uncompressed size; `None` if nothing is compressed.
    pub compression_ratio: Option<f64>,
    /// Partitions, approximately.
    pub partitions: u64,
    /// Rows in memtables.
    pub memtable_rows: u64,
    /// Bytes in memtables.
    pub memtable_bytes: u64,
    /// Memtables that wait to be written.
    pub flushes_pending: u64,
    /// Memtables written since the start.
    pub flushes: u64,
    /// Uncompressed bytes of SSTables that are repaired, pending repair, and unrepaired.
    pub repaired_bytes: [u64; 3],
    /// Sizes of partitions, in bytes.
    pub partition_bytes: Spread,
    /// Cells for each partition.
    pub partition_cells: Spread,
    /// The fraction of cells that are droppable tombstones, approximately.
    pub droppable: f64,
    /// Reads by partition key, microseconds. Here and below, the percentiles are of recent events, the counts of all
    /// since the start.
    pub reads: Spread,
    /// Range reads, microseconds.
    pub scans: Spread,
    /// Writes, microseconds.
    pub writes: Spread,
    /// Rows that a read returned.
    pub rows: Spread,
    /// Tombstones that a read passed.
    pub tombstones: Spread,
    /// SSTables that were read for each partition of a read by key.
    pub sstables_read: Spread,
    /// Time of all reads by key since the start, microseconds, approximately.
    pub read_us_total: f64,
    /// Time of all writes since the start, microseconds, approximately.
    pub write_us_total: f64,
}

/// A thread pool with its queue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pool {
    /// Its name; that of Cassandra's pool if there is one like it.
    pub name: String,
    /// Tasks that are running.
    pub active: u64,
    /// Tasks that are waiting.
    pub pending: u64,
    /// Tasks that are completed since the start.
    pub completed: u64,
    /// Tasks that were refused since the start, because the queue was full.
    pub refused: u64,
}

/// The state of all compactions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompactionMetrics {
    /// The most compactions that run at a time.
    pub compactors: u64,
    /// The limit on what they read together, bytes a second; 0 for none.
    pub bytes_per_s: u64,
    /// Keyspace, table, and the approximate number of compactions due there.
    pub pending: Vec<(String, String, u64)>,
    /// Running compactions.
    pub running: Vec<RunningTask>,
    /// Completed since the start.
    pub completed: u64,
    /// Compactions that failed since the start.
    pub discarded: u64,
    /// Bytes that compactions have read from files.
    pub bytes_read: u64,
    /// Uncompressed bytes that completed compactions have read.
    pub data_bytes: u64,
    /// Compactions completed in the last 15 minutes.
    pub completed_lately: u64,
    /// Seconds since the start.
    pub uptime_s: u64,
    /// Why the last compaction failed, if it did.
    pub failure: Option<String>,
    /// Compactions that began with fewer SSTables than chosen, for want of space.
    #[serde(default)]
    pub reduced: u64,
    /// SSTables that were left out of them.
    #[serde(default)]
    pub sstables_left_out: u64,
    /// Tables whose compactions fail or wait for space.
    #[serde(default)]
    pub troubles: Vec<CompactionTroubleLine>,
}

/// A table whose compactions do not all run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompactionTroubleLine {
    /// Its keyspace.
    pub keyspace: String,
    /// Its name.
    pub table: String,
    /// The last failure.
    pub reason: String,
    /// Bytes of free space that its compactions wait for, if they do.
    pub wanted_bytes: Option<u64>,
    /// Bytes that are free, if the system tells.
    pub free_bytes: Option<u64>,
    /// Data.db of the SSTables that are left out.
    pub left_out: Vec<String>,
    /// Seconds until the next attempt; `None` if there is none before the next start.
    pub again_in_s: Option<u64>,
}

/// What holds space on the disk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskUsageReport {
    /// Bytes that are free, if the system tells.
    pub free_bytes: Option<u64>,
    /// What holds the others, the greatest first.
    pub uses: Vec<DiskUsageLine>,
}

/// Something that holds space.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskUsageLine {
    /// What it is, in words.
    pub what: String,
    /// Its keyspace; empty if it has none.
    pub keyspace: String,
    /// Its table; empty if it has none.
    pub table: String,
    /// Bytes of its files.
    pub bytes: u64,
    /// Their number.
    pub files: u64,
}

/// A running compaction or index build.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningTask {
    /// Its id.
    pub id: String,
    /// Its kind.
    pub kind: String,
    /// Its keyspace.
    pub keyspace: String,
    /// Its table.
    pub table: String,
    /// SSTables that it reads.
    pub sstables: u64,
    /// Bytes read so far.
    pub bytes_done: u64,
    /// Bytes to read in all.
    pub bytes_total: u64,
}

/// A finished compaction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastCompactionLine {
    /// Its id.
    pub id: String,
    /// Its keyspace.
    pub keyspace: String,
    /// Its table.
    pub table: String,
    /// When it ended, milliseconds since 1970.
    pub ended_ms: i64,
    /// Bytes of data before.
    pub bytes_in: u64,
    /// Bytes of data after.
    pub bytes_out: u64,
    /// SSTables before.
    pub sstables_in: u64,
    /// SSTables after.
    pub sstables_out: u64,
    /// Its kind.
    pub kind: String,
}

/// A frequently used partition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopPartitionLine {
    /// Its keyspace.
    pub keyspace: String,
    /// Its table.
    pub table: String,
    /// Its key as text.
    pub key: String,
    /// Reads since the start, approximately.
    pub reads: u64,
    /// Writes since the start, approximately.
    pub writes: u64,
}
