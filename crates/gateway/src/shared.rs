//! What all connections of a gateway share.

use std::net::SocketAddr;
use std::sync::{Arc, Weak};

use helenus_cluster::Cluster;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use uuid::Uuid;

use crate::budget::Budget;
use crate::client::Client;
use crate::options::GatewayOptions;
use crate::paging::PagingStates;
use crate::roles::Roles;
use crate::shown_nodes::ShownNodes;
use crate::statements::Statements;

/// The state of a gateway.
pub(crate) struct Shared {
    /// The cluster, as the gateway's own role.
    pub cluster: Cluster,
    pub options: GatewayOptions,
    pub roles: Arc<Roles>,
    pub statements: Statements,
    pub budget: Arc<Budget>,
    /// All connections, for events.
    pub clients: Mutex<Vec<Weak<Client>>>,
    /// Where tasks are started from threads that are none of the runtime's.
    pub runtime: Handle,
    /// The id of the one node that clients see.
    pub host_id: Uuid,
    pub paging: PagingStates,
    pub shown: ShownNodes,
}

impl Shared {
    pub fn new(roles: Arc<Roles>, options: GatewayOptions, address: SocketAddr) -> Shared {
        let cluster = roles.own().cluster.clone();
        let cluster_name = cluster.topology().cluster_name.clone();
        let own_id = options.own_node.as_ref().map(|own| own.host_id);
        let shows_all = options.shows_nodes && options.own_node.is_none();
        Shared {
            shown: ShownNodes::new(shows_all),
            statements: Statements::new(),
            budget: Arc::new(Budget::new(options.bytes_max)),
            clients: Mutex::new(Vec::new()),
            runtime: Handle::current(),
            host_id: own_id.unwrap_or_else(|| host_id(&cluster_name, address)),
            paging: PagingStates {
                cluster: cluster_name,
                are_bare: options.shows_nodes || options.own_node.is_some(),
            },
            roles,
            cluster,
            options,
        }
    }

    /// Remembers a client until it is dropped.
    pub fn add_client(&self, client: &Arc<Client>) {
        let mut clients = self.clients.lock();
        if clients.len() == clients.capacity() {
            clients.retain(|client| client.strong_count() > 0);
        }
        clients.push(Arc::downgrade(client));
    }

    /// The clients that are connected now.
    pub fn connected(&self) -> Vec<Arc<Client>> {
        self.clients.lock().iter().filter_map(Weak::upgrade).collect()
    }
}

/// An id that stays the same when the gateway starts again at the same address.
fn host_id(cluster_name: &str, address: SocketAddr) -> Uuid {
    let digest = md5::compute(format!("helenus gateway of {cluster_name} at {address}"));
    uuid::Builder::from_md5_bytes(*digest).into_uuid()
}
