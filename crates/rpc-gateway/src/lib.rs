//! The old RPC interface (Thrift) in front of a cluster of Cassandra: the reads and changes that `rpc` makes of its calls become CQL
//! statements.
//!
//! `schema` shows tables of the cluster as column families. `reads` and `writes` put a `ReadCommand` and a `Mutation` as statements of
//! `texts`; `storage` is what `rpc` calls.
#![cfg_attr(
    test,
    allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test ends where its expectation does")
)]

mod errors;
mod families;
mod reads;
mod rows;
mod schema;
mod statements;
mod storage;
mod texts;
mod writes;

pub use storage::ClusterTables;
