//! The answers of the admin socket.

use crate::backup::Restored;
use crate::history::Sample;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::metrics::{
    ClockMetrics, CompactionMetrics, DiskUsageReport, MemoryMetrics, NodeMetrics, PastCompactionLine, Pool,
    TableMetrics, TopPartitionLine,
};

/// An answer to a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AdminAnswer {
    /// The request is done, without a result.
    Done,
    /// The server's main metrics.
    Status(ServerStatus),
    /// The server as a node of a ring.
    Node(NodeMetrics),
    /// The metrics of tables.
    Tables(Vec<TableMetrics>),
    /// The history of the server's figures.
    Growth(Growth),
    /// Threads and queues.
    Pools(Vec<Pool>),
    /// Memory use.
    Memory(MemoryMetrics),
    /// What holds space on the disk.
    DiskUsage(DiskUsageReport),
    /// A flush is done.
    Flushed(Flushed),
    /// The progress of a requested compaction.
    Compaction(Compaction),
    /// The state of all compactions.
    Compactions(CompactionMetrics),
    /// Finished compactions, the last first.
    History(Vec<PastCompactionLine>),
    /// Keyspace, table, and whether it is compacted automatically.
    AutoCompaction(Vec<(String, String, bool)>),
    /// The progress of a job.
    #[serde(alias = "job")]
    #[serde(alias = "errand")]
    Job(Job),
    /// The location of the files to be exported.
    Exported(ExportedFiles),
    /// Snapshots that exist, were taken or were removed.
    Snapshots(Vec<SnapshotLine>),
    /// Data.db files, each with its level.
    Files(Vec<(PathBuf, i32)>),
    /// The most frequently used partitions.
    TopPartitions(Vec<TopPartitionLine>),
    /// The trace probability, from 0 to 1.
    Probability(f64),
    /// The timeout of a kind of request, milliseconds.
    TimeoutMs(u64),
    /// The log level, a value of `log_level`.
    LogLevel(String),
    /// Keyspace, table, and the folder of its files.
    DataPaths(Vec<(String, String, PathBuf)>),
    /// The clients connected now, and those seen since the start.
    Clients(ClientsSeen),
    /// The result of reading the configuration again.
    Reloaded(Reloaded),
    /// The options of the audit log.
    AuditLog(AuditState),
    /// Names, such as those of groups of networks.
    Names(Vec<String>),
    /// Whether there was something to do.
    Was(bool),
    /// What was decided about the networks of clients.
    CidrStats(CidrStats),
    /// The state of the clocks before they were reset.
    Clock(ClockMetrics),
    /// Events of a table.
    Changes(ChangesLines),
    /// The consumers of changes.
    ChangeConsumers(Vec<ChangeConsumerLine>),
    /// The answer of a part of the program that is registered with the admin socket.
    Further(String),
    /// The request failed; the text gives the reason.
    Error(String),
}

/// Events of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangesLines {
    /// The events, each a JSON object.
    pub events: Vec<String>,
    /// The position behind them.
    pub next: String,
    /// Whether there were no more.
    pub is_end: bool,
}

/// A consumer of changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeConsumerLine {
    /// Its name.
    pub name: String,
    /// The keyspace of its table.
    pub keyspace: String,
    /// Its table.
    pub table: String,
    /// The position that it has acknowledged.
    pub position: String,
    /// When it did, seconds since 1970.
    pub acknowledged_s: i64,
    /// Whether the log has everything after that position.
    pub is_kept: bool,
}

/// The clients connected now, and those seen since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientsSeen {
    /// Connections open now.
    pub connections: Vec<ClientLine>,
    /// Addresses by protocol version, the last seen first.
    pub by_protocol: Vec<ProtocolClient>,
}

/// What was decided about the networks of clients since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CidrStats {
    /// Statements that were run, by the group of the client's network.
    pub accepted: BTreeMap<String, u64>,
    /// Statements that were refused, by group.
    pub rejected: BTreeMap<String, u64>,
    /// How often the groups were read.
    pub reloads: u64,
}

/// The options of the audit log: those in force, or those of the configuration while it is off.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the keys of audit_logging_options")]
pub struct AuditState {
    pub enabled: bool,
    pub logger: String,
    pub audit_logs_dir: String,
    pub roll_cycle: String,
    pub block: bool,
    pub max_log_size: u64,
    pub max_queue_weight: u64,
    pub max_archive_retries: i64,
    pub included_keyspaces: String,
    pub excluded_keyspaces: String,
    pub included_categories: String,
    pub excluded_categories: String,
    pub included_users: String,
    pub excluded_users: String,
}

/// A connection of a client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientLine {
    /// The client's address.
    pub address: SocketAddr,
    /// The protocol version; 0 before STARTUP.
    pub version: u8,
    /// The role; `anonymous` where nobody logs in, `None` before a login.
    #[serde(default)]
    pub user: Option<String>,
    /// The protocol and the cipher suite of TLS, if the connection is encrypted.
    #[serde(default)]
    pub tls: Option<(String, String)>,
    /// The keyspace in use.
    pub keyspace: Option<String>,
    /// Requests so far.
    pub requests: u64,
    /// The options of its STARTUP, in the order of their names.
    pub options: BTreeMap<String, String>,
}

/// An address that has connected with a protocol version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProtocolClient {
    /// The protocol version.
    pub version: u8,
    /// The address.
    pub address: IpAddr,
    /// The time of its last STARTUP, milliseconds since 1970.
    pub last_seen_ms: i64,
}

/// The result of a flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flushed {
    /// SSTables written.
    pub sstables: u64,
}

/// The progress of a requested compaction, and its effect so far.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compaction {
    /// The number by which tools ask for it again.
    pub number: u64,
    /// Whether it is over.
    pub is_over: bool,
    /// Compactions that have ended.
    pub compactions: u64,
    /// Tables whose compaction has not begun.
    pub tables_left: u64,
    /// SSTables of its tables before.
    pub sstables_before: u64,
    /// SSTables of its tables now.
    pub sstables: u64,
    /// Bytes of their files before.
    pub disk_bytes_before: u64,
    /// Bytes of their files now.
    pub disk_bytes: u64,
    /// All compactions that are running in the server.
    pub running: Vec<RunningCompaction>,
}

/// The progress of a job, and its result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// The number by which tools ask for it again.
    pub number: u64,
    /// The present step.
    pub doing: String,
    /// Bytes of files that are processed.
    pub bytes_done: u64,
    /// Bytes of files in all.
    pub bytes_total: u64,
    /// The result, once the job is over.
    pub outcome: Option<Outcome>,
}

/// The result of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The result of an import.
    Imported(Import),
    /// The result of a verification of tables.
    Verified(Vec<VerifiedTable>),
    /// The result of a restore.
    Restored(Restored),
}

/// The result of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Import {
    /// The keyspace, name and number of SSTables of each table that received some.
    pub tables: Vec<(String, String, u64)>,
    /// Bytes of data files.
    pub bytes: u64,
    /// Keyspaces and tables that were created.
    pub made: Vec<String>,
    /// Remarks for the user.
    pub notes: Vec<String>,
}

/// The result of verifying a table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifiedTable {
    /// Its keyspace.
    pub keyspace: String,
    /// Its name.
    pub table: String,
    /// SSTables that were read.
    pub sstables: u64,
    /// The problems that were found.
    pub problems: Vec<String>,
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
    /// Its folder.
    pub folder: PathBuf,
    /// Bytes of all its files.
    pub bytes: u64,
    /// Bytes that are freed when it is removed.
    pub bytes_alone: u64,
    /// When it was taken, according to its manifest.
    pub created_at: Option<String>,
    /// When it expires, according to its manifest.
    pub expires_at: Option<String>,
}

/// The result of reading the configuration again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reloaded {
    /// Keys whose new values are in effect.
    pub taken: Vec<String>,
    /// Keys whose new values take effect at the next start.
    pub at_next_start: Vec<String>,
}

/// Files that are held for an export, until the tool that asked removes the folder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportedFiles {
    /// Contains `schema.cql`, and a folder `KEYSPACE/TABLE` for each table, with its SSTables and its own `schema.cql`.
    pub folder: PathBuf,
    /// The keyspace, name and number of SSTables of each table.
    pub tables: Vec<(String, String, u64)>,
}

/// A running compaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningCompaction {
    /// Its keyspace.
    pub keyspace: String,
    /// Its table.
    pub table: String,
    /// Its kind: `compaction` if the strategy chose it, `tombstones` of one SSTable, `major` if it was requested.
    pub kind: String,
    /// SSTables that it replaces.
    pub sstables: u64,
    /// Bytes of data to read, before compression.
    pub bytes_total: u64,
    /// Bytes read so far.
    pub bytes_done: u64,
}

/// A server's main metrics.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerStatus {
    /// Version of the program.
    pub version: String,
    /// Process id.
    pub pid: u32,
    /// Seconds since the start.
    pub uptime_s: u64,
    /// The server's host id.
    pub host_id: String,
    /// The address it listens on.
    pub listening: String,
    /// The address of the old RPC interface, if it is served.
    #[serde(default)]
    pub rpc: Option<String>,
    /// Warnings about the configuration, a sentence each.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// The data directory; `None` in memory.
    pub directory: Option<String>,
    /// How writes are synced; `None` in memory.
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
    /// Running compactions.
    pub compactions: Vec<RunningCompaction>,
    /// Why the last compaction failed, if it did.
    pub compaction_failure: Option<String>,
    /// The tables, by keyspace and name.
    pub tables: Vec<TableLine>,
}

/// The history of the server's figures, and what a forecast needs besides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Growth {
    /// A sample an hour, the oldest first; the last is of this moment.
    pub samples: Vec<Sample>,
    /// The largest table on disk, as `keyspace.table`, and its bytes; `None` without data.
    pub largest_table: Option<(String, u64)>,
    /// Whether everything is in memory.
    pub is_in_memory: bool,
}

/// A table's main metrics.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableLine {
    /// Its keyspace.
    pub keyspace: String,
    /// Its name.
    pub table: String,
    /// Number of SSTables.
    pub sstables: u64,
    /// Compactions that are due, approximately.
    pub pending_compactions: u64,
    /// Bytes of its SSTables' files.
    pub disk_bytes: u64,
    /// Bytes of its memtables.
    pub memtable_bytes: u64,
    /// Rows in its memtables.
    pub memtable_rows: u64,
    /// Flushes and compactions that failed and have not succeeded since.
    #[serde(default)]
    pub failures: Vec<String>,
}
