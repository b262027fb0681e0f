//! The lines of the admin socket.

use std::path::PathBuf;

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
    /// Take SSTables of others in. Answered at once, with what is then asked for by `Importing`.
    Import(ImportOrder),
    /// How far an import is; answered when it is over, or after a while.
    Importing {
        /// Its number.
        number: u64,
    },
    /// Link the SSTables of everything, of a keyspace or of a table into a folder, with their schema.
    Export {
        /// The keyspace; without it all of users.
        keyspace: Option<String>,
        /// The table, in the keyspace.
        table: Option<String>,
    },
    /// The server's figures.
    Status,
}

/// An import, as a tool orders it. Paths are absolute, on the server's machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportOrder {
    /// A snapshot, the folder of a table or keyspace, or a data directory.
    pub directory: PathBuf,
    /// This snapshot of each table.
    pub snapshot: Option<String>,
    /// Only this keyspace.
    pub keyspace: Option<String>,
    /// Only this table.
    pub table: Option<String>,
    /// A file of statements that make the schema.
    pub schema: Option<PathBuf>,
    /// Copy files even where they could be linked.
    pub copy: bool,
    /// Do not read every byte first.
    pub no_verify: bool,
    /// Keep levels of levelled compaction.
    pub keep_level: bool,
    /// Only say what would be done.
    pub dry_run: bool,
}

/// What it is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AdminAnswer {
    /// A flush is done.
    Flushed(Flushed),
    /// How far a compaction that was asked for is.
    Compaction(Compaction),
    /// How far an import is.
    Import(Import),
    /// Where files to be exported are.
    Exported(ExportedFiles),
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

/// An import: how far it is, and what it has come to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Import {
    /// Its number, to ask for it again.
    pub number: u64,
    /// Whether it is over.
    pub is_over: bool,
    /// What is done now.
    pub doing: String,
    /// Bytes of data files that are done, checked or taken.
    pub bytes_done: u64,
    /// Bytes there are.
    pub bytes_total: u64,
    /// Keyspace, table and SSTables of each that got some.
    pub tables: Vec<(String, String, u64)>,
    /// Keyspaces and tables that were made.
    pub made: Vec<String>,
    /// What the user should know.
    pub notes: Vec<String>,
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
