//! Moves tables to a cluster of Apache Cassandra, with the timestamp and the TTL of every cell.
//!
//! `source` turns what the engine holds into prepared statements of CQL that write the same cells again.
#![cfg_attr(
    test,
    allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test ends where its expectation does")
)]

pub mod source;
