//! Where a connection leaves the events of its node: for a task that reads them in its own time. Those for which there is no room are lost,
//! and the reader learns that some were.

use std::sync::Arc;

use tokio::sync::{Notify, mpsc};

use crate::OwnedAnswer;

/// An event's body, to be decoded by who gets it.
pub(crate) type EventBody = OwnedAnswer;

/// The connection's side.
pub(crate) struct EventSender {
    bodies: mpsc::Sender<EventBody>,
    missed: Arc<Notify>,
}

/// The reader's side.
pub(crate) struct EventReceiver {
    bodies: mpsc::Receiver<EventBody>,
    missed: Arc<Notify>,
}

/// Both sides; `most`: the number of events that wait for the reader.
pub(crate) fn events(most: usize) -> (EventSender, EventReceiver) {
    let (sender, receiver) = mpsc::channel(most);
    let missed = Arc::new(Notify::new());
    (EventSender { bodies: sender, missed: Arc::clone(&missed) }, EventReceiver { bodies: receiver, missed })
}

impl EventSender {
    /// Leaves an event, unless there is no room.
    pub fn send(&self, body: EventBody) {
        if self.bodies.try_send(body).is_err() {
            self.miss();
        }
    }

    /// An event is lost.
    pub fn miss(&self) {
        self.missed.notify_one();
    }
}

/// What a reader has received.
pub(crate) enum Received {
    Events(Vec<EventBody>),
    /// Events were lost, since the last time that this was said.
    Missed,
    /// The connection has ended, and all its events were received.
    Ended,
}

impl EventReceiver {
    /// Waits for events. Nothing is lost if the future is dropped.
    pub async fn receive(&mut self, most: usize) -> Received {
        let mut bodies = Vec::new();
        tokio::select! {
            biased;
            () = self.missed.notified() => Received::Missed,
            count = self.bodies.recv_many(&mut bodies, most) => match count {
                0 => Received::Ended,
                _ => Received::Events(bodies),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use helenus_wire::native::{Flags, Opcode, Version};

    use super::*;

    fn event() -> EventBody {
        OwnedAnswer {
            version: Version::V4,
            flags: Flags(0),
            opcode: Opcode::Event,
            body: Vec::new(),
            room: None,
        }
    }

    #[tokio::test]
    async fn events_without_room_are_told_as_missed_once() {
        for too_many in [0, 1, 7] {
            let (sender, mut receiver) = events(3);
            (0..3 + too_many).for_each(|_| sender.send(event()));
            if too_many > 0 {
                assert!(matches!(receiver.receive(10).await, Received::Missed));
            }
            assert!(matches!(receiver.receive(10).await, Received::Events(bodies) if bodies.len() == 3));
            sender.miss();
            assert!(matches!(receiver.receive(10).await, Received::Missed), "without any event behind it");
            drop(sender);
            assert!(matches!(receiver.receive(10).await, Received::Ended));
        }
    }
}
