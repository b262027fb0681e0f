//! The time limits of a client: to send its first message, to finish a frame, and to send anything at all.
//!
//! A timer starts when the server begins to wait and is dropped when the bytes arrive. A connection whose requests arrive
//! whole has no timer except that of `native_transport_idle_timeout`, if set. The timers run only while the socket is being
//! read, because a client is not to blame for input that the server itself does not take.

use std::future::Future;
use std::pin::Pin;
use std::task::Context;
use std::time::Duration;

use tokio::time::Sleep;

/// What did not come in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Late {
    /// The rest of a frame.
    Frame,
    /// Anything.
    Anything,
}

type Timer = Pin<Box<Sleep>>;

/// The timers of one connection.
pub(super) struct Deadlines {
    /// Until STARTUP was answered with READY.
    handshake: Option<Timer>,
    /// Of the frame under way.
    frame: Option<Timer>,
    /// Of silence; the moment from which it counts is set by the next wait.
    idle: Option<Timer>,
    idle_max: Option<Duration>,
    was_heard: bool,
}

impl Deadlines {
    /// Of a connection that has just been accepted.
    pub fn new(handshake: Duration, idle_max: Option<Duration>) -> Deadlines {
        let handshake = Some(Box::pin(tokio::time::sleep(handshake)));
        Deadlines { handshake, frame: None, idle: None, idle_max, was_heard: true }
    }

    /// The client has begun.
    pub fn began(&mut self) {
        self.handshake = None;
    }

    /// Whether the client has not begun and should have.
    pub fn is_handshake_late(&mut self, context: &mut Context<'_>) -> bool {
        let late = self.handshake.as_mut().is_some_and(|timer| timer.as_mut().poll(context).is_ready());
        if late {
            self.handshake = None;
        }
        late
    }

    /// The frame under way must have come within this time, whatever was said of it before.
    pub fn expect_frame(&mut self, within: Duration) {
        self.frame = Some(Box::pin(tokio::time::sleep(within)));
    }

    /// No frame is under way, or it is the server that keeps it waiting.
    pub fn forget_frame(&mut self) {
        self.frame = None;
    }

    /// Whether the frame under way should have come.
    pub fn is_frame_late(&mut self, context: &mut Context<'_>) -> bool {
        self.frame.as_mut().is_some_and(|timer| timer.as_mut().poll(context).is_ready())
    }

    /// Bytes came, or answers left.
    pub fn heard(&mut self) {
        self.was_heard = true;
    }

    /// The socket has nothing to be read. `frame_within`: a frame has come in part, and how long the rest may take.
    /// `is_busy`: the server has requests of the client in hand.
    pub fn wait(
        &mut self,
        context: &mut Context<'_>,
        frame_within: Option<Duration>,
        is_busy: bool,
    ) -> Option<Late> {
        match frame_within {
            Some(within) if self.frame.is_none() => self.expect_frame(within),
            Some(_) => {}
            None => self.frame = None,
        }
        if self.is_frame_late(context) {
            return Some(Late::Frame);
        }
        let idle_max = self.idle_max?;
        if is_busy {
            self.was_heard = true;
        }
        if std::mem::take(&mut self.was_heard) {
            let due = tokio::time::Instant::now() + idle_max;
            match &mut self.idle {
                Some(timer) => timer.as_mut().reset(due),
                idle => *idle = Some(Box::pin(tokio::time::sleep_until(due))),
            }
        }
        let late = self.idle.as_mut()?.as_mut().poll(context).is_ready();
        (late && !is_busy).then_some(Late::Anything)
    }
}
