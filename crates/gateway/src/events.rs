//! Passes schema events of the cluster on to clients, and those of nodes if clients see the nodes.

use std::sync::Weak;

use helenus_cluster::ClusterEvent;
use helenus_wire::native::{Event, EventType, Outgoing};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use crate::deliver::AGREEMENT;
use crate::shared::Shared;

/// Runs until the gateway is dropped.
pub(crate) async fn pass_on(shared: Weak<Shared>, mut events: Receiver<ClusterEvent>) {
    loop {
        let event = match events.recv().await {
            Ok(event) => event,
            Err(RecvError::Lagged(_)) => ClusterEvent::Missed,
            Err(RecvError::Closed) => return,
        };
        let Some(shared) = shared.upgrade() else { return };
        match event {
            ClusterEvent::Schema(change) => {
                shared.statements.forget(&change);
                // Clients read the schema again at once, and from any node.
                let _ = shared.cluster.wait_for_agreement(AGREEMENT).await;
                send(&shared, EventType::SchemaChange, Event::Schema(change));
            }
            // Statements may be of tables that have changed.
            ClusterEvent::Missed => shared.statements.clear(),
            ClusterEvent::Topology(change, node) if shared.options.shows_nodes => {
                send(&shared, EventType::TopologyChange, Event::Topology(change, node));
            }
            ClusterEvent::Status(change, node) if shared.options.shows_nodes => {
                send(&shared, EventType::StatusChange, Event::Status(change, node));
            }
            ClusterEvent::Topology(..) | ClusterEvent::Status(..) => {}
        }
    }
}

fn send(shared: &Shared, kind: EventType, event: Event<'_>) {
    for client in shared.connected() {
        client.event(kind, &Outgoing::Event(&event));
    }
}
