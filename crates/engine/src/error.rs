//! The errors of the engine.

use crate::changes_error::ChangesError;
use helenus_host::account::Refusal;
use helenus_host::contain;
use helenus_model::packed::Damaged;
use helenus_model::types::{CqlType, to_cql_literal};
use std::path::PathBuf;

/// An error of the engine.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The read needs the disk, and the caller may not wait: run the same command on a thread that may.
    #[error("the read needs the disk")]
    WouldBlock,
    /// A file could not be read or written, or its content is not what was written.
    #[error(transparent)]
    Table(helenus_sstable::Error),
    /// An SSTable of the table could not be opened; the text names its file. Repair or remove the file and restart.
    #[error(transparent)]
    Unreadable(std::sync::Arc<helenus_sstable::Error>),
    /// The commit log cannot take the write now. Reads go on, and so do writes once the cause is gone.
    #[error("the commit log cannot grow: {}: {source}; free space, then write again", path.display())]
    LogFull {
        /// The segment that could not be created.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A sync or write of the commit log failed. Its last records may be lost, so writes are refused until a restart.
    #[error("the commit log failed and takes no more writes until a restart: {reason}")]
    LogFailed {
        /// The first failure.
        reason: String,
    },
    /// A read has seen writes that were refused when the commit log failed. They are only in memory, and their clients
    /// were told that they failed, so they must not be returned.
    #[error(
        "the partition has writes that were refused when the commit log failed: {reason}; mend the cause and restart the server to read it"
    )]
    Unlogged {
        /// The failure.
        reason: String,
    },
    /// A record of the commit log is damaged.
    #[error(
        "damaged commit log: {} at byte {offset}: {problem}; start with --skip-damaged-log to lose \
         this record and what follows it in the segment",
        path.display()
    )]
    LogDamaged {
        /// The segment.
        path: PathBuf,
        /// The offset of the record in bytes.
        offset: u64,
        /// What is wrong.
        problem: &'static str,
    },
    /// The feed of changes cannot be read as asked.
    #[error(transparent)]
    Changes(#[from] ChangesError),
    /// A record of the commit log is intact, but no table can store it.
    #[error(
        "a record of the commit log cannot be applied: {}, {} at byte {}: {}; it is kept in {}; start with \
         --skip-damaged-log to go on without it",
        .0.table, .0.segment.display(), .0.offset, .0.problem, .0.kept.display()
    )]
    Unappliable(Box<UnappliableRecord>),
    /// A file or folder operation failed.
    #[error("{action} {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which path.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The directory belongs to a Cassandra node.
    #[error(
        "{} has the files of a Cassandra node, and nothing of it was changed. To take its data over, drain the node, copy the directory, \
         and run helenus serve --adopt COPY; or give another directory",
        path.display()
    )]
    CassandraNode {
        /// The directory.
        path: PathBuf,
    },
    /// The directory has files of others, and no database.
    #[error(
        "{} is no directory of a database and is not empty: it has {found}. Nothing of it was changed. Give a new or an empty directory{}",
        path.display(), match is_of_cassandra {
            true => ", and take these SSTables in with helenus import; or start on a copy of a node's whole directory with helenus serve --adopt",
            false => ", such as one within it",
        }
    )]
    Foreign {
        /// The directory.
        path: PathBuf,
        /// Some of what it has.
        found: String,
        /// Whether that looks like tables of Cassandra.
        is_of_cassandra: bool,
    },
    /// Another process is using the directory.
    #[error("{} is in use by {holder}; stop it, or give another directory", path.display())]
    InUse {
        /// The directory.
        path: PathBuf,
        /// The other process, as it described itself in the lock file.
        holder: String,
    },
    /// A table already has a snapshot of that name.
    #[error(
        "Snapshot {name} already exists; give another name, or remove it with helenus admin clearsnapshot -t {name} ({keyspace}.{table} has it)"
    )]
    SnapshotExists {
        /// The name.
        name: String,
        /// The table's keyspace.
        keyspace: String,
        /// The table.
        table: String,
    },
    /// A mutation over `max_mutation_size`.
    #[error(
        "Encountered an oversized mutation ({size}/{limit}) for keyspace: {keyspace}. Top keys are: {table}.{key}"
    )]
    MutationTooLarge {
        /// Bytes of the mutation.
        size: usize,
        /// The limit.
        limit: usize,
        /// Keyspace of the largest update.
        keyspace: String,
        /// Its table.
        table: String,
        /// Its partition key, in hex.
        key: String,
    },
    /// A write that the SSTable format cannot represent.
    #[error("{keyspace}.{table}: {problem}")]
    Unstorable {
        /// Its keyspace.
        keyspace: String,
        /// Its table.
        table: String,
        /// What cannot be stored.
        problem: &'static str,
    },
    /// A value that an index of its table cannot store.
    #[error("{message}")]
    Unindexable {
        /// The message, as in Cassandra.
        message: String,
    },
    /// A read passed more dead rows and range tombstones than its `TombstoneLimit` allows.
    #[error("the read passed too many tombstones; compact the table, or raise tombstone_failure_threshold")]
    TooManyTombstones,
    /// An index that is not completely built.
    #[error("The secondary index '{index}' is not yet available")]
    IndexNotAvailable {
        /// Its name.
        index: String,
    },
    /// The memory for writes is used up, and the flush that should free it does not succeed.
    #[error(
        "no memory for more writes ({used} of {limit} bytes in use): {reason}; free space on the disk or write slower"
    )]
    NoRoom {
        /// Bytes of all memtables.
        used: usize,
        /// The limit.
        limit: usize,
        /// Why it is not freed.
        reason: String,
    },
    /// A new table may not have this id.
    #[error("the table id {id} cannot be used: {by}")]
    TableIdInUse {
        /// The id.
        id: uuid::Uuid,
        /// Why.
        by: String,
    },
    /// The flush of the table fails, and it has too much in memory, or for too long, to take more.
    #[error(
        "{keyspace}.{table} takes no writes until its memory can be written to SSTables, which fails: {reason}"
    )]
    FlushFails {
        /// Its keyspace.
        keyspace: String,
        /// Its name.
        table: String,
        /// Why the last flush failed.
        reason: String,
    },
    /// A compaction may not write as much as it has to: the disk has too little space.
    #[error(
        "no space for the compaction: it may write up to {}, and {} are free, of which {} are kept for the commit log, for \
         flushes and for running compactions; free space (helenus admin diskusage shows what holds it)",
        size(*wanted), size(*free), size(*kept)
    )]
    NoSpaceToCompact {
        /// The most bytes that it may write.
        wanted: u64,
        /// Bytes that are free.
        free: u64,
        /// Bytes of them that are not for compactions.
        kept: u64,
    },
    /// The tables of the schema would take more memory than is there for them.
    #[error(
        "no memory for a larger schema: its tables, columns, types and texts would take about {} MiB, and {} MiB of memory_limit are \
         for them; drop tables, write shorter names and comments, or raise memory_limit",
        bytes >> 20, limit >> 20
    )]
    SchemaTooLarge {
        /// Bytes of all tables after the change, estimated.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// The memory account has no room for the request.
    #[error(transparent)]
    NoMemory(Refusal),
    /// A row of the schema tables is incomplete or wrong.
    #[error(
        "damaged schema: system_schema.{table} of {keyspace}.{name}: column {column} is missing or wrong"
    )]
    SchemaDamaged {
        /// The schema table.
        table: &'static str,
        /// Its column.
        column: String,
        /// The keyspace described.
        keyspace: String,
        /// The table or type described.
        name: String,
    },
    /// The table was dropped while the statement ran.
    #[error("table {keyspace}.{table} does not exist")]
    UnknownTable {
        /// Its keyspace.
        keyspace: String,
        /// Its name.
        table: String,
    },
    /// The read or write exceeded its deadline.
    #[error("the deadline passed")]
    TimedOut,
    /// The client has disconnected.
    #[error("cancelled")]
    Cancelled,
    /// The bytes of a mutation are invalid: a bug, or damaged memory.
    #[error(transparent)]
    Damaged(#[from] Damaged),
    /// An operation panicked. Nothing else was affected.
    #[error("internal error, a bug: {message}; the server's log has its place")]
    Panicked {
        /// The panic's text.
        message: String,
    },
    /// Tables whose memtables could not be flushed.
    #[error(
        "not written to SSTables: {} ({first}); the commit log has their writes, and the next start replays them",
        tables.join(", ")
    )]
    NotFlushed {
        /// Their names, with their keyspaces.
        tables: Vec<String>,
        /// The first error.
        first: Box<Error>,
    },
    /// The wall clock is later than the latest time that timestamps are taken from.
    #[error(
        "the machine's clock says {}, after the maximum allowable failure threshold {} for timestamps: set it right, or give \
         timestamps with USING TIMESTAMP; helenus admin info shows how the clock jumped",
        utc(*wall_us), utc(*latest_us)
    )]
    ClockBeyond {
        /// The wall clock, microseconds since the epoch.
        wall_us: i64,
        /// The latest time allowed, microseconds since the epoch.
        latest_us: i64,
    },
    /// The database is closing.
    #[error("the database is closed")]
    Closed,
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Error {
        match refusal {
            Refusal::WouldBlock => Error::WouldBlock,
            no_room @ Refusal::NoRoom { .. } => Error::NoMemory(no_room),
        }
    }
}

impl From<helenus_sstable::Error> for Error {
    fn from(error: helenus_sstable::Error) -> Error {
        match error {
            helenus_sstable::Error::WouldBlock => Error::WouldBlock,
            helenus_sstable::Error::NoMemory(refusal) => Error::NoMemory(refusal),
            other => Error::Table(other),
        }
    }
}

/// A record of the commit log that no table can store. It is kept in a file of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnappliableRecord {
    /// The keyspace and table of the update that cannot be applied.
    pub table: String,
    /// The segment that holds the record.
    pub segment: PathBuf,
    /// Offset of the record in the segment, bytes.
    pub offset: u64,
    /// Why it cannot be applied.
    pub problem: &'static str,
    /// The file that holds the record with its header, as it was in the segment.
    pub kept: PathBuf,
}

/// The kind of a disk failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskTrouble {
    /// The content of a file is not what was written.
    Damaged,
    /// The operating system reported an error for a read or write.
    Refused,
    /// The disk is full.
    Full,
}

impl Error {
    /// The file that an error is about, and the byte offset in it if known.
    pub fn place(&self) -> Option<(&std::path::Path, Option<u64>)> {
        let of_table = |error| match error {
            &helenus_sstable::Error::Corrupt { ref file, offset, .. } => Some((file.as_path(), Some(offset))),
            helenus_sstable::Error::Io { file, .. } | helenus_sstable::Error::Unsupported { file, .. } => {
                Some((file.as_path(), None))
            }
            helenus_sstable::Error::WouldBlock
            | helenus_sstable::Error::NoMemory(_)
            | helenus_sstable::Error::RowTooLarge { .. } => None,
        };
        match self {
            Error::Table(error) => of_table(error),
            Error::Unreadable(error) => of_table(error),
            Error::NotFlushed { first, .. } => first.place(),
            Error::LogDamaged { path, offset, .. } => Some((path, Some(*offset))),
            Error::Unappliable(record) => Some((&record.segment, Some(record.offset))),
            Error::LogFull { path, .. } | Error::Io { path, .. } => Some((path, None)),
            _ => None,
        }
    }

    /// The kind of disk failure, if the error is one.
    pub fn disk_trouble(&self) -> Option<DiskTrouble> {
        let of_io = |source: &std::io::Error| match source.kind() {
            std::io::ErrorKind::StorageFull
            | std::io::ErrorKind::QuotaExceeded
            | std::io::ErrorKind::FileTooLarge => DiskTrouble::Full,
            _ => DiskTrouble::Refused,
        };
        let of_table = |error: &helenus_sstable::Error| match error {
            helenus_sstable::Error::Corrupt { .. } | helenus_sstable::Error::Unsupported { .. } => {
                Some(DiskTrouble::Damaged)
            }
            helenus_sstable::Error::Io { source, .. } => Some(of_io(source)),
            helenus_sstable::Error::WouldBlock
            | helenus_sstable::Error::NoMemory(_)
            | helenus_sstable::Error::RowTooLarge { .. } => None,
        };
        match self {
            Error::Table(error) => of_table(error),
            Error::Unreadable(error) => of_table(error),
            Error::NotFlushed { first, .. } => first.disk_trouble(),
            Error::LogDamaged { .. } | Error::Unappliable(_) => Some(DiskTrouble::Damaged),
            Error::LogFull { source, .. } | Error::Io { source, .. } => Some(of_io(source)),
            _ => None,
        }
    }

    /// Runs `work` and turns a panic into an error.
    pub(crate) fn contain<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
        contain(work).unwrap_or_else(|message| Err(Error::Panicked { message }))
    }

    /// Wraps the failure of a file operation.
    pub(crate) fn io(action: &'static str, path: &std::path::Path) -> impl FnOnce(std::io::Error) -> Error {
        let path = path.to_owned();
        move |source| Error::Io { action, path, source }
    }

    /// The error for a change that cannot be stored.
    pub(crate) fn unstorable(table: &helenus_model::schema::Table, problem: &'static str) -> Error {
        let (keyspace, table) = (table.keyspace.to_string(), table.name.to_string());
        Error::Unstorable { keyspace, table, problem }
    }

    /// The error for a table that was dropped meanwhile.
    pub(crate) fn unknown(table: &helenus_model::schema::Table) -> Error {
        Error::UnknownTable { keyspace: table.keyspace.to_string(), table: table.name.to_string() }
    }
}

/// Bytes in words.
fn size(bytes: u64) -> String {
    match bytes {
        0..=99_999 => format!("{bytes} bytes"),
        _ if bytes < 100 << 20 => format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20)),
        _ => format!("{} MiB", bytes >> 20),
    }
}

/// Formats microseconds since the epoch as CQL does, in UTC and without quotes.
fn utc(us: i64) -> String {
    let ms = us.div_euclid(1000).to_be_bytes();
    to_cql_literal(&CqlType::Timestamp, Some(&ms)).trim_matches('\'').to_owned()
}

/// The engine's result type.
pub type Result<T> = std::result::Result<T, Error>;
