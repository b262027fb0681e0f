//! The id of a prepared statement.

/// The MD5 of keyspace and text, as Cassandra computes it.
pub type StatementId = [u8; 16];
