//! Which nodes of the cluster clients see.
//!
//! A gateway that continues a server shows them one after the other. Its clients have requests under way, and a driver that finds several
//! nodes at once may lose some: the Python driver opens connections to each of them twice and closes the first ones, whatever they carry.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};

use helenus_cluster::{Cluster, Node};
use helenus_wire::native::{Event, EventType, Outgoing, TopologyChange};
use parking_lot::Mutex;
use uuid::Uuid;

use crate::client::Client;

/// The nodes that clients see.
pub(crate) struct ShownNodes {
    are_all: AtomicBool,
    some: Mutex<HashSet<Uuid>>,
}

impl ShownNodes {
    pub fn new(are_all: bool) -> ShownNodes {
        ShownNodes { are_all: AtomicBool::new(are_all), some: Mutex::default() }
    }

    /// Whether clients see all of them, and any that comes.
    pub fn are_all(&self) -> bool {
        self.are_all.load(Ordering::Acquire)
    }

    /// Whether clients see this node.
    pub fn has(&self, node: &Node) -> bool {
        self.are_all() || self.some.lock().contains(&node.host_id)
    }

    /// Shows this node too.
    pub fn add(&self, node: &Node) {
        self.some.lock().insert(node.host_id);
    }

    /// Shows all from now on.
    pub fn add_all(&self) {
        self.are_all.store(true, Ordering::Release);
    }

    /// Sends a client that has registered for them the events by which it learns of these nodes.
    pub fn tell(&self, cluster: &Cluster, client: &Client) {
        for node in cluster.topology().nodes.iter().filter(|node| self.has(node)) {
            came(client, node);
        }
    }
}

/// Tells a client that a node came.
pub(crate) fn came(client: &Client, node: &Node) {
    let event = Event::Topology(TopologyChange::NewNode, node.named);
    client.event(EventType::TopologyChange, &Outgoing::Event(&event));
}
