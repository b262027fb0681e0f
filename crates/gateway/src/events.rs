//! Passes schema events of the cluster on to clients, and those of nodes if clients see the nodes.
//!
//! The node that tells of events may be lost. Then the schema is compared with the one that was known before, and clients are told
//! what they have missed.

use std::net::SocketAddr;
use std::sync::Weak;
use std::time::Duration;

use helenus_cluster::{ClusterError, ClusterEvent};
use helenus_wire::native::{Event, EventType, Outgoing, TopologyChange};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

use crate::deliver::AGREEMENT;
use crate::schema_picture::SchemaPicture;
use crate::shared::Shared;
use crate::shown_nodes::came;

/// The time between two nodes that are shown. The Python driver looks for the node of an event within 10 s.
const APART: Duration = Duration::from_secs(15);
/// The pause after a comparison of the schema for which no node has answered.
const AGAIN: Duration = Duration::from_secs(5);

/// Runs until the gateway is dropped.
pub(crate) async fn pass_on(shared: Weak<Shared>, mut events: Receiver<ClusterEvent>) {
    // What the schema is before the first event. If it cannot be read, all of it counts as new when events are missed.
    let mut known = match shared.upgrade() {
        Some(shared) => SchemaPicture::read(&shared.cluster).await.unwrap_or_default(),
        None => return,
    };
    // When the schema is compared once more; other events do not put it off.
    let mut again_at: Option<tokio::time::Instant> = None;
    // An event that was taken while others were left out.
    let mut taken: Option<ClusterEvent> = None;
    loop {
        let next = match (taken.take(), again_at) {
            (Some(event), _) => Ok(event),
            (None, Some(at)) if at <= tokio::time::Instant::now() => Ok(ClusterEvent::Missed),
            (None, Some(at)) => {
                let waited = tokio::time::timeout_at(at, events.recv()).await;
                waited.unwrap_or(Ok(ClusterEvent::Missed))
            }
            (None, None) => events.recv().await,
        };
        let event = match next {
            Ok(event) => event,
            Err(RecvError::Lagged(_)) => ClusterEvent::Missed,
            Err(RecvError::Closed) => return,
        };
        let Some(shared) = shared.upgrade() else { return };
        match event {
            ClusterEvent::Schema(change) => {
                shared.statements.doubt(Some(&change));
                // Clients read the schema again at once, and from any node.
                let _ = shared.cluster.wait_for_agreement(AGREEMENT).await;
                // Again: a statement may have been prepared at a node that did not know of the change.
                shared.statements.doubt(Some(&change));
                // Without an answer the picture is too old, and clients are told of this change once more.
                let _ = known.renew(&shared.cluster, &change.keyspace).await;
                send(&shared, EventType::SchemaChange, Event::Schema(change));
            }
            ClusterEvent::Missed => {
                taken = after_missed(&mut events);
                // Statements may be of tables that have changed.
                shared.statements.doubt(None);
                let is_behind = missed(&shared, &mut known).await.is_err();
                again_at = is_behind.then(|| tokio::time::Instant::now() + AGAIN);
                shared.statements.doubt(None);
            }
            // A node that comes while not all are shown waits for its turn.
            ClusterEvent::Topology(change, node)
                if shared.shown.are_all()
                    || shared.options.shows_nodes && change == TopologyChange::RemovedNode =>
            {
                send(&shared, EventType::TopologyChange, Event::Topology(change, node));
            }
            ClusterEvent::Status(change, node) if is_shown(&shared, node) => {
                send(&shared, EventType::StatusChange, Event::Status(change, node));
            }
            ClusterEvent::Topology(..) | ClusterEvent::Status(..) => {}
        }
    }
}

/// Takes the events that only say once more that some were missed: one comparison of the schema after this answers them all. Returns the
/// first other event behind them.
fn after_missed(events: &mut Receiver<ClusterEvent>) -> Option<ClusterEvent> {
    loop {
        match events.try_recv() {
            Ok(ClusterEvent::Missed) | Err(TryRecvError::Lagged(_)) => {}
            Ok(other) => return Some(other),
            Err(TryRecvError::Empty | TryRecvError::Closed) => return None,
        }
    }
}

/// Whether clients see the node with this address.
fn is_shown(shared: &Shared, address: SocketAddr) -> bool {
    let topology = shared.cluster.topology();
    topology.nodes.iter().any(|node| node.named == address && shared.shown.has(node))
}

fn send(shared: &Shared, kind: EventType, event: Event<'_>) {
    for client in shared.connected() {
        client.event(kind, &Outgoing::Event(&event));
    }
}

/// Tells clients what they have missed, and takes the schema as it is now for the known one.
///
/// # Errors
/// No node answers; the schema that was known is left, so that nothing counts as dropped that was not seen.
async fn missed(shared: &Shared, known: &mut SchemaPicture) -> Result<(), ClusterError> {
    let _ = shared.cluster.wait_for_agreement(AGREEMENT).await;
    let now = SchemaPicture::read(&shared.cluster).await?;
    for change in known.changes_to(&now) {
        send(shared, EventType::SchemaChange, Event::Schema(change));
    }
    *known = now;
    Ok(())
}

/// Shows one node after the other, until all are shown or the gateway is dropped.
pub(crate) async fn show_nodes(shared: Weak<Shared>) {
    loop {
        {
            let Some(shared) = shared.upgrade() else { return };
            let topology = shared.cluster.topology();
            let Some(node) = topology.nodes.iter().find(|node| !shared.shown.has(node)) else {
                return shared.shown.add_all();
            };
            shared.shown.add(node);
            shared.connected().iter().for_each(|client| came(client, node));
        }
        tokio::time::sleep(APART).await;
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use helenus_wire::native::{SchemaChange, SchemaTarget, SchemaVerb};

    use super::*;

    #[test]
    fn events_that_were_missed_together_are_one_and_the_next_is_kept() {
        let (sender, mut events) = tokio::sync::broadcast::channel(8);
        let keyspace = Cow::Borrowed("ks");
        let change = SchemaChange { verb: SchemaVerb::Created, keyspace, target: SchemaTarget::Keyspace };
        let created = ClusterEvent::Schema(change);
        // More than the channel keeps: that some are lost is one more of the same.
        for _ in 0..20 {
            sender.send(ClusterEvent::Missed).unwrap();
        }
        sender.send(created.clone()).unwrap();
        sender.send(ClusterEvent::Missed).unwrap();
        assert_eq!(after_missed(&mut events), Some(created));
        assert_eq!(events.try_recv(), Ok(ClusterEvent::Missed), "one behind another event counts again");
        assert_eq!(after_missed(&mut events), None);
    }
}
