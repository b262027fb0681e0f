//! What can go wrong with a statement, with Cassandra's codes and messages.

use crate::statement_id::StatementId;

/// An error that a client sees. Each kind is one error code of the protocol.
#[derive(Debug, thiserror::Error)]
pub enum CqlError {
    /// The read needs the disk: run the request again where it may block.
    #[error("the read needs the disk")]
    WouldBlock,
    /// The client no longer waits for the answer (`Request::cancelled`): there is none, and nothing has failed.
    #[error("nobody waits for the answer any more")]
    Cancelled,
    /// 0x000A: something sent with the statement violates the protocol, such as a paging state that no server made.
    #[error("{0}")]
    Protocol(String),
    /// 0x2000: the text is not CQL.
    #[error(transparent)]
    Syntax(#[from] SyntaxError),
    /// 0x2200: the statement or its values are not valid.
    #[error("{0}")]
    Invalid(String),
    /// 0x2300: an option of a schema statement is not valid.
    #[error("{0}")]
    Config(String),
    /// 0x2400: the object to create exists already.
    #[error("{message}")]
    AlreadyExists {
        /// The keyspace.
        keyspace: String,
        /// The table; empty for a keyspace.
        table: String,
        /// Cassandra's text.
        message: String,
    },
    /// 0x2500: there is no prepared statement with this id.
    #[error("Prepared query with ID {} not found (either the query was not prepared on this host (maybe the host has been restarted?) or you have prepared too many queries and it has been evicted from the internal cache)", hex(.0))]
    Unprepared(StatementId),
    /// 0x0100: the login is refused.
    #[error("{0}")]
    BadCredentials(String),
    /// 0x2100: the identity lacks a permission.
    #[error("{0}")]
    Unauthorized(String),
    /// 0x2100: the session's role may not log in any more. The connection ends with this answer.
    #[error("{0}")]
    SessionEnded(String),
    /// 0x1001: the server is overloaded, or the statement is too large.
    #[error("{0}")]
    Overloaded(String),
    /// 0x1003: a table could not be emptied.
    #[error("Error during truncate: {0}")]
    Truncate(String),
    /// 0x1200: a read took too long.
    #[error("Operation timed out - received only 0 responses.")]
    ReadTimeout {
        /// Consistency of the request.
        consistency: u16,
    },
    /// 0x1100: a write took too long.
    #[error("Operation timed out - received only 0 responses.")]
    WriteTimeout {
        /// Consistency of the request.
        consistency: u16,
    },
    /// 0x1300: a file that the read needs is damaged or cannot be read.
    #[error("Operation failed - received 0 responses and 1 failures: {reason}")]
    ReadFailure {
        /// Consistency of the request.
        consistency: u16,
        /// The file, the position in it, and what is wrong.
        reason: String,
    },
    /// 0x1300: a read passed more tombstones than `tombstone_failure_threshold`.
    #[error(
        "Operation failed - received 0 responses and 1 failures: READ_TOO_MANY_TOMBSTONES from /127.0.0.1:7000"
    )]
    TooManyTombstones {
        /// Consistency of the request.
        consistency: u16,
    },
    /// 0x1500: the write could not be logged.
    #[error("Operation failed - received 0 responses and 1 failures: {reason}")]
    WriteFailure {
        /// Consistency of the request.
        consistency: u16,
        /// What failed, and what the operator can do.
        reason: String,
    },
    /// 0x1400: a function or an operator failed on its values.
    #[error("{message}")]
    FunctionFailure {
        /// The function's keyspace.
        keyspace: String,
        /// The function.
        function: String,
        /// The types of its arguments.
        argument_types: Vec<String>,
        /// Cassandra's text.
        message: String,
    },
    /// 0x0000: the server failed at something other than a read or write of data.
    #[error("{0}")]
    Server(String),
}

/// The error of a text that is not a CQL statement.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SyntaxError {
    /// From 1; 0, as in Cassandra, if the text ended too early, and for class names.
    pub line: i32,
    /// From 0, in UTF-16 units; -1 where the line is 0.
    pub column: i32,
    /// The byte offset of the error in the text.
    pub offset: u32,
    /// The whole message. It begins with `line L:C ` if the text violates the grammar; without that prefix, only a rule
    /// beyond the grammar is violated.
    pub message: String,
}

/// Cassandra's error for an unusable paging state (`PagingState.deserialize`).
pub(crate) fn bad_paging_state() -> CqlError {
    CqlError::Protocol("Invalid value for the paging state".to_owned())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Result of running statements.
pub type Result<T> = std::result::Result<T, CqlError>;
