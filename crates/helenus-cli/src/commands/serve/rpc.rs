//! The old RPC interface of a server: one socket, behind which is its database or, after a cut, the target of a move.

use super::run::outward_address;
use anyhow::Result;
use helenus_cql::LocalBackend;
use helenus_host::Host;
use helenus_rpc::{Node, Rpc};
use helenus_rpc_gateway::ClusterTables;
use helenus_server::ServerError;
use helenus_server::config::ServerConfig;
use helenus_server::log::SlowStatements;
use helenus_server::rpc::{RpcLimits, RpcServer};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Calls to a cluster that each event loop has in flight: a thread waits for each.
pub(super) const CLUSTER_CALLS_MAX: usize = 256;

/// The interface of a server.
#[derive(Clone)]
pub(super) struct OldInterface {
    /// Its socket and threads.
    pub(super) server: Arc<RpcServer>,
    local: Arc<LocalBackend>,
    node: Node,
    calls_max: usize,
}

impl OldInterface {
    /// Opens the socket, if the interface is configured. Clients wait until something is served. `limits` also say who checks
    /// logins and what is audited.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub(super) fn bind(
        host: &Host,
        local: &Arc<LocalBackend>,
        (config, limits): (&ServerConfig, RpcLimits),
        slow: &Arc<SlowStatements>,
    ) -> Result<Option<OldInterface>> {
        let Some(listen) = config.rpc else { return Ok(None) };
        let node = Node {
            cluster_name: config.cluster_name.clone(),
            datacenter: config.datacenter.clone(),
            rack: config.rack.clone(),
            address: own_address(config, listen),
        };
        let calls_max = limits.disk_threads_max;
        let server = RpcServer::bind(host, listen, limits, Some(Arc::clone(slow)))?;
        Ok(Some(OldInterface { server: Arc::new(server), local: Arc::clone(local), node, calls_max }))
    }

    /// Serves the database here from now on.
    ///
    /// # Errors
    /// The server is stopped.
    pub(super) fn serve_here(&self) -> Result<(), ServerError> {
        self.server.serve(Rpc::new(Arc::clone(&self.local), self.node.clone()), self.calls_max)
    }

    /// Serves the tables of a cluster from now on, as the same node.
    ///
    /// # Errors
    /// The server is stopped.
    pub(super) fn serve_cluster(&self, tables: ClusterTables) -> Result<(), ServerError> {
        self.server.serve(Rpc::of_storage(Box::new(tables), self.node.clone()), CLUSTER_CALLS_MAX)
    }
}

/// The address that clients of the interface are told.
pub(super) fn own_address(config: &ServerConfig, listen: SocketAddr) -> IpAddr {
    let own = || if listen.ip().is_unspecified() { outward_address() } else { listen.ip() };
    config.broadcast_address.unwrap_or_else(own)
}
