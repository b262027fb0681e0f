//! The errors of the embedded database.

use helenus_cql::CqlError;

/// An error of the embedded database.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The statement is wrong or could not be run. The text is the one that a Cassandra node would answer.
    #[error(transparent)]
    Cql(#[from] CqlError),
    /// The storage engine failed, or refused the request.
    #[error(transparent)]
    Engine(#[from] helenus_engine::Error),
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
    /// The table does not exist.
    #[error("table {keyspace}.{table} does not exist; create it first")]
    NoTable {
        /// The keyspace.
        keyspace: String,
        /// The table.
        table: String,
    },
}

/// The result type of the embedded database.
pub type Result<T> = std::result::Result<T, Error>;
