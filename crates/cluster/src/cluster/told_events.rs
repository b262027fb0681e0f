//! The events that subscribers have not taken yet: limited in number and in bytes.
//!
//! `control` sends them. The channel drops the oldest beyond a number; it knows nothing of bytes, and whoever may change the schema chooses
//! how long the names in its events are. So an event for which there is no room becomes `ClusterEvent::Missed`, after which subscribers
//! look for themselves.

use std::collections::VecDeque;

use helenus_wire::native::{SchemaChange, SchemaTarget};
use parking_lot::Mutex;
use tokio::sync::broadcast;

use super::cluster_handle::ClusterEvent;

/// Events that a subscriber may be behind, and their bytes.
const EVENTS_MAX: usize = 1024;
const BYTES_MAX: usize = 1 << 20;

/// The sending side of the events of a cluster.
#[derive(Debug)]
pub(super) struct ToldEvents {
    channel: broadcast::Sender<ClusterEvent>,
    /// The bytes of the last events, the latest at the end; as many of them are in the channel as that says.
    sizes: Mutex<VecDeque<usize>>,
}

impl Default for ToldEvents {
    fn default() -> ToldEvents {
        ToldEvents { channel: broadcast::channel(EVENTS_MAX).0, sizes: Mutex::default() }
    }
}

impl ToldEvents {
    /// Events from now on.
    pub fn subscribe(&self) -> broadcast::Receiver<ClusterEvent> {
        self.channel.subscribe()
    }

    /// Tells subscribers of an event, or that they miss one. Without subscribers nobody does.
    pub fn send(&self, event: ClusterEvent) {
        let mut sizes = self.sizes.lock();
        let gone = sizes.len().saturating_sub(self.channel.len());
        sizes.drain(..gone);
        let (mut event, mut size) = (event, 0);
        if let ClusterEvent::Schema(change) = &event {
            size = bytes_of(change);
            if sizes.iter().sum::<usize>() + size > BYTES_MAX {
                (event, size) = (ClusterEvent::Missed, 0);
            }
        }
        if self.channel.send(event).is_ok() {
            sizes.push_back(size);
        }
    }
}

/// The bytes of the names of a change.
fn bytes_of(change: &SchemaChange<'_>) -> usize {
    let of_target = match &change.target {
        SchemaTarget::Keyspace => 0,
        SchemaTarget::Table(name) | SchemaTarget::Type(name) => name.len(),
        SchemaTarget::Function(name, types) | SchemaTarget::Aggregate(name, types) => {
            let types = types.iter().map(|ty| ty.len() + size_of_val(ty));
            name.len() + types.sum::<usize>()
        }
    };
    change.keyspace.len() + of_target
}

#[cfg(test)]
mod tests {
    use helenus_wire::native::SchemaVerb;

    use super::*;

    fn change(length: usize) -> ClusterEvent {
        let target = SchemaTarget::Type("x".repeat(length).into());
        ClusterEvent::Schema(SchemaChange { verb: SchemaVerb::Created, keyspace: "k".into(), target })
    }

    #[test]
    fn events_that_nobody_takes_are_limited_in_bytes_and_told_as_missed() {
        let events = ToldEvents::default();
        events.send(change(60_000));
        let (mut first, mut second) = (events.subscribe(), events.subscribe());
        for _ in 0..3 {
            (0..EVENTS_MAX).for_each(|_| events.send(change(60_000)));
            for subscriber in [&mut first, &mut second] {
                let mut taken = Vec::new();
                while let Ok(event) = subscriber.try_recv() {
                    taken.push(event);
                }
                let long = taken.iter().filter(|event| matches!(event, ClusterEvent::Schema(_))).count();
                assert_eq!(long, BYTES_MAX / 60_001, "as many as there is room for");
                assert_eq!(taken.len(), EVENTS_MAX);
                assert_eq!(taken.last(), Some(&ClusterEvent::Missed));
            }
        }
        // Short ones are lost by their number alone.
        (0..EVENTS_MAX).for_each(|_| events.send(change(100)));
        assert_eq!(first.try_recv(), Ok(change(100)));
    }
}
