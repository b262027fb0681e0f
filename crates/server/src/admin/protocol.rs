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
    /// The server's figures.
    Status,
}

/// What it is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AdminAnswer {
    /// A flush is done.
    Flushed(Flushed),
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
    /// Bytes of their files.
    pub disk_bytes: u64,
    /// Bytes of its memtables.
    pub memtable_bytes: u64,
    /// Rows in its memtables.
    pub memtable_rows: u64,
}
