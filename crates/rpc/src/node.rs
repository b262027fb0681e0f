//! What the describing calls say of this server.

use std::net::IpAddr;

/// This server, as clients of the interface are told of it.
#[derive(Clone, Debug)]
pub struct Node {
    /// The cluster's name.
    pub cluster_name: String,
    /// Its datacenter.
    pub datacenter: String,
    /// Its rack.
    pub rack: String,
    /// Where clients connect to.
    pub address: IpAddr,
}
