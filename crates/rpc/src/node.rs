//! The description of this server in the answers of describing calls.

use std::net::IpAddr;

/// The description of this server for clients.
#[derive(Clone, Debug)]
pub struct Node {
    /// The cluster's name.
    pub cluster_name: String,
    /// Its datacenter.
    pub datacenter: String,
    /// Its rack.
    pub rack: String,
    /// The address that clients connect to.
    pub address: IpAddr,
}
