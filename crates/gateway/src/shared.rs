//! What all connections of a gateway share.

use std::net::SocketAddr;
use std::sync::{Arc, Weak};

use helenus_cluster::Cluster;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use uuid::Uuid;

use crate::budget::Budgets;
use crate::client::Client;
use crate::newcomers::Newcomers;
use crate::open_connections::OpenConnections;
use crate::options::GatewayOptions;
use crate::paging::PagingStates;
use crate::roles::Roles;
use crate::shown_nodes::ShownNodes;
use crate::statements::Statements;

/// The clients of a gateway.
#[derive(Default)]
struct Clients {
    known: Vec<Weak<Client>>,
    /// Set at the end, under the same lock under which a client is added: so a client is either among those that `stop` closes, or
    /// learns here that nobody serves it.
    are_stopped: bool,
}

/// The state of a gateway.
pub(crate) struct Shared {
    /// The cluster, as the gateway's own role.
    pub cluster: Cluster,
    pub options: GatewayOptions,
    pub roles: Arc<Roles>,
    pub statements: Statements,
    pub budgets: Budgets,
    /// All connections, for events and for the end.
    clients: Mutex<Clients>,
    /// Notified when the gateway stops.
    stopping: Notify,
    /// Where tasks are started from threads that are none of the runtime's.
    pub runtime: Handle,
    /// The id of the one node that clients see.
    pub host_id: Uuid,
    pub paging: PagingStates,
    pub shown: ShownNodes,
    pub open: Arc<OpenConnections>,
    pub newcomers: Newcomers,
}

impl Shared {
    pub fn new(roles: Arc<Roles>, options: GatewayOptions, address: SocketAddr) -> Shared {
        let cluster = roles.own().cluster.clone();
        let cluster_name = cluster.topology().cluster_name.clone();
        let own_id = options.own_node.as_ref().map(|own| own.host_id);
        let shows_all = options.shows_nodes && options.own_node.is_none();
        Shared {
            shown: ShownNodes::new(shows_all),
            open: Arc::default(),
            newcomers: Newcomers::of(options.connections_max, options.bytes_max / 2),
            statements: Statements::new(options.statements_bytes_max),
            budgets: Budgets::new(options.bytes_max, options.unread_bytes_max),
            clients: Mutex::default(),
            stopping: Notify::new(),
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

    /// Remembers a client until it is dropped. Where the gateway has stopped meanwhile, none of its requests is read: its connection
    /// closes once what was made for it before is sent.
    pub fn add_client(&self, client: &Arc<Client>) {
        let mut clients = self.clients.lock();
        if clients.known.len() == clients.known.capacity() {
            clients.known.retain(|client| client.strong_count() > 0);
        }
        clients.known.push(Arc::downgrade(client));
        if clients.are_stopped {
            client.close_after_answers();
        }
    }

    /// The clients that are connected now, or have requests at the nodes.
    pub fn connected(&self) -> Vec<Arc<Client>> {
        self.clients.lock().known.iter().filter_map(Weak::upgrade).collect()
    }

    /// Serves no further client, and ends all connections once their answers are sent.
    pub fn stop(&self) {
        let clients = {
            let mut clients = self.clients.lock();
            clients.are_stopped = true;
            clients.known.iter().filter_map(Weak::upgrade).collect::<Vec<_>>()
        };
        self.stopping.notify_waiters();
        clients.iter().for_each(|client| client.close_after_answers());
    }

    /// Waits until the gateway is stopped.
    pub async fn stopped(&self) {
        let stopping = self.stopping.notified();
        tokio::pin!(stopping);
        // Before the look, so that a stop right after it is not missed.
        stopping.as_mut().enable();
        if !self.clients.lock().are_stopped {
            stopping.await;
        }
    }

    /// Whether no connection is open, one in its handshake included, and no request of a client is at a node.
    pub fn is_at_rest(&self) -> bool {
        self.open.are_none() && self.connected().is_empty()
    }
}

/// An id that stays the same when the gateway starts again at the same address.
fn host_id(cluster_name: &str, address: SocketAddr) -> Uuid {
    let digest = md5::compute(format!("helenus gateway of {cluster_name} at {address}"));
    uuid::Builder::from_md5_bytes(*digest).into_uuid()
}
