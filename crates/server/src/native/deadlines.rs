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

/// What did not arrive in time.
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
    /// Until STARTUP is answered with READY or, with logins, until the login has succeeded.
    handshake: Option<Timer>,
    /// Until the incoming frame must be complete.
    frame: Option<Timer>,
    /// Until the client must have sent anything. The next `wait` sets the moment from which it counts.
    idle: Option<Timer>,
    idle_max: Option<Duration>,
    was_heard: bool,
}

impl Deadlines {
    /// The timers of a connection that has just been accepted.
    pub fn new(handshake: Duration, idle_max: Option<Duration>) -> Deadlines {
        let handshake = Some(Box::pin(tokio::time::sleep(handshake)));
        Deadlines { handshake, frame: None, idle: None, idle_max, was_heard: true }
    }

    /// Records that requests are accepted.
    pub fn began(&mut self) {
        self.handshake = None;
    }

    /// Whether the time for STARTUP is over. True only once.
    pub fn is_handshake_late(&mut self, context: &mut Context<'_>) -> bool {
        let late = self.handshake.as_mut().is_some_and(|timer| timer.as_mut().poll(context).is_ready());
        if late {
            self.handshake = None;
        }
        late
    }

    /// Requires the incoming frame to be complete within this time, which replaces any earlier limit.
    pub fn expect_frame(&mut self, within: Duration) {
        self.frame = Some(Box::pin(tokio::time::sleep(within)));
    }

    /// Drops the frame's timer: no frame is arriving, or the server itself keeps it waiting.
    pub fn forget_frame(&mut self) {
        self.frame = None;
    }

    /// Whether the time of the incoming frame is over.
    pub fn is_frame_late(&mut self, context: &mut Context<'_>) -> bool {
        self.frame.as_mut().is_some_and(|timer| timer.as_mut().poll(context).is_ready())
    }

    /// Records that bytes arrived or answers were sent.
    pub fn heard(&mut self) {
        self.was_heard = true;
    }

    /// Called when the socket has no input; returns what is late. `frame_within`: the time for the rest of a frame, if
    /// a part of one has arrived. `is_busy`: the server is working on requests of this client.
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
