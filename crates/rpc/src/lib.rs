//! The Thrift RPC interface, over the same tables as CQL: the meaning of each call, without sockets.
//!
//! A call becomes a `ReadCommand` or a `Mutation` of the engine, as a prepared statement does, for whatever `storage` has the
//! tables, and its answer is written directly from the rows into the message. Only this crate and `wire::thrift` use the old words: a column
//! family is a table, a row is a partition, a column is one row of it (`family` defines the mapping).
//!
//! Rules and texts are those of Cassandra 3.11 (`CassandraServer`, `ThriftValidation`, `ThriftConversion`,
//! `LegacyLayout`), the last version with this interface. Those of CQL 2 are Cassandra 2.1's
//! (`org.apache.cassandra.cql`).

mod access;
mod call_options;
mod calls;
mod context;
mod describe_call;
mod error;
mod family;
mod name;
mod node;
mod predicate;
mod prepared;
mod read;
mod run_statement;
mod schema;
mod session;
mod statement;
mod storage;
mod trace;
mod validate;
mod write;

pub use access::role_to_log_in;
pub use call_options::{Arrival, CallOptions, LoginHandle, LoginTurn};
pub use calls::CallOutcome;
pub use context::Rpc;
pub use describe_call::{CallDescription, Refused, RefusedKind, TextParse};
pub use name::Comparator;
pub use node::Node;
pub use session::Session;
pub use storage::{FamilyChange, IndexEquality, LoggedIn, LoginTurnFuture, Storage, Swap};
