//! The control connection: it brings events, and is where the system tables are read. When its node is lost it moves to another.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use std::time::Duration;

use helenus_wire::native::{
    Event, EventType, EventTypes, Request, Response, SchemaTarget, StatusChange, TopologyChange,
};
use parking_lot::Mutex;

use super::cluster_handle::{ClusterEvent, Inner, nodes, owned_change};
use crate::connection::{EventBody, EventReceiver, Received, events, read_event};
use crate::options::{ClusterOptions, HostPort};
use crate::topology::{self, ReadTopology, Topology};
use crate::{ClusterError, Connection, Extras, Node};

/// Events between two looks of the task.
const EVENTS_MAX: usize = 1024;
/// The pause after all nodes have been tried in vain, and the least time between two control connections: a node may take each and close it.
const PAUSE: Duration = Duration::from_secs(1);
/// The system tables are read again after this time, and this long after an event: a node tells of a new peer before it has
/// written its row.
const REFRESH: Duration = Duration::from_secs(60);
const REFRESH_AFTER_EVENT: Duration = Duration::from_secs(2);

/// A control connection with what it has found.
pub(super) struct Contact {
    pub connection: Connection,
    pub events: EventReceiver,
    pub read: ReadTopology,
}

/// Tries the contact points one after the other, and each address of a name.
pub(super) async fn first_contact(
    contact_points: &[HostPort],
    options: &ClusterOptions,
    names: &Mutex<HashMap<SocketAddr, HostPort>>,
) -> Result<Contact, ClusterError> {
    let mut reasons = Vec::new();
    for point in contact_points {
        let found = tokio::net::lookup_host((point.host.as_str(), point.port)).await;
        let addresses = match found {
            Ok(addresses) => addresses.collect::<Vec<_>>(),
            Err(error) => {
                reasons.push(format!("{point}: {error}"));
                continue;
            }
        };
        for address in addresses {
            names.lock().insert(address, point.clone());
            match contact(address, point, options).await {
                Ok(contact) => return Ok(contact),
                Err(error) => reasons.push(error.to_string()),
            }
        }
    }
    Err(ClusterError::NoContact { reasons })
}

async fn contact(
    address: SocketAddr,
    name: &HostPort,
    options: &ClusterOptions,
) -> Result<Contact, ClusterError> {
    let (sender, events) = events(EVENTS_MAX);
    let connection = Connection::open(address, name, options, Some(sender)).await?;
    let all = [EventType::TopologyChange, EventType::StatusChange, EventType::SchemaChange];
    let types = all.into_iter().fold(EventTypes::default(), EventTypes::with);
    let answer = connection.call(&Request::Register(types), &Extras::default()).await?;
    match answer.decode()?.response {
        Response::Ready => {}
        Response::Error(error) => return Err(ClusterError::Server(error)),
        _ => return Err(ClusterError::Unexpected { opcode: answer.opcode }),
    }
    let read = topology::read(&connection).await?;
    Ok(Contact { connection, events, read })
}

/// Follows the cluster until the last handle is dropped.
pub(super) async fn keep(cluster: Weak<Inner>, mut connection: Connection, mut events: EventReceiver) {
    // Events that change no topology do not put a reading off.
    let mut read_at = tokio::time::Instant::now() + REFRESH;
    let mut begun = tokio::time::Instant::now();
    loop {
        let (mut bodies, mut has_missed) = (Vec::new(), false);
        tokio::select! {
            received = events.receive(EVENTS_MAX) => match received {
                Received::Events(received) => bodies = received,
                Received::Missed => has_missed = true,
                Received::Ended => connection.closed().await,
            },
            () = connection.closed() => {}
            () = tokio::time::sleep_until(read_at) => {}
        }
        let Some(inner) = cluster.upgrade() else { return };
        if connection.is_closed() {
            *inner.control.lock() = None;
            let rest = PAUSE.saturating_sub(begun.elapsed());
            if !rest.is_zero() {
                drop(inner);
                tokio::time::sleep(rest).await;
                continue;
            }
            begun = tokio::time::Instant::now();
            let Some(found) = inner.next_contact().await else {
                drop(inner);
                tokio::time::sleep(PAUSE).await;
                continue;
            };
            inner.take_over(found.read);
            read_at = begun + REFRESH;
            *inner.control.lock() = Some(found.connection.clone());
            (connection, events) = (found.connection, found.events);
            inner.events.send(ClusterEvent::Missed);
            continue;
        }
        let told: Vec<ClusterEvent> = bodies.iter().filter_map(event_of).collect();
        // One that cannot be read is lost too.
        has_missed |= told.len() < bodies.len();
        let may_change_topology = has_missed || told.iter().any(changes_topology);
        let reads = bodies.is_empty() || may_change_topology;
        if reads {
            let read = topology::read(&connection).await;
            // A reading that failed is tried again soon too.
            let pause = if may_change_topology || read.is_err() { REFRESH_AFTER_EVENT } else { REFRESH };
            read_at = tokio::time::Instant::now() + pause;
            if let Ok(read) = read {
                inner.take_over(read);
            }
        }
        for event in told.into_iter().filter(|event| !is_told_by_tables(event)) {
            if let ClusterEvent::Status(StatusChange::Up, address) = event {
                inner.nudge(address);
            }
            inner.events.send(event);
        }
        if has_missed {
            inner.events.send(ClusterEvent::Missed);
        }
    }
}

fn event_of(body: &EventBody) -> Option<ClusterEvent> {
    Some(match read_event(body)? {
        Event::Topology(change, address) => ClusterEvent::Topology(change, address),
        Event::Status(change, address) => ClusterEvent::Status(change, address),
        Event::Schema(change) => ClusterEvent::Schema(owned_change(change)),
    })
}

fn changes_topology(event: &ClusterEvent) -> bool {
    match event {
        ClusterEvent::Schema(change) => change.target == SchemaTarget::Keyspace,
        ClusterEvent::Topology(..) | ClusterEvent::Status(..) | ClusterEvent::Missed => true,
    }
}

/// Whether subscribers learn of it when the node is in the system tables, or is there no more. The event itself comes earlier, and
/// who then asks for the nodes does not find it.
fn is_told_by_tables(event: &ClusterEvent) -> bool {
    matches!(event, ClusterEvent::Topology(TopologyChange::NewNode | TopologyChange::RemovedNode, _))
}

impl Inner {
    fn take_over(&self, read: ReadTopology) {
        let before = self.topology.load_full();
        let nodes = nodes(&read, &before.nodes, (&self.options, &self.changed), &self.names);
        let after = Arc::new(Topology::new(read, before.local_dc.clone(), nodes));
        self.topology.store(Arc::clone(&after));
        let differences =
            [(&after, &before, TopologyChange::NewNode), (&before, &after, TopologyChange::RemovedNode)];
        for (having, lacking, change) in differences {
            let lacks = |node: &&Arc<Node>| lacking.nodes.iter().all(|other| other.host_id != node.host_id);
            for node in having.nodes.iter().filter(lacks) {
                self.events.send(ClusterEvent::Topology(change, node.named));
            }
        }
    }

    /// A control connection to another node: first to those that are connected, then to all others, then to the contact points.
    async fn next_contact(&self) -> Option<Contact> {
        let topology = self.topology.load_full();
        let mut nodes: Vec<_> = topology.nodes.iter().collect();
        nodes.sort_by_key(|node| (!node.is_connected(), node.datacenter != topology.local_dc));
        for node in nodes {
            let host = HostPort { host: node.address.ip().to_string(), port: node.address.port() };
            let name = self.names.lock().get(&node.address).cloned().unwrap_or(host);
            if let Ok(found) = contact(node.address, &name, &self.options).await {
                return Some(found);
            }
        }
        first_contact(&self.contact_points, &self.options, &self.names).await.ok()
    }

    fn nudge(&self, address: SocketAddr) {
        let topology = self.topology.load();
        for node in topology.nodes.iter().filter(|node| node.address == address) {
            node.pool.nudge();
        }
    }
}
