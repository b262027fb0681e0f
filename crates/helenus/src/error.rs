//! What can go wrong in the embedded database.

use helenus_cql::CqlError;

/// An error of the embedded database.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The statement is wrong or could not be run; the text is what a Cassandra node would answer.
    #[error(transparent)]
    Cql(#[from] CqlError),
    /// The storage engine failed or refused.
    #[error(transparent)]
    Engine(#[from] helenus_engine::Error),
    /// A value does not fit its column.
    #[error("{keyspace}.{table}: column {column} of type {ty} takes no {value}; give a {ty}")]
    WrongType {
        /// Keyspace of the column.
        keyspace: String,
        /// Its table.
        table: String,
        /// Its name.
        column: String,
        /// Its type in CQL.
        ty: String,
        /// What was given.
        value: &'static str,
    },
    /// A table that is not of the shape the wide-row calls need.
    #[error(
        "{keyspace}.{table} is not a wide-row table: {problem}; it needs one partition key column, one clustering column and one regular column, none of them a non-frozen collection or counter"
    )]
    NotWide {
        /// The keyspace.
        keyspace: String,
        /// The table.
        table: String,
        /// What is different.
        problem: &'static str,
    },
    /// A table that does not exist.
    #[error("table {keyspace}.{table} does not exist; create it first")]
    NoTable {
        /// The keyspace.
        keyspace: String,
        /// The table.
        table: String,
    },
}

/// Result of the embedded database.
pub type Result<T> = std::result::Result<T, Error>;
