//! The lines of the admin socket.

use serde::{Deserialize, Serialize};

/// What a tool asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verb", rename_all = "snake_case", deny_unknown_fields)]
pub enum AdminRequest {
    /// Write memtables to SSTables: of everything, of a keyspace, or of a table.
    Flush {
        /// The keyspace; without it all.
        keyspace: Option<String>,
        /// The table, in the keyspace.
        table: Option<String>,
    },
    /// Compact everything: of all tables, of a keyspace, or of a table. Answered at once, with what is then asked for by
    /// `Compaction`.
    Compact {
        /// The keyspace; without it all.
        keyspace: Option<String>,
        /// The table, in the keyspace.
        table: Option<String>,
    },
    /// How far a compaction that was asked for is; answered when it is over, or after a while.
    Compaction {
        /// Its number.
        number: u64,
    },
    /// The server's figures.
    Status,
}

/// What it is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AdminAnswer {
    /// A flush is done.
    Flushed(Flushed),
    /// How far a compaction that was asked for is.
    Compaction(Compaction),
    /// The figures.
    Status(ServerStatus),
    /// The request failed; the text says why.
    Error(String),
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
}
