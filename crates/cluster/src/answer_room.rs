//! The memory for long answers: a node says how long an answer is before it sends it, and room is asked for before the bytes are taken. An
//! answer without room is dropped as it arrives, and its request fails.
//!
//! The room belongs to the bytes, not to their way through the connection: whoever keeps them keeps it ([`crate::Answer::room`],
//! [`crate::OwnedAnswer`]), so that answers which wait for a client count until they are written.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Answers up to this length are taken without asking: a segment's.
pub(crate) const ROOM_FROM: u64 = 128 << 10;

/// The room that all connections of a cluster share, of whatever role.
#[derive(Debug)]
pub struct AnswerRoom {
    used: AtomicU64,
    max: u64,
}

/// The room of one answer, until it is dropped.
#[derive(Debug)]
pub struct Taken {
    room: Arc<AnswerRoom>,
    bytes: u64,
}

impl AnswerRoom {
    /// Room for answers of this many bytes at a time.
    pub fn new(max: u64) -> Arc<AnswerRoom> {
        Arc::new(AnswerRoom { used: AtomicU64::new(0), max })
    }

    /// The most bytes.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// The bytes that are taken now.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Takes room for an answer; `None`: there is not so much.
    pub(crate) fn try_take(self: &Arc<AnswerRoom>, bytes: u64) -> Option<Taken> {
        let mut taken = Taken { room: Arc::clone(self), bytes: 0 };
        taken.try_grow(bytes).then_some(taken)
    }
}

impl Taken {
    /// The bytes that are taken.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The most bytes of the room that they are a part of.
    pub fn room_max(&self) -> u64 {
        self.room.max
    }

    /// Takes more, up to `bytes` in all. False: there is not so much, and nothing has changed.
    pub(crate) fn try_grow(&mut self, bytes: u64) -> bool {
        let more = bytes.saturating_sub(self.bytes);
        let fits = |used: u64| used.checked_add(more).filter(|sum| *sum <= self.room.max);
        let has_room = self.room.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok();
        if has_room {
            self.bytes += more;
        }
        has_room
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.room.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
