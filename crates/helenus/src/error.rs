//! The errors of the embedded database.
//!
//! Each variant is a case that a program may handle in its own way. The errors of the layers below are mapped to them
//! here and nowhere else.

use helenus_cql::CqlError;
use std::path::PathBuf;

/// An error of the embedded database. Its text says what is wrong and, where something can be done, what.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text is not CQL.
    #[error("{message}")]
    Syntax {
        /// Line, column and problem, as a Cassandra node reports them.
        message: String,
    },
    /// The statement is CQL, but its names, types, options or values are not valid for the schema; or a value cannot be
    /// stored.
    #[error("{message}")]
    Invalid {
        /// The text that a Cassandra node would answer.
        message: String,
    },
    /// The number of values differs from the number of `?` markers.
    #[error("the statement takes {markers} values, one for each ?; {values} were given")]
    ValueCount {
        /// The markers of the statement.
        markers: usize,
        /// The values that were given.
        values: usize,
    },
    /// A value does not fit its column.
    #[error("{keyspace}.{table}: column {column} of type {ty} takes no {value}; give a {ty}")]
    WrongType {
        /// The column's keyspace.
        keyspace: String,
        /// The column's table.
        table: String,
        /// The column's name.
        column: String,
        /// The column's type in CQL.
        ty: String,
        /// The kind of the value that was given.
        value: &'static str,
    },
    /// A value that was read is not of the Rust type that was asked for.
    #[error(transparent)]
    Conversion(#[from] crate::value::ConversionError),
    /// The keyspace or table to create exists already.
    #[error("{message}")]
    AlreadyExists {
        /// The keyspace.
        keyspace: String,
        /// The table; empty for a keyspace.
        table: String,
        /// The text that a Cassandra node would answer.
        message: String,
    },
    /// The table does not exist.
    #[error("table {keyspace}.{table} does not exist; create it first")]
    NoTable {
        /// The keyspace.
        keyspace: String,
        /// The table.
        table: String,
    },
    /// The table does not have the shape that the wide-row calls need.
    #[error(
        "{keyspace}.{table} is not a wide-row table: {problem}; it needs one partition key column, one clustering column and one regular column, none of them a non-frozen collection or counter"
    )]
    NotWide {
        /// The keyspace.
        keyspace: String,
        /// The table.
        table: String,
        /// How the table differs from a wide-row table.
        problem: &'static str,
    },
    /// A function or an operator of the statement failed on its values.
    #[error("{message}")]
    FunctionFailed {
        /// The function's keyspace.
        keyspace: String,
        /// The function.
        function: String,
        /// The text that a Cassandra node would answer.
        message: String,
    },
    /// There is no memory or no disk space for the request now. The same request may succeed later.
    #[error("{message}")]
    Overloaded {
        /// What is used up, and what to do.
        message: String,
    },
    /// The read or write took too long.
    #[error("the request took longer than its time limit")]
    TimedOut,
    /// A read passed more tombstones than allowed.
    #[error("the read passed too many tombstones; compact the table, or read a smaller range")]
    TooManyTombstones,
    /// A file that the read needs is damaged or cannot be read.
    #[error("the read failed: {message}")]
    ReadFailed {
        /// The file, the position in it, and what is wrong.
        message: String,
    },
    /// The write could not be logged, or its table could not be emptied. Whether it is there after a restart is not
    /// known.
    #[error("the write failed: {message}")]
    WriteFailed {
        /// What failed, and what to do.
        message: String,
    },
    /// Another process has the directory open.
    #[error("{} is in use by {holder}; stop it, or give another directory", dir.display())]
    InUse {
        /// The directory.
        dir: PathBuf,
        /// The other process, as it described itself in the lock file.
        holder: String,
    },
    /// While opening, flushing or closing: the content of a file is not what was written to it.
    #[error("{message}")]
    Damaged {
        /// The file, if it is known.
        file: Option<PathBuf>,
        /// The offset of the damage in the file, in bytes, if it is known.
        offset: Option<u64>,
        /// The file, the position in it, and what is wrong.
        message: String,
    },
    /// While opening, flushing or closing: the operating system refused to read or write a file.
    #[error("{message}")]
    Io {
        /// The file, if it is known.
        file: Option<PathBuf>,
        /// Whether the disk is full.
        is_disk_full: bool,
        /// The operation, the file and the system's error.
        message: String,
    },
    /// The database is closed: a wide table was used after `Database::close`.
    #[error("the database is closed")]
    Closed,
    /// A fault of Helenus itself. Please report it with its text.
    #[error("{message}")]
    Internal {
        /// What happened.
        message: String,
    },
}

/// The result type of the embedded database.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Maps an error of running a statement.
    pub(crate) fn of_cql(error: CqlError) -> Error {
        let message = error.to_string();
        match error {
            CqlError::Syntax(_) => Error::Syntax { message },
            CqlError::Invalid(_)
            | CqlError::Config(_)
            | CqlError::Protocol(_)
            | CqlError::BadCredentials(_)
            | CqlError::Unauthorized(_)
            | CqlError::SessionEnded(_) => Error::Invalid { message },
            CqlError::AlreadyExists { keyspace, table, message } => {
                Error::AlreadyExists { keyspace, table, message }
            }
            CqlError::FunctionFailure { keyspace, function, message, .. } => {
                Error::FunctionFailed { keyspace, function, message }
            }
            CqlError::Overloaded(_) => Error::Overloaded { message },
            CqlError::ReadTimeout { .. } | CqlError::WriteTimeout { .. } => Error::TimedOut,
            CqlError::TooManyTombstones { .. } => Error::TooManyTombstones,
            CqlError::ReadFailure { reason, .. } => Error::ReadFailed { message: reason },
            CqlError::WriteFailure { reason, .. } | CqlError::Truncate(reason) => {
                Error::WriteFailed { message: reason }
            }
            CqlError::WouldBlock | CqlError::Cancelled | CqlError::Unprepared(_) | CqlError::Server(_) => {
                Error::Internal { message }
            }
        }
    }

    /// Maps an error of a read by the storage engine.
    pub(crate) fn of_read(error: helenus_engine::Error) -> Error {
        match Error::of_engine(error) {
            Error::Damaged { message, .. } | Error::Io { message, .. } => Error::ReadFailed { message },
            other => other,
        }
    }

    /// Maps an error of a write by the storage engine.
    pub(crate) fn of_write(error: helenus_engine::Error) -> Error {
        match Error::of_engine(error) {
            Error::Io { message, .. } => Error::WriteFailed { message },
            other => other,
        }
    }

    /// Maps an error of any other call to the storage engine.
    pub(crate) fn of_engine(error: helenus_engine::Error) -> Error {
        use helenus_engine::{DiskTrouble, Error as Engine};
        let message = error.to_string();
        let place = error.place().map(|(file, offset)| (file.to_path_buf(), offset));
        let (file, offset) = place.map_or((None, None), |(file, offset)| (Some(file), offset));
        match (error.disk_trouble(), error) {
            (
                _,
                Engine::LogFull { .. }
                | Engine::NoRoom { .. }
                | Engine::FlushFails { .. }
                | Engine::NoMemory(_)
                | Engine::SchemaTooLarge { .. },
            ) => Error::Overloaded { message },
            (Some(DiskTrouble::Damaged), _) => Error::Damaged { file, offset, message },
            (Some(trouble), _) => {
                Error::Io { file, is_disk_full: matches!(trouble, DiskTrouble::Full), message }
            }
            (None, Engine::SchemaDamaged { .. } | Engine::Damaged(_)) => {
                Error::Damaged { file, offset, message }
            }
            (None, Engine::InUse { path, holder }) => Error::InUse { dir: path, holder },
            (None, Engine::UnknownTable { keyspace, table }) => Error::NoTable { keyspace, table },
            (None, Engine::TimedOut) => Error::TimedOut,
            (None, Engine::TooManyTombstones) => Error::TooManyTombstones,
            (None, Engine::Unlogged { .. }) => Error::ReadFailed { message },
            (None, Engine::LogFailed { .. }) => Error::WriteFailed { message },
            (None, Engine::Closed) => Error::Closed,
            (
                None,
                Engine::MutationTooLarge { .. }
                | Engine::Unstorable { .. }
                | Engine::Unindexable { .. }
                | Engine::ClockBeyond { .. }
                | Engine::CassandraNode { .. }
                | Engine::Foreign { .. },
            ) => Error::Invalid { message },
            (None, _) => Error::Internal { message },
        }
    }
}
