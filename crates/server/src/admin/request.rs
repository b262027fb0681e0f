//! The requests of the admin socket.

use crate::backup::RestoreOrder;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::audit::AuditOverrides;

/// A selection of tables.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableSelection {
    /// The keyspace; all if `None`.
    #[serde(default)]
    pub keyspace: Option<String>,
    /// Tables of the keyspace; all if empty.
    #[serde(default)]
    pub tables: Vec<String>,
}

impl TableSelection {
    /// All tables of a keyspace.
    pub fn keyspace(name: &str) -> TableSelection {
        TableSelection { keyspace: Some(name.to_owned()), tables: Vec::new() }
    }

    /// One table.
    pub fn table(keyspace: &str, table: &str) -> TableSelection {
        TableSelection { keyspace: Some(keyspace.to_owned()), tables: vec![table.to_owned()] }
    }
}

/// A request of a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "verb", rename_all = "snake_case", deny_unknown_fields)]
pub enum AdminRequest {
    /// The server's main metrics.
    Status,
    /// The server as a node of a ring.
    Node,
    /// The metrics of tables.
    Tables {
        /// Which tables; their indexes are included.
        which: TableSelection,
    },
    /// The history of the server's figures.
    Growth,
    /// Thread pools.
    Pools,
    /// Memory use.
    Memory,
    /// What holds space on the disk.
    DiskUsage,
    /// Write memtables to SSTables.
    Flush {
        /// Which tables.
        which: TableSelection,
    },
    /// Start a major compaction of tables. Answered at once with a number, by which `Compaction` asks for its progress.
    Compact {
        /// Which tables.
        which: TableSelection,
    },
    /// Rewrite each SSTable of tables by itself. Answered like `Compact`.
    Rewrite {
        /// Which tables.
        which: TableSelection,
        /// Also those that are in the present format version.
        current: bool,
    },
    /// Compact the SSTables that contain some partitions, and drop their tombstones whatever their age. Answered like
    /// `Compact`.
    CompactKeys {
        /// Their keyspace.
        keyspace: String,
        /// Their table.
        table: String,
        /// Their keys as text, with colons between the parts of a composite key.
        keys: Vec<String>,
    },
    /// The progress of a requested compaction; answered when it is over, or after a while.
    Compaction {
        /// Its number.
        number: u64,
    },
    /// The running and due compactions, and their limits.
    Compactions,
    /// The finished compactions.
    CompactionHistory,
    /// Limit the rate of compactions.
    SetCompactionThroughput {
        /// MiB a second; 0 for no limit.
        mib: u32,
    },
    /// Get or set whether tables are compacted automatically.
    AutoCompaction {
        /// Which tables.
        which: TableSelection,
        /// The new state; `None` only reads it.
        set: Option<bool>,
    },
    /// Read and check all SSTables of tables. Starts a job.
    Verify {
        /// Which tables.
        which: TableSelection,
    },
    /// Import SSTables of other servers. Starts a job.
    Import(ImportOrder),
    /// Import the SSTables that were put into a table's folder. Starts a job.
    Refresh {
        /// Its keyspace.
        keyspace: String,
        /// The table.
        table: String,
    },
    /// Restore a backup. Starts a job.
    Restore(RestoreOrder),
    /// The progress of a job; answered when it is over, or after a while.
    #[serde(alias = "job")]
    #[serde(alias = "errand")]
    Job {
        /// Its number.
        number: u64,
    },
    /// Link the SSTables of the whole database, of a keyspace or of a table into a folder, with their schema.
    Export {
        /// The keyspace; all user keyspaces if `None`.
        keyspace: Option<String>,
        /// The table, in the keyspace.
        table: Option<String>,
    },
    /// Take a snapshot.
    Snapshot {
        /// Its name.
        name: String,
        /// Which tables, keyspace by keyspace; all if empty.
        of: Vec<TableSelection>,
        /// Write memtables first.
        flush: bool,
        /// Remove it after this many seconds; `None` keeps it until it is removed by request.
        #[serde(default)]
        ttl_s: Option<u32>,
    },
    /// List the snapshots.
    Snapshots,
    /// Remove snapshots.
    ClearSnapshots {
        /// Only with this name; `None` for any.
        name: Option<String>,
        /// Only in these keyspaces; all if empty.
        keyspaces: Vec<String>,
        /// Only those taken before this, milliseconds since 1970.
        before_ms: Option<i64>,
    },
    /// The SSTables that contain a partition.
    FilesOfKey {
        /// Its keyspace.
        keyspace: String,
        /// Its table.
        table: String,
        /// Its key as text, with colons between the parts of a composite key.
        key: String,
        /// Whether the text is the key's bytes in hexadecimal digits.
        hex: bool,
    },
    /// The most frequently used partitions.
    TopPartitions {
        /// Which tables.
        which: TableSelection,
    },
    /// Rebuild the indexes of a table.
    RebuildIndexes {
        /// Its keyspace.
        keyspace: String,
        /// The table.
        table: String,
        /// The names of the indexes, which must exist.
        indexes: Vec<String>,
    },
    /// Get or set the fraction of requests that are traced without asking.
    TraceProbability {
        /// The new fraction, from 0 to 1; `None` only reads it.
        set: Option<f64>,
    },
    /// Get or set how long requests of a kind may take.
    Timeout {
        /// Which kind.
        kind: TimeoutKind,
        /// The new limit in milliseconds, until the next start; `None` only reads it.
        set_ms: Option<u64>,
    },
    /// Get or set the log level.
    LogLevel {
        /// The new level, until the next start; `None` only reads it.
        set: Option<LogLevelChoice>,
    },
    /// The folders of tables.
    DataPaths,
    /// The clients, now and since the start.
    Clients,
    /// Forget the clients seen so far.
    ClearClients,
    /// Accept clients, or close their connections and accept none.
    ServeClients {
        /// Whether to accept clients.
        serve: bool,
    },
    /// Read the configuration again, and apply what can change at run time.
    ReloadSettings,
    /// Read keys and certificates again.
    ReloadTls,
    /// Switch the audit log on.
    EnableAuditLog(Box<AuditOverrides>),
    /// Switch the audit log off.
    DisableAuditLog,
    /// The options of the audit log.
    AuditLog,
    /// The groups of networks, or the networks of one.
    CidrGroups {
        /// The group; `None` for the names of all.
        group: Option<String>,
    },
    /// Set the networks of a group.
    UpdateCidrGroup {
        /// Its name.
        group: String,
        /// Its networks.
        cidrs: Vec<String>,
    },
    /// Remove a group of networks.
    DropCidrGroup {
        /// Its name.
        group: String,
    },
    /// The groups of an address.
    CidrGroupsOfAddress {
        /// The address.
        address: String,
    },
    /// Read the groups of networks again.
    ReloadCidrGroups,
    /// Forget the cached limits of a role, or of all roles.
    InvalidateCidrPermissions {
        /// The role; `None` for all.
        role: Option<String>,
    },
    /// What was decided about the networks of clients.
    CidrFilteringStats,
    /// Trust the machine's clock: timestamps of writes continue from it.
    ResetClock,
    /// Set the password of a role.
    SetPassword {
        /// Its name.
        role: String,
        /// The password.
        password: Password,
    },
    /// Events of a table. Answered at once, or with `wait` after a while if there are none.
    Changes(ChangesOrder),
    /// A consumer has dealt with the events of a table up to a position.
    AcknowledgeChanges {
        /// Its keyspace.
        keyspace: String,
        /// Its table.
        table: String,
        /// The consumer.
        consumer: String,
        /// The position of the last event.
        position: String,
    },
    /// The consumers of changes.
    ChangeConsumers,
    /// Forget a consumer.
    DropChangeConsumer {
        /// Its keyspace.
        keyspace: String,
        /// Its table.
        table: String,
        /// The consumer.
        consumer: String,
    },
    /// A request for a part of the program that is registered with the admin socket, such as `move`. It keeps no other tool
    /// waiting.
    Further {
        /// The part.
        tool: String,
        /// The request, as that part reads it.
        request: String,
    },
    /// Accept no more clients and write everything to SSTables, so that the next start replays no log.
    Drain,
}

/// The events that a tool wants.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangesOrder {
    /// The keyspace of the table.
    pub keyspace: String,
    /// The table.
    pub table: String,
    /// `now`, `beginning`, `oldest`, or the position of an event; `None`: where the consumer goes on.
    pub from: Option<String>,
    /// The consumer that reads; it is made if it begins somewhere.
    pub consumer: Option<String>,
    /// The most events.
    pub events: usize,
    /// Wait a while if there are none.
    pub wait: bool,
}

/// A password, which does not show in debugging output.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Password(pub String);

impl std::fmt::Debug for Password {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("*******")
    }
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
    /// The name of its setting.
    pub fn setting(self) -> &'static str {
        match self {
            TimeoutKind::Read => "read_request_timeout",
            TimeoutKind::Range => "range_request_timeout",
            TimeoutKind::Write => "write_request_timeout",
        }
    }
}

/// A choice of log level.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogLevelChoice {
    /// The level of the start.
    AsStarted,
    /// A level of `log_level`.
    Level(String),
}

/// An import, as a tool orders it. Paths are absolute, on the server's machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportOrder {
    /// A snapshot, the folder of a table or keyspace, or a data directory.
    pub directory: PathBuf,
    /// Take this snapshot of each table.
    pub snapshot: Option<String>,
    /// Only this keyspace.
    pub keyspace: Option<String>,
    /// Only this table.
    pub table: Option<String>,
    /// A file of CQL statements that create the schema.
    pub schema: Option<PathBuf>,
    /// Copy files even where they could be linked.
    pub copy: bool,
    /// Do not verify the SSTables first.
    pub no_verify: bool,
    /// Keep the SSTables' levels of levelled compaction.
    pub keep_level: bool,
    /// Only report what would be done.
    pub dry_run: bool,
}
