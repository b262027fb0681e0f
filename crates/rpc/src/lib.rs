//! The old RPC interface over the same tables as CQL: what a call means, without a socket.
//!
//! A call becomes a `ReadCommand` or a `Mutation` of the engine, as a prepared statement does, and its answer is written
//! straight from the rows into the message. The words are the old ones here and in `wire::thrift`, and nowhere below: a
//! column family is a table, a row a partition, a column one row of it (`family` says how).
//!
//! Rules and texts are Cassandra 3.11's (`CassandraServer`, `ThriftValidation`, `ThriftConversion`, `LegacyLayout`), the last
//! that had the interface; those of the first CQL dialect are Cassandra 2.1's (`org.apache.cassandra.cql`).

mod calls;
mod error;
mod family;
mod name;
mod node;
mod prepared;
mod read;
mod schema;
mod session;
mod statement;
mod trace;
mod validate;
mod words;
mod write;

pub use calls::{Done, Manner, Rpc};
pub use name::Comparator;
pub use node::Node;
pub use session::Session;
pub use words::{CallWords, Refused, RefusedKind};
