//! Where a connection leaves the events of its node: for a task that reads them in its own time. Those for which there is no room are lost,
//! and the reader learns that some were.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{Notify, mpsc};

use crate::OwnedAnswer;

/// The bytes of events that wait for the reader. Whoever may change the schema chooses how long their names are.
const BYTES_MAX: usize = 1 << 20;

/// An event's body, to be decoded by who gets it.
pub(crate) type EventBody = OwnedAnswer;

/// The connection's side.
pub(crate) struct EventSender {
    bodies: mpsc::Sender<EventBody>,
    bytes: Arc<AtomicUsize>,
    missed: Arc<Notify>,
}

/// The reader's side.
pub(crate) struct EventReceiver {
    bodies: mpsc::Receiver<EventBody>,
    /// The bytes of the events in the channel.
    bytes: Arc<AtomicUsize>,
    missed: Arc<Notify>,
}

/// Both sides; `most`: the number of events that wait for the reader.
pub(crate) fn events(most: usize) -> (EventSender, EventReceiver) {
    let (sender, receiver) = mpsc::channel(most);
    let (bytes, missed) = (Arc::<AtomicUsize>::default(), Arc::new(Notify::new()));
    (
        EventSender { bodies: sender, bytes: Arc::clone(&bytes), missed: Arc::clone(&missed) },
        EventReceiver { bodies: receiver, bytes, missed },
    )
}

impl EventSender {
    /// Leaves an event, unless there is no room.
    pub fn send(&self, body: EventBody) {
        let bytes = body.body.len();
        // Counted before the reader can take it. Nobody else adds to it.
        let before = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        if before + bytes > BYTES_MAX || self.bodies.try_send(body).is_err() {
            self.bytes.fetch_sub(bytes, Ordering::Relaxed);
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
                _ => {
                    let bytes = bodies.iter().map(|body| body.body.len()).sum();
                    self.bytes.fetch_sub(bytes, Ordering::Relaxed);
                    Received::Events(bodies)
                }
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use helenus_wire::native::{Flags, Opcode, Version};

    use super::*;

    fn event() -> EventBody {
        event_of(0)
    }

    fn event_of(bytes: usize) -> EventBody {
        OwnedAnswer {
            version: Version::V4,
            flags: Flags(0),
            opcode: Opcode::Event,
            body: vec![0; bytes],
            room: None,
        }
    }

    #[tokio::test]
    async fn events_that_wait_are_limited_in_bytes() {
        let (sender, mut receiver) = events(1024);
        for _ in 0..3 {
            (0..1024).for_each(|_| sender.send(event_of(60_000)));
            assert!(matches!(receiver.receive(1024).await, Received::Missed));
            let Received::Events(bodies) = receiver.receive(1024).await else { panic!("there are some") };
            assert_eq!(bodies.len(), BYTES_MAX / 60_000);
        }
        assert_eq!(receiver.bytes.load(Ordering::Relaxed), 0);
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
