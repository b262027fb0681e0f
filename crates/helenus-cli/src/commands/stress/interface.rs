//! The interfaces over which the same workload can be sent.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// An interface, and the form of its statements.
#[derive(ValueEnum, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "lowercase")]
pub(super) enum Interface {
    /// Calls of the RPC interface (Thrift): `batch_mutate`, `get_slice`, `add`
    Rpc,
    /// CQL over the native protocol, each statement with its values in its text
    Cql,
    /// CQL over the native protocol, statements prepared once
    #[default]
    Prepared,
    /// CQL 2 over the RPC interface: `execute_cql_query`
    Cql2,
}

impl Interface {
    /// All interfaces, those of "CQL benchmarking" (2011) first.
    pub const ALL: [Interface; 4] = [Interface::Rpc, Interface::Cql, Interface::Prepared, Interface::Cql2];

    /// Whether it uses the sockets of Thrift RPC.
    pub fn is_rpc(self) -> bool {
        matches!(self, Interface::Rpc | Interface::Cql2)
    }

    /// Its name for people.
    pub fn title(self) -> &'static str {
        match self {
            Interface::Rpc => "RPC",
            Interface::Cql => "CQL",
            Interface::Prepared => "CQL prepared",
            Interface::Cql2 => "CQL 2 over RPC",
        }
    }
}
