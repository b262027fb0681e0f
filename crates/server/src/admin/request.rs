//! What tools ask on the admin socket.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Tables, as a tool names them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Which {
    /// The keyspace; without it all.
    #[serde(default)]
    pub keyspace: Option<String>,
    /// Tables of the keyspace; without any all.
    #[serde(default)]
    pub tables: Vec<String>,
}

impl Which {
    /// All tables of a keyspace.
    pub fn keyspace(name: &str) -> Which {
        Which { keyspace: Some(name.to_owned()), tables: Vec::new() }
    }

    /// One table.
    pub fn table(keyspace: &str, table: &str) -> Which {
        Which { keyspace: Some(keyspace.to_owned()), tables: vec![table.to_owned()] }
    }
}

/// What a tool asks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "verb", rename_all = "snake_case", deny_unknown_fields)]
pub enum AdminRequest {
    /// The server's figures.
    Status,
    /// Who the server is, as a node of a ring.
    Node,
    /// All that is known of tables.
    Tables {
        /// Which; those of indexes come with theirs.
        which: Which,
    },
    /// Threads and queues.
    Pools,
    /// Where memory is.
    Memory,
    /// Write memtables to SSTables.
    Flush {
        /// Of which tables.
        which: Which,
    },
    /// Compact everything in tables. Answered at once, with what is then asked for by `Compaction`.
    Compact {
        /// Which tables.
        which: Which,
    },
    /// Write the SSTables of tables anew, each for itself. Answered as `Compact`.
    Rewrite {
        /// Which tables.
        which: Which,
        /// Those of the present version too.
        current: bool,
    },
    /// Compact the SSTables that hold some partitions, and drop their tombstones whatever their age. Answered as `Compact`.
    CompactKeys {
        /// Their keyspace.
        keyspace: String,
        /// Their table.
        table: String,
        /// Their keys as text, the parts of a composite one between colons.
        keys: Vec<String>,
    },
    /// How far a compaction that was asked for is; answered when it is over, or after a while.
    Compaction {
        /// Its number.
        number: u64,
    },
    /// Compactions under way and due, and how they are bounded.
    Compactions,
    /// Compactions that are over.
    CompactionHistory,
    /// Bound the rate of compactions.
    SetCompactionThroughput {
        /// MiB a second; 0 for no bound.
        mib: u32,
    },
    /// Whether tables are compacted by themselves.
    AutoCompaction {
        /// Which tables.
        which: Which,
        /// Make it so; without it, only say.
        set: Option<bool>,
    },
    /// Read all SSTables of tables. An errand.
    Verify {
        /// Which tables.
        which: Which,
    },
    /// Take SSTables of others in. An errand.
    Import(ImportOrder),
    /// Take in the SSTables that somebody put into the folder of a table. An errand.
    Refresh {
        /// Its keyspace.
        keyspace: String,
        /// The table.
        table: String,
    },
    /// Take a backup back. An errand.
    Restore(RestoreOrder),
    /// How far an errand is; answered when it is over, or after a while.
    Errand {
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
    /// Take a snapshot.
    Snapshot {
        /// Its name.
        name: String,
        /// Of which tables, keyspace by keyspace; without any all.
        of: Vec<Which>,
        /// Write memtables first.
        flush: bool,
        /// Remove it after so many seconds; without it only when asked to.
        #[serde(default)]
        ttl_s: Option<u32>,
    },
    /// The snapshots there are.
    Snapshots,
    /// Remove snapshots.
    ClearSnapshots {
        /// Of this name; without it any.
        name: Option<String>,
        /// In these keyspaces; without any all.
        keyspaces: Vec<String>,
        /// Taken before this, milliseconds since 1970.
        before_ms: Option<i64>,
    },
    /// The SSTables that hold a partition.
    FilesOfKey {
        /// Its keyspace.
        keyspace: String,
        /// Its table.
        table: String,
        /// Its key as text, the parts of a composite one between colons.
        key: String,
        /// The text is the key's bytes in hexadecimal digits.
        hex: bool,
    },
    /// The partitions that were asked for most.
    TopPartitions {
        /// Of which tables.
        which: Which,
    },
    /// Build the indexes of a table anew.
    RebuildIndexes {
        /// Its keyspace.
        keyspace: String,
        /// The table.
        table: String,
        /// Names of indexes that must be there.
        indexes: Vec<String>,
    },
    /// How many requests are traced without having asked for it.
    TraceProbability {
        /// Make it so many, from 0 to 1; without it, only say.
        set: Option<f64>,
    },
    /// How long requests of a kind may take.
    Timeout {
        /// Which kind.
        kind: TimeoutKind,
        /// Make it so many milliseconds, until the next start; without it, only say.
        set_ms: Option<u64>,
    },
    /// How much is logged.
    LogLevel {
        /// Make it this, until the next start; without it, only say.
        set: Option<LogLevelChoice>,
    },
    /// Where tables have their files.
    DataPaths,
    /// Who is connected.
    Clients,
    /// Forget who was connected.
    ClearClients,
    /// Let clients in, or close their connections and let nobody in.
    ServeClients {
        /// Which of the two.
        serve: bool,
    },
    /// Read the configuration again, and take over what can change while the server runs.
    ReloadSettings,
    /// Take the machine's clock for right: timestamps of writes go on from it.
    ResetClock,
    /// Let no client in any more and write everything to SSTables, so that the next start replays nothing.
    Drain,
}

/// Kinds of requests that have a timeout of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeoutKind {
    /// Reads of partitions by their keys.
    Read,
    /// Reads of ranges.
    Range,
    /// Writes.
    Write,
}

impl TimeoutKind {
    /// The setting that holds it.
    pub fn setting(self) -> &'static str {
        match self {
            TimeoutKind::Read => "read_request_timeout",
            TimeoutKind::Range => "range_request_timeout",
            TimeoutKind::Write => "write_request_timeout",
        }
    }
}

/// How much is to be logged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogLevelChoice {
    /// As much as at the start.
    AsStarted,
    /// A level of `log_level`.
    Level(String),
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

/// A restore, as a tool orders it. Paths are absolute, on the server's machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoreOrder {
    /// A directory that `helenus backup` made.
    pub directory: PathBuf,
    /// Only this keyspace.
    pub keyspace: Option<String>,
    /// Only this table of it.
    pub table: Option<String>,
    /// The keyspace gets this name.
    pub as_keyspace: Option<String>,
    /// The table gets this name.
    pub as_table: Option<String>,
    /// Copy files even where they could be linked.
    pub copy: bool,
    /// Do not read every row first; digests are compared all the same.
    pub no_verify: bool,
    /// Only say what would be done.
    pub dry_run: bool,
}
