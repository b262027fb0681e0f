//! What tools are told on the admin socket.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::figures::{
    ClockFigures, CompactionFigures, MemoryFigures, NodeFigures, PastCompactionLine, Pool, TableFigures,
    TopPartitionLine,
};

/// What it is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AdminAnswer {
    /// It is done, and there is nothing to say.
    Done,
    /// The figures.
    Status(ServerStatus),
    /// Who the server is.
    Node(NodeFigures),
    /// What is known of tables.
    Tables(Vec<TableFigures>),
    /// Threads and queues.
    Pools(Vec<Pool>),
    /// Where memory is.
    Memory(MemoryFigures),
    /// A flush is done.
    Flushed(Flushed),
    /// How far a compaction that was asked for is.
    Compaction(Compaction),
    /// All compactions.
    Compactions(CompactionFigures),
    /// Compactions that are over, the last first.
    History(Vec<PastCompactionLine>),
    /// Keyspace, table, and whether it is compacted by itself.
    AutoCompaction(Vec<(String, String, bool)>),
    /// How far an errand is.
    Errand(Errand),
    /// Where files to be exported are.
    Exported(ExportedFiles),
    /// Snapshots there are, were taken or were removed.
    Snapshots(Vec<SnapshotLine>),
    /// Data.db files, each with its level.
    Files(Vec<(PathBuf, i32)>),
    /// Partitions that are asked for most.
    TopPartitions(Vec<TopPartitionLine>),
    /// From 0 to 1.
    Probability(f64),
    /// Milliseconds that requests of a kind may take.
    TimeoutMs(u64),
    /// How much is logged: a level of `log_level`.
    LogLevel(String),
    /// Keyspace, table, and the folder of its files.
    DataPaths(Vec<(String, String, PathBuf)>),
    /// Clients that are connected, and that were.
    Clients(ClientsSeen),
    /// What reading the configuration again came to.
    Reloaded(Reloaded),
    /// How the clocks were before they were reset.
    Clock(ClockFigures),
    /// The request failed; the text says why.
    Error(String),
}

/// Clients, now and since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientsSeen {
    /// Connections open now.
    pub connections: Vec<ClientLine>,
    /// Addresses by the version of the protocol that they used, the last seen first.
    pub by_protocol: Vec<ProtocolClient>,
}

/// A connection of a client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientLine {
    /// Where it comes from.
    pub address: SocketAddr,
    /// Version of the protocol; 0 before STARTUP.
    pub version: u8,
    /// The keyspace in use.
    pub keyspace: Option<String>,
    /// Requests so far.
    pub requests: u64,
    /// The options of its STARTUP, in the order of their names.
    pub options: BTreeMap<String, String>,
}

/// An address that connected with a version of the protocol.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProtocolClient {
    /// Version of the protocol.
    pub version: u8,
    /// The address.
    pub address: IpAddr,
    /// Its last STARTUP, milliseconds since 1970.
    pub last_seen_ms: i64,
}

/// What a flush did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flushed {
    /// SSTables written.
    pub sstables: u64,
}

/// A compaction that was asked for: how far it is, and what it has changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compaction {
    /// Its number, to ask for it again.
    pub number: u64,
    /// Whether it is over.
    pub is_over: bool,
    /// Compactions ended so far.
    pub compactions: u64,
    /// Tables not begun yet.
    pub tables_left: u64,
    /// SSTables of its tables before.
    pub sstables_before: u64,
    /// SSTables of its tables now.
    pub sstables: u64,
    /// Bytes of their files before.
    pub disk_bytes_before: u64,
    /// Bytes of their files now.
    pub disk_bytes: u64,
    /// Compactions under way in the whole server.
    pub running: Vec<RunningCompaction>,
}

/// Something that takes a while: how far it is, and what it has come to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Errand {
    /// Its number, to ask for it again.
    pub number: u64,
    /// What is done now.
    pub doing: String,
    /// Bytes of files that are done.
    pub bytes_done: u64,
    /// Bytes there are.
    pub bytes_total: u64,
    /// Once it is over: what it came to.
    pub outcome: Option<Outcome>,
}

/// What an errand came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// An import.
    Imported(Import),
    /// Whether tables are sound.
    Verified(Vec<VerifiedTable>),
    /// A restore.
    Restored(Restored),
}

/// What an import has come to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Import {
    /// Keyspace, table and SSTables of each that got some.
    pub tables: Vec<(String, String, u64)>,
    /// Bytes of data files.
    pub bytes: u64,
    /// Keyspaces and tables that were made.
    pub made: Vec<String>,
    /// What the user should know.
    pub notes: Vec<String>,
}

/// A table whose SSTables were read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifiedTable {
    /// Its keyspace.
    pub keyspace: String,
    /// Its name.
    pub table: String,
    /// SSTables that were read.
    pub sstables: u64,
    /// What is wrong with them.
    pub problems: Vec<String>,
}

/// What a restore has come to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restored {
    /// Identity of the backup.
    pub backup: String,
    /// When it was taken.
    pub created_at: String,
    /// Each table.
    pub tables: Vec<RestoredTable>,
    /// Files whose digests were compared.
    pub files: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// What the user should know.
    pub notes: Vec<String>,
}

/// A table of a backup.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoredTable {
    /// Keyspace and name in the backup.
    pub from: (String, String),
    /// Keyspace and name here.
    pub to: (String, String),
    /// SSTables.
    pub sstables: u64,
    /// An earlier run, which was cut, had restored it.
    pub was_there: bool,
}

/// A snapshot of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotLine {
    /// Its name.
    pub name: String,
    /// Its keyspace.
    pub keyspace: String,
    /// Its table.
    pub table: String,
    /// Where it is.
    pub folder: PathBuf,
    /// Bytes of all its files.
    pub bytes: u64,
    /// Bytes that removing it sets free.
    pub bytes_alone: u64,
    /// When it was taken, as its manifest says.
    pub created_at: Option<String>,
    /// When it is to be removed: nothing here sets or heeds it.
    pub expires_at: Option<String>,
}

/// What reading the configuration again came to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reloaded {
    /// Keys whose new values hold.
    pub taken: Vec<String>,
    /// Keys with other values, which the next start will take.
    pub at_next_start: Vec<String>,
}

/// Files that are held for an export, until whoever asked removes the folder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportedFiles {
    /// `schema.cql`, and `KEYSPACE/TABLE` with its SSTables and its own.
    pub folder: PathBuf,
    /// Keyspace, table and SSTables of each.
    pub tables: Vec<(String, String, u64)>,
}

/// A compaction under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningCompaction {
    /// Its keyspace.
    pub keyspace: String,
    /// Its table.
    pub table: String,
    /// What it is for: `compaction` as the strategy chose it, `tombstones` of one SSTable, `major` as asked for.
    pub kind: String,
    /// SSTables that it replaces.
    pub sstables: u64,
    /// Bytes of data to read, before compression.
    pub bytes_total: u64,
    /// Bytes read so far.
    pub bytes_done: u64,
}

/// A server's figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerStatus {
    /// Version of the program.
    pub version: String,
    /// Process.
    pub pid: u32,
    /// Since when it runs, seconds.
    pub uptime_s: u64,
    /// Identity of the server.
    pub host_id: String,
    /// Where it listens.
    pub listening: String,
    /// Where it serves the old RPC interface, if it does.
    #[serde(default)]
    pub rpc: Option<String>,
    /// What its owner should know of how it is set up, a sentence each.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// Where the data is; none in memory.
    pub directory: Option<String>,
    /// How writes are synced; none in memory.
    pub sync: Option<String>,
    /// Clients connected.
    pub connections: u64,
    /// Bytes of all memtables.
    pub memtable_bytes: u64,
    /// Bytes in the block cache.
    pub cache_bytes: u64,
    /// Segments of the commit log.
    pub log_segments: u64,
    /// Why the last flush failed, if it did.
    pub flush_failure: Option<String>,
    /// Compactions under way.
    pub compactions: Vec<RunningCompaction>,
    /// Why the last compaction failed, if it did.
    pub compaction_failure: Option<String>,
    /// By keyspace and name.
    pub tables: Vec<TableLine>,
}

/// A table's figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableLine {
    /// Its keyspace.
    pub keyspace: String,
    /// Its name.
    pub table: String,
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
    /// What of its work has failed and not gone well since.
    #[serde(default)]
    pub failures: Vec<String>,
}
