//! Figures that tools are told: what the engine and the doors know, as data. How a tool lays them out is its own affair.

use serde::{Deserialize, Serialize};

use helenus_engine::{ClockStatus, Spread as Found};

/// The server as a node of a ring.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeFigures {
    /// Identity of the server.
    pub host_id: String,
    /// What its owner should know of how it is set up, a sentence each.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// Name of the cluster.
    pub cluster_name: String,
    /// Datacenter.
    pub datacenter: String,
    /// Rack.
    pub rack: String,
    /// Where clients are told to connect.
    pub address: String,
    /// Its port.
    pub port: u16,
    /// The Cassandra release whose features it has.
    pub release_version: String,
    /// Version of the program.
    pub version: String,
    /// Identity of the schema.
    pub schema_version: String,
    /// Seconds since the start.
    pub uptime_s: u64,
    /// When it started, seconds since 1970.
    pub started_s: i64,
    /// Whether clients are served.
    pub serves: bool,
    /// Bytes of all SSTables.
    pub disk_bytes: u64,
    /// Bytes of their data before compression.
    pub unpacked_bytes: u64,
    /// Those of them that say they are repaired.
    pub repaired_bytes: u64,
    /// Ends of the ring's pieces, ascending; all are here.
    pub tokens: Vec<i64>,
    /// Keyspaces with the class and the options of their replication.
    pub keyspaces: Vec<(String, String)>,
    /// Where memory is.
    pub memory: MemoryFigures,
    /// How the clocks are.
    #[serde(default)]
    pub clock: ClockFigures,
}

/// How the clocks are. Times in microseconds since 1970.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockFigures {
    /// The machine's clock.
    pub wall_us: i64,
    /// The last timestamp that the server gave to a write; 0 for none.
    pub last_timestamp_us: i64,
    /// How far it is ahead of the machine's clock.
    pub ahead_us: i64,
    /// Jumps of the machine's clock by more than an hour since the start, one found at the start among them.
    pub jumps: u64,
    /// What the clock would have said before the last jump, and what it said behind it.
    pub last_jump: Option<(i64, i64)>,
    /// Whether writes without a timestamp of their own are refused, because the machine's clock says too much.
    pub is_refused: bool,
}

impl From<ClockStatus> for ClockFigures {
    fn from(status: ClockStatus) -> ClockFigures {
        ClockFigures {
            wall_us: status.wall_us,
            last_timestamp_us: status.last_us,
            ahead_us: status.ahead_us(),
            jumps: status.jumps,
            last_jump: status.last_jump.map(|jump| (jump.expected_us, jump.found_us)),
            is_refused: status.is_refused,
        }
    }
}

/// Where memory is; bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryFigures {
    /// What the process has in memory, as the system counts; `None` where it does not tell.
    pub resident: Option<u64>,
    /// Memtables.
    pub memtables: u64,
    /// What they may take.
    pub memtables_max: u64,
    /// Blocks of SSTables that are kept.
    pub cache: u64,
    /// What they may take.
    pub cache_max: u64,
    /// Blocks.
    pub cache_blocks: u64,
    /// Looks for a block that found it, since the start.
    pub cache_hits: u64,
    /// Those that did not.
    pub cache_misses: u64,
    /// Filters, indexes and chunk offsets of open SSTables, about.
    pub sstables: u64,
    /// Requests in flight.
    pub requests: u64,
    /// What they may take.
    pub requests_max: u64,
    /// The account of memory, by share.
    #[serde(default)]
    pub shares: Vec<MemoryShare>,
    /// Requests that waited for room on the account, since the start.
    #[serde(default)]
    pub waited: u64,
    /// Requests that got none.
    #[serde(default)]
    pub refused: u64,
}

/// One share of `memory_limit`; bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryShare {
    /// What it is for.
    pub name: String,
    /// What it holds.
    pub used: u64,
    /// What it may hold; `None` if nothing bounds it by itself.
    pub limit: Option<u64>,
    /// The most that it has held; `None` where that is not known.
    pub peak: Option<u64>,
}

/// How values are spread, as tools are told. Times in microseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Events, all of them.
    pub count: u64,
    /// Mean of the recent ones; `None` without any.
    pub mean: Option<f64>,
    /// The values that 50, 75, 95, 98 and 99 of a hundred do not exceed.
    pub percentiles: Vec<f64>,
    /// Least.
    pub min: f64,
    /// Greatest.
    pub max: f64,
}

impl Spread {
    /// What the engine found, in other units.
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

/// What is known of a table, or of what is stored for an index.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TableFigures {
    /// Its keyspace.
    pub keyspace: String,
    /// Its name; of what is stored for an index, the table's and the index's with a dot between.
    pub table: String,
    /// Whether it is what is stored for an index.
    pub is_index: bool,
    /// SSTables.
    pub sstables: u64,
    /// Those of versions before the one that is written.
    pub sstables_old: u64,
    /// Bytes of the largest one.
    pub sstable_bytes_max: u64,
    /// SSTables and bytes of data a level; empty unless the table is compacted by levels.
    pub levels: Vec<(u64, u64)>,
    /// Bytes of all files.
    pub disk_bytes: u64,
    /// Bytes that its snapshots alone hold.
    pub snapshot_bytes: u64,
    /// Bytes of memory for filters, indexes and chunk offsets, about.
    pub index_memory_bytes: u64,
    /// Bytes of the filters' files.
    pub filter_bytes: u64,
    /// Stored over unpacked bytes; `None` where nothing is compressed.
    pub compression_ratio: Option<f64>,
    /// Partitions, about.
    pub partitions: u64,
    /// Rows in memory.
    pub memtable_rows: u64,
    /// Bytes in memory.
    pub memtable_bytes: u64,
    /// Memtables that wait to be written.
    pub flushes_pending: u64,
    /// Memtables written since the start.
    pub flushes: u64,
    /// Unpacked bytes of SSTables that say they are repaired, are waiting for it, and are neither.
    pub repaired_bytes: [u64; 3],
    /// Bytes of partitions.
    pub partition_bytes: Spread,
    /// Cells of partitions.
    pub partition_cells: Spread,
    /// Part of the cells that are tombstones old enough to go, about.
    pub droppable: f64,
    /// Reads of partitions by key, microseconds; this and those below of recent events, their counts of all since the start.
    pub reads: Spread,
    /// Reads over partitions, microseconds.
    pub scans: Spread,
    /// Writes into a partition, microseconds.
    pub writes: Spread,
    /// Rows that a read gave.
    pub rows: Spread,
    /// Dead rows and markers that a read passed.
    pub tombstones: Spread,
    /// SSTables that a read by key asked, a partition.
    pub sstables_read: Spread,
    /// Time of all reads by key since the start, microseconds, about.
    pub read_us_total: f64,
    /// That of all writes.
    pub write_us_total: f64,
}

/// Threads with a queue before them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pool {
    /// Its name, Cassandra's where it has one like it.
    pub name: String,
    /// Under way.
    pub active: u64,
    /// Waiting.
    pub pending: u64,
    /// Done since the start.
    pub completed: u64,
    /// Refused since the start, because too many waited.
    pub refused: u64,
}

/// All compactions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompactionFigures {
    /// How many may run at a time.
    pub compactors: u64,
    /// Bytes a second that they read together; 0 for no bound.
    pub bytes_per_s: u64,
    /// Keyspace, table, and compactions due there, about.
    pub pending: Vec<(String, String, u64)>,
    /// Those under way.
    pub running: Vec<RunningTask>,
    /// Completed since the start.
    pub completed: u64,
    /// Failed since the start.
    pub discarded: u64,
    /// Bytes that they read from files.
    pub bytes_read: u64,
    /// Bytes of data that the completed ones read, before compression.
    pub data_bytes: u64,
    /// Completed in the last 15 minutes.
    pub completed_lately: u64,
    /// Seconds since the start.
    pub uptime_s: u64,
    /// Why the last one failed, if it did.
    pub failure: Option<String>,
}

/// A compaction, or a build of an index, under way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningTask {
    /// Its identity.
    pub id: String,
    /// What it is for.
    pub kind: String,
    /// Its keyspace.
    pub keyspace: String,
    /// Its table.
    pub table: String,
    /// SSTables that it reads.
    pub sstables: u64,
    /// Bytes read so far.
    pub bytes_done: u64,
    /// Bytes there are.
    pub bytes_total: u64,
}

/// A compaction that is over.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastCompactionLine {
    /// Its identity.
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
    /// What it was for.
    pub kind: String,
}

/// A partition that is asked for often.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopPartitionLine {
    /// Its keyspace.
    pub keyspace: String,
    /// Its table.
    pub table: String,
    /// Its key as text.
    pub key: String,
    /// Reads since the start, about.
    pub reads: u64,
    /// Writes since the start, about.
    pub writes: u64,
}
