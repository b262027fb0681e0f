//! The old RPC interface (Thrift) in front of a cluster of Cassandra: the reads and changes that `rpc` makes of its calls become CQL
//! statements.
//!
//! `schema` shows tables of the cluster as column families, and `definitions` makes and changes such tables. `reads`, `writes` and `swaps`
//! put a `ReadCommand`, a `Mutation` and a `Swap` as statements; `storage` is what `rpc` calls.
#![cfg_attr(
    test,
    allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test ends where its expectation does")
)]

mod definitions;
mod errors;
mod families;
mod reads;
mod rows;
mod schema;
mod statements;
mod storage;
mod swaps;
mod texts;
mod writes;

pub use storage::ClusterTables;
