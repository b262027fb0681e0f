//! Other names of the binary, by which it stands in for a Cassandra node in a container: `cassandra`, `cqlsh`,
//! `nodetool`, and `scylla`.
//!
//! `scylla` is the server with ScyllaDB's options. `names` chooses by the name under which the process was called. `node` is `cassandra`: it turns the environment of
//! Cassandra's official image (`environment`) into a command line of `helenus serve`. `cqlsh` is the shell with cqlsh's
//! options, `nodetool` is `helenus admin` with nodetool's. `place` says where configuration and data are, and `seeds` refuses other
//! machines as seeds.

mod cqlsh;
mod environment;
mod names;
mod node;
mod nodetool;
mod place;
mod scylla;
mod seeds;

pub use names::{Name, run};
