//! Makes all connections wait between two requests, and hands them over to another server of the same process, the gateway.
//!
//! ```text
//! Serve -- halt --> Wait -- hand_over --> HandOver
//!   ^                | ^                     |
//!   +---- go_on -----+ +------ take_back ----+
//! ```
//! A connection looks at the order at the beginning of each round of its poll. While the order is not `Serve`, it begins no request and
//! reads nothing; it still receives the answers of requests in flight and sends them. Once it has none in flight it is at rest. So when all are at
//! rest, no request is under way anywhere, and every answer is sent or on its way to the client.
//!
//! A connection in the clear is then handed over as it is: its socket, with the input that nobody has served. A session of TLS ends after
//! its answers, because its keys are bound to this process's state of it; so does a connection that has logged in, because the other server
//! checks logins by itself. Their clients connect anew, to the same port.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use helenus_wire::native::HandedOver;
use parking_lot::{Condvar, Mutex};

use super::accept::{ListenOrder, Listeners};
use super::event_loops::NativeServer;
use super::mailbox::Mailbox;
use crate::ServerError;
use crate::tls::ServerStream;

/// The longest pause between two looks at the connections.
const LOOK: Duration = Duration::from_millis(5);

/// What connections do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// They serve requests.
    Serve,
    /// They begin no request.
    Wait,
    /// They leave this server.
    HandOver,
}

/// A step with a number of its own, by which the rest of a connection during this wait is told from its rest during an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Order(u64);

impl Order {
    /// What is to be done.
    #[inline]
    pub fn step(self) -> Step {
        match self.0 & STEP {
            0 => Step::Serve,
            1 => Step::Wait,
            _ => Step::HandOver,
        }
    }

    fn next(self, step: Step) -> Order {
        Order((self.0 & !STEP) + STEP + 1 + step as u64)
    }
}

/// The bits of a step.
const STEP: u64 = 3;

/// Takes a connection that is handed over. It is called on an event loop and does not block.
pub type Taker = Box<dyn Fn(std::net::TcpStream, HandedOver) + Send + Sync>;

/// The order for all connections, and who waits for their rest.
#[derive(Default)]
pub(super) struct HandOver {
    order: AtomicU64,
    taker: Mutex<Option<Taker>>,
    waiting: Mutex<()>,
    rested: Condvar,
}

impl HandOver {
    /// The order in force.
    #[inline]
    pub fn order(&self) -> Order {
        Order(self.order.load(Ordering::Acquire))
    }

    /// Gives another order.
    fn set(&self, step: Step) -> Order {
        let next = self.order().next(step);
        self.order.store(next.0, Ordering::Release);
        next
    }

    /// Notes that a connection has no request in flight since this order.
    pub fn note_rest(&self, mailbox: &Mailbox, order: Order) {
        if mailbox.at_rest_since.swap(order.0, Ordering::AcqRel) != order.0 {
            // The lock orders this after the look of who waits, so that no wake-up is lost.
            drop(self.waiting.lock());
            self.rested.notify_all();
        }
    }

    /// Gives a connection away. Without a taker it ends.
    pub fn give(&self, stream: ServerStream, state: HandedOver) {
        let socket = stream.into_clear().and_then(|socket| socket.into_std().ok());
        if let (Some(socket), Some(taker)) = (socket, &*self.taker.lock()) {
            taker(socket, state);
        }
    }
}

/// Connections have not come to rest in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{connections} connections have requests in flight")]
pub struct NotAtRest {
    /// Their number.
    pub connections: usize,
}

impl NativeServer {
    /// Makes all connections wait: requests that were begun are answered, no other is begun, and what clients send meanwhile stays unread.
    /// Clients that connect wait too. Blocks until no request is in flight.
    ///
    /// # Errors
    /// Requests are in flight after this time; then clients are served as before.
    pub fn halt(&self, within: Duration) -> Result<(), NotAtRest> {
        let shared = self.shared();
        let clock = &shared.host.clock;
        let until_ns =
            clock.monotonic_ns().saturating_add(u64::try_from(within.as_nanos()).unwrap_or(u64::MAX));
        let order = shared.hand_over.set(Step::Wait);
        // A forgotten client with an old password would keep everybody waiting.
        shared.login_runner.suspend_delays();
        self.wake_all();
        let mut waiting = shared.hand_over.waiting.lock();
        loop {
            // A connection that is opened meanwhile sees the order before it serves anything.
            let is_busy = |mailbox: &&Arc<Mailbox>| mailbox.at_rest_since.load(Ordering::Acquire) != order.0;
            let connections = shared.mailboxes().iter().filter(is_busy).count();
            if connections == 0 {
                return Ok(());
            }
            let left = Duration::from_nanos(until_ns.saturating_sub(clock.monotonic_ns()));
            if left.is_zero() {
                drop(waiting);
                self.go_on();
                return Err(NotAtRest { connections });
            }
            // A connection that ends tells nobody.
            shared.hand_over.rested.wait_for(&mut waiting, left.min(LOOK));
        }
    }

    /// Ends the wait: clients are served again.
    pub fn go_on(&self) {
        let _order = self.shared().hand_over.set(Step::Serve);
        self.shared().login_runner.resume_delays();
        self.wake_all();
    }

    /// Stops listening, and gives the sockets away. They stay open, so that no client is refused; `None` if the server does not listen.
    pub fn give_listeners(&self) -> Option<Listeners> {
        self.shared().pause(true);
        let (to, listeners) = sync_channel(1);
        self.listening().lock().try_send(ListenOrder::Give(to)).ok()?;
        listeners.recv().ok().flatten()
    }

    /// Hands all connections over, and those that were accepted and are not served yet. `halt` was called before.
    pub fn hand_over(&self, taker: Taker) {
        let shared = self.shared();
        *shared.hand_over.taker.lock() = Some(taker);
        let _order = shared.hand_over.set(Step::HandOver);
        self.wake_all();
    }

    /// Listens again on sockets that were given away. Clients that connect wait until `go_on`.
    ///
    /// # Errors
    /// The server has been stopped.
    pub fn take_back(&self, listeners: Listeners) -> Result<(), ServerError> {
        let shared = self.shared();
        *shared.hand_over.taker.lock() = None;
        let _order = shared.hand_over.set(Step::Wait);
        shared.pause(false);
        let (done, opened) = sync_channel(1);
        let sent = self.listening().lock().try_send(ListenOrder::Listen(Some(listeners), done)).is_ok();
        if sent && opened.recv().unwrap_or(false) && self.is_running() {
            return Ok(());
        }
        shared.pause(true);
        let source = std::io::Error::other("the server has been told to stop; start it again");
        Err(ServerError::Bind { address: self.address(), source })
    }

    fn wake_all(&self) {
        for mailbox in self.shared().mailboxes() {
            mailbox.wake();
        }
    }
}
