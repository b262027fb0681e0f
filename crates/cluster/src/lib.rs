//! A client of a cluster of Apache Cassandra or ScyllaDB, for the gateway and for `helenus move`.
//!
//! [`Cluster::connect`] finds the nodes and keeps connections to them. [`Cluster::query`], [`Cluster::prepare`] and
//! [`Cluster::execute`] run statements; [`Cluster::plan`] gives the nodes to ask for a token, and [`Connection::call`] and
//! [`Connection::submit`] send one request to one node. Values and rows pass as bytes; nothing is decoded that the caller
//! does not ask for.
//!
//! Nothing is repeated in secret: a call fails with the reason, and [`CallError::was_sent`] and [`ClusterError::may_repeat`]
//! say whether the request may be sent again.
#![cfg_attr(
    test,
    allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test ends where its expectation does")
)]

mod answer;
mod answer_room;
mod cluster;
mod connection;
mod error;
mod keyspace_connections;
mod known_keyspace;
mod node;
mod options;
mod replication;
mod ring;
mod statement;
mod statement_memory;
mod topology;
mod written;

pub use answer::{Answer, OwnedAnswer};
pub use answer_room::{AnswerRoom, Taken};
pub use cluster::{Cluster, ClusterEvent};
pub use connection::{Asks, Connection, Done, Extras, Refused, Turn};
pub use error::{CallError, ClusterError, ConnectError};
pub use node::Node;
pub use options::{ClusterOptions, Login};
pub use replication::Replication;
pub use ring::partition_key_token;
pub use statement::{NodeStatement, Statement};
pub use topology::Topology;
pub use written::{Written, WrittenPartitions, WrittenTable};
