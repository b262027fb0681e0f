//! A cluster: its nodes, which of them to ask, and what happens to it.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use helenus_model::token::Token;
use helenus_wire::native::{ErrorMessage, SchemaChange, SchemaTarget, StatusChange, TopologyChange};
use parking_lot::Mutex;
use tokio::sync::{Notify, broadcast};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use uuid::Uuid;

use super::control;
use super::told_events::ToldEvents;
use crate::node::{Node, Pool};
use crate::options::{ClusterOptions, HostPort, Login};
use crate::topology::{self, ReadNode, ReadTopology, Topology};
use crate::{ClusterError, ConnectError, Connection};

/// The pause between two looks at the schema versions.
const AGREEMENT_PAUSE: Duration = Duration::from_millis(50);

/// Something that happened to the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterEvent {
    /// The schema changed.
    Schema(SchemaChange<'static>),
    /// A node came, went or moved.
    Topology(TopologyChange, SocketAddr),
    /// A node went up or down.
    Status(StatusChange, SocketAddr),
    /// Events of any kind may have been missed: the node that sent them was lost, or sent more than were taken.
    Missed,
}

/// A cluster; clones share it. When the last is dropped, all connections close.
#[derive(Clone, Debug)]
pub struct Cluster {
    inner: Arc<Inner>,
}

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) options: Arc<ClusterOptions>,
    pub(super) contact_points: Vec<HostPort>,
    /// The names by which contact points were given: certificates are for these.
    pub(super) names: Mutex<HashMap<SocketAddr, HostPort>>,
    pub(super) topology: ArcSwap<Topology>,
    pub(super) events: ToldEvents,
    /// Notified when connections come and go.
    pub(super) changed: Arc<Notify>,
    pub(super) control: Mutex<Option<Connection>>,
    turn: AtomicUsize,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(task) = self.task.get_mut() {
            task.abort();
        }
    }
}

impl Cluster {
    /// Finds the nodes by the first contact point that answers, and waits until one node of the local data center can be asked.
    ///
    /// # Errors
    /// No contact point can be used, or no node of the local data center.
    pub async fn connect(options: ClusterOptions) -> Result<Cluster, ClusterError> {
        let options = Arc::new(options);
        let parsed = options.contact_points.iter().map(|text| HostPort::parse(text));
        let contact_points = parsed.collect::<Result<Vec<_>, _>>().map_err(ClusterError::Invalid)?;
        let names = Mutex::new(HashMap::new());
        let found = control::first_contact(&contact_points, &options, &names).await?;
        let local_dc = local_dc(&options, &found.read)?;
        let changed = Arc::new(Notify::new());
        let nodes = nodes(&found.read, &[], (&options, &changed), &names);
        let inner = Arc::new(Inner {
            topology: ArcSwap::from_pointee(Topology::new(found.read, local_dc, nodes)),
            options,
            contact_points,
            names,
            events: ToldEvents::default(),
            changed,
            control: Mutex::new(Some(found.connection.clone())),
            turn: AtomicUsize::new(0),
            task: Mutex::new(None),
        });
        let task = tokio::spawn(control::keep(Arc::downgrade(&inner), found.connection, found.events));
        *inner.task.lock() = Some(task);
        let cluster = Cluster { inner };
        cluster.wait_for_node().await?;
        Ok(cluster)
    }

    /// The same cluster, reached as another role: with connections of its own, which begin at the nodes that are connected here.
    ///
    /// # Errors
    /// Those of [`Cluster::connect`]; a node asks for no login.
    pub async fn as_role(&self, login: Login) -> Result<Cluster, ClusterError> {
        let mut options = ClusterOptions::clone(self.options());
        options.local_dc = Some(self.topology().local_dc.clone());
        (options.login, options.must_log_in) = (Some(login), true);
        let mut points: Vec<String> = {
            let names = self.inner.names.lock();
            let nodes = self.plan(None);
            let name = |node: &Arc<Node>| {
                names.get(&node.address).map_or(node.address.to_string(), HostPort::to_string)
            };
            nodes.iter().map(name).collect()
        };
        points.append(&mut options.contact_points);
        options.contact_points = points;
        Cluster::connect(options).await
    }

    /// Checks a login at the first node that answers.
    ///
    /// # Errors
    /// The node refuses it, or asks for no login; no node can be reached.
    pub async fn check_login(&self, login: &Login) -> Result<(), ClusterError> {
        let mut last = None;
        for node in self.plan(None) {
            match node.check_login(login).await {
                Ok(()) => return Ok(()),
                Err(error @ (ConnectError::Socket { .. } | ConnectError::Timeout { .. })) => {
                    last = Some(error)
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(last.map_or_else(|| self.no_node(), ClusterError::Connect))
    }

    async fn wait_for_node(&self) -> Result<(), ClusterError> {
        let wait = async {
            loop {
                let changed = self.inner.changed.notified();
                tokio::pin!(changed);
                changed.as_mut().enable();
                let topology = self.topology();
                if topology
                    .nodes
                    .iter()
                    .any(|node| node.datacenter == topology.local_dc && node.is_connected())
                {
                    return;
                }
                changed.await;
            }
        };
        let waited = tokio::time::timeout(self.inner.options.connect_timeout, wait).await;
        waited.map_err(|_| self.no_node())
    }

    /// The options by which the cluster was connected.
    pub fn options(&self) -> &ClusterOptions {
        &self.inner.options
    }

    /// The nodes, the ring and the keyspaces as they are known now.
    pub fn topology(&self) -> Arc<Topology> {
        self.inner.topology.load_full()
    }

    /// Events from now on. A subscriber that is too far behind loses some, and is told so by the channel.
    pub fn events(&self) -> broadcast::Receiver<ClusterEvent> {
        self.inner.events.subscribe()
    }

    /// The node that tells of events, unless it was just lost. What it has told of, it knows.
    pub fn node_of_events(&self) -> Option<SocketAddr> {
        self.inner.control.lock().as_ref().map(Connection::node)
    }

    /// The connected nodes in the order in which to ask them. With a keyspace and a token: first the holders of the token, in turns.
    /// Nodes of other data centers come last.
    pub fn plan(&self, partition: Option<(&str, Token)>) -> Vec<Arc<Node>> {
        let topology = self.inner.topology.load();
        let turn = self.inner.turn.fetch_add(1, Ordering::Relaxed);
        let holders = partition.map_or(&[][..], |(keyspace, token)| topology.holders(keyspace, token));
        let mut ranked: Vec<(usize, &Arc<Node>)> = Vec::with_capacity(topology.nodes.len());
        let count = topology.nodes.len();
        for step in 0..count {
            let number = (turn + step) % count;
            let Some(node) = topology.nodes.get(number).filter(|node| node.is_connected()) else { continue };
            let rank = match (node.datacenter == topology.local_dc, holders.contains(&number)) {
                (true, true) => 0,
                (true, false) => 1,
                (false, true) => 2,
                (false, false) => 3,
            };
            ranked.push((rank, node));
        }
        ranked.sort_by_key(|(rank, _)| *rank);
        ranked.into_iter().map(|(_, node)| Arc::clone(node)).collect()
    }

    /// The nodes of [`Cluster::plan`]. Of those in the local data center, whoever takes a request now comes before those that are full.
    pub fn plan_by_room(&self, partition: Option<(&str, Token)>) -> Vec<Arc<Node>> {
        let topology = self.topology();
        let mut nodes = self.plan(partition);
        nodes.sort_by_cached_key(|node| match node.datacenter == topology.local_dc {
            true => u8::from(node.is_full()),
            false => 2,
        });
        nodes
    }

    /// Until when a request that begins now waits for room at nodes, in all.
    pub fn until(&self) -> Instant {
        tokio::time::Instant::now() + self.options().timeout
    }

    /// The first node of [`Cluster::plan`].
    pub fn pick(&self, partition: Option<(&str, Token)>) -> Option<Arc<Node>> {
        let topology = self.inner.topology.load();
        let turn = self.inner.turn.fetch_add(1, Ordering::Relaxed);
        let usable = |number: usize| {
            let node = topology.nodes.get(number)?;
            (node.datacenter == topology.local_dc && node.is_connected()).then_some(node)
        };
        let holders = partition.map_or(&[][..], |(keyspace, token)| topology.holders(keyspace, token));
        let in_turn = |count: usize| (0..count).map(move |step| (turn + step) % count);
        let holder = in_turn(holders.len()).find_map(|at| usable(*holders.get(at)?));
        let found = holder.or_else(|| in_turn(topology.nodes.len()).find_map(usable));
        match found {
            Some(node) => Some(Arc::clone(node)),
            None => self.plan(partition).into_iter().next(),
        }
    }

    /// Waits until all connected nodes have the same schema, after a change of it. Each is asked for its own version: what one node
    /// knows of the others is late.
    ///
    /// # Errors
    /// They do not agree within this time; no node is connected.
    pub async fn wait_for_agreement(&self, within: Duration) -> Result<(), ClusterError> {
        let until = tokio::time::Instant::now() + within;
        loop {
            let topology = self.topology();
            let connections: Vec<_> = topology.nodes.iter().filter_map(|node| node.connection()).collect();
            if connections.is_empty() {
                return Err(self.no_node());
            }
            let mut versions = Vec::new();
            for connection in &connections {
                let asked = tokio::time::timeout_at(until, topology::schema_version(connection)).await;
                match asked {
                    Ok(Ok(version)) => versions.push(version),
                    // A node that is lost meanwhile does not count.
                    Ok(Err(_)) => {}
                    Err(_) => return Err(ClusterError::NoAgreement { after: within }),
                }
            }
            if !versions.is_empty() && versions.windows(2).all(|pair| pair.first() == pair.last()) {
                return Ok(());
            }
            if tokio::time::Instant::now() >= until {
                return Err(ClusterError::NoAgreement { after: within });
            }
            tokio::time::sleep(AGREEMENT_PAUSE).await;
        }
    }

    /// The schema version of each connected node that answers within this time.
    pub async fn schema_versions(&self, within: Duration) -> HashMap<Uuid, Uuid> {
        let until = tokio::time::Instant::now() + within;
        let mut versions = HashMap::new();
        for node in &self.topology().nodes {
            let Some(connection) = node.connection() else { continue };
            let asked = tokio::time::timeout_at(until, topology::schema_version(&connection)).await;
            if let Ok(Ok(Some(version))) = asked {
                versions.insert(node.host_id, version);
            }
        }
        versions
    }

    /// The error by which a node has refused the login of this cluster's connections, if none is left at any node.
    pub fn login_refusal(&self) -> Option<ErrorMessage> {
        let topology = self.topology();
        match topology.nodes.iter().any(|node| node.is_connected()) {
            true => None,
            false => topology.nodes.iter().find_map(|node| node.login_refusal()),
        }
    }

    pub(crate) fn no_node(&self) -> ClusterError {
        let topology = self.topology();
        let local = topology.nodes.iter().filter(|node| node.datacenter == topology.local_dc);
        ClusterError::NoNode { reason: local.filter_map(|node| node.error()).next() }
    }
}

fn local_dc(options: &ClusterOptions, read: &ReadTopology) -> Result<String, ClusterError> {
    let Some(wanted) = &options.local_dc else {
        return Ok(read.nodes.first().map(|node| node.datacenter.clone()).unwrap_or_default());
    };
    if read.nodes.iter().any(|node| node.datacenter == *wanted) {
        return Ok(wanted.clone());
    }
    let mut present: Vec<&str> = read.nodes.iter().map(|node| &*node.datacenter).collect();
    present.sort_unstable();
    present.dedup();
    let present = present.join(", ");
    Err(ClusterError::Invalid(format!("the cluster has no data center '{wanted}'; it has {present}")))
}

/// Joins what was read with the nodes that are known already, whose connections stay.
pub(super) fn nodes(
    read: &ReadTopology,
    known: &[Arc<Node>],
    (options, changed): (&Arc<ClusterOptions>, &Arc<Notify>),
    names: &Mutex<HashMap<SocketAddr, HostPort>>,
) -> Vec<Arc<Node>> {
    let node = |read: &ReadNode| {
        let before = known.iter().find(|node| node.host_id == read.host_id);
        // A node may be reached by another address than the one that it names.
        let before = before.filter(|node| node.address == read.address || node.is_connected());
        let address = before.map_or(read.address, |node| node.address);
        let pool = match before {
            Some(node) => Arc::clone(&node.pool),
            None => {
                let host = HostPort { host: address.ip().to_string(), port: address.port() };
                let name = names.lock().get(&address).cloned().unwrap_or(host);
                Pool::start(address, name, options, changed)
            }
        };
        Arc::new(Node {
            address,
            named: read.named,
            peer: read.peer,
            host_id: read.host_id,
            datacenter: read.datacenter.clone(),
            rack: read.rack.clone(),
            release_version: read.release_version.clone(),
            tokens: read.tokens.clone(),
            pool,
        })
    };
    read.nodes.iter().map(node).collect()
}

/// The same change, with its own text.
pub(super) fn owned_change(change: SchemaChange<'_>) -> SchemaChange<'static> {
    use std::borrow::Cow;
    let own = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
    let all = |list: Vec<Cow<'_, str>>| list.into_iter().map(own).collect();
    let target = match change.target {
        SchemaTarget::Keyspace => SchemaTarget::Keyspace,
        SchemaTarget::Table(name) => SchemaTarget::Table(own(name)),
        SchemaTarget::Type(name) => SchemaTarget::Type(own(name)),
        SchemaTarget::Function(name, types) => SchemaTarget::Function(own(name), all(types)),
        SchemaTarget::Aggregate(name, types) => SchemaTarget::Aggregate(own(name), all(types)),
    };
    SchemaChange { verb: change.verb, keyspace: own(change.keyspace), target }
}
