//! Accepts connections, checks the limits on them, and hands them to the event loops that serve them.
//!
//! Nothing here waits for an event loop or a client, because the same task runs the server's periodic work.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Waker;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};

use super::event_loops::{EventLoop, Shared, bind};
use super::in_flight::ConnectionShare;
use super::limits::TICK;
use super::mailbox::Mailbox;
use super::refused::Refused;
use crate::ServerError;
use crate::connection_budget::{Admitted, Newcomers};
use crate::tls::{Candidate, Handshakes, Secured};

/// The pause after a failure to accept, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// An accepted connection.
pub(super) struct Accepted {
    pub stream: std::net::TcpStream,
    /// The session, if it is encrypted.
    pub secured: Option<Secured>,
    pub entrant: Entrant,
}

/// What an accepted connection has besides its socket: its client, and its place within the limits.
pub(super) struct Entrant {
    pub client: SocketAddr,
    pub share: ConnectionShare,
    pub mailbox: Arc<Mailbox>,
    pub admitted: Admitted,
}

/// An accepted connection that waits for its handshake.
struct WithoutSession {
    shared: Arc<Shared>,
    ways: Arc<Vec<LoopChannel>>,
    entrant: Entrant,
    _counted: HandshakeCount,
}

/// Counts a handshake among those in progress, until dropped.
struct HandshakeCount(Arc<Shared>);

impl HandshakeCount {
    fn of(shared: &Arc<Shared>) -> HandshakeCount {
        shared.handshakes_count.fetch_add(1, Ordering::Relaxed);
        HandshakeCount(Arc::clone(shared))
    }
}

impl Drop for HandshakeCount {
    fn drop(&mut self) {
        self.0.handshakes_count.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Candidate for WithoutSession {
    fn client(&self) -> SocketAddr {
        self.entrant.client
    }

    fn is_given_up(&self, waker: &Waker) -> bool {
        self.entrant.mailbox.register(waker);
        self.entrant.mailbox.displaced.load(Ordering::Acquire)
    }

    fn take(self: Box<Self>, stream: std::net::TcpStream, secured: Option<Secured>) {
        let WithoutSession { ways, entrant, .. } = *self;
        place(&ways, Accepted { stream, secured, entrant });
    }

    fn refused(&self, reason: &str) {
        self.shared.counts.handshakes_failed.fetch_add(1, Ordering::Relaxed);
        if let Some(slow) = &self.shared.slow {
            slow.not_secured(self.entrant.client, reason);
        }
    }
}

pub(super) type LoopChannel = (mpsc::Sender<Accepted>, Arc<EventLoop>);

/// The addresses of these sockets.
#[derive(Clone, Copy)]
pub(super) struct ListenAddresses {
    pub first: SocketAddr,
    pub encrypted: Option<SocketAddr>,
    pub shard_aware: Option<SocketAddr>,
}

/// The sockets that are listened on.
#[derive(Debug)]
pub struct Listeners {
    /// Listens for all connections, or for those in the clear.
    pub first: std::net::TcpListener,
    /// Listens for connections by TLS alone, while the first is in the clear.
    pub encrypted: Option<std::net::TcpListener>,
    /// Listens for the same connections as the first.
    pub shard_aware: Option<std::net::TcpListener>,
}

impl Listeners {
    /// Opens the sockets.
    pub(super) fn bind(addresses: ListenAddresses) -> Result<Listeners, ServerError> {
        let open = |address| bind(address).map_err(|source| ServerError::Bind { address, source });
        Ok(Listeners {
            first: open(addresses.first)?,
            encrypted: addresses.encrypted.map(open).transpose()?,
            shard_aware: addresses.shard_aware.map(open).transpose()?,
        })
    }
}

/// The same sockets on the accepting task's runtime.
struct Listening {
    first: TcpListener,
    encrypted: Option<TcpListener>,
    shard_aware: Option<TcpListener>,
}

impl Listening {
    fn of(listeners: Listeners) -> Option<Listening> {
        let also =
            |listener: Option<std::net::TcpListener>| listener.map(TcpListener::from_std).transpose().ok();
        let (encrypted, shard_aware) = (also(listeners.encrypted)?, also(listeners.shard_aware)?);
        Some(Listening { first: TcpListener::from_std(listeners.first).ok()?, encrypted, shard_aware })
    }

    fn into_std(self) -> Option<Listeners> {
        let also = |listener: Option<TcpListener>| listener.map(TcpListener::into_std).transpose().ok();
        let (encrypted, shard_aware) = (also(self.encrypted)?, also(self.shard_aware)?);
        Some(Listeners { first: self.first.into_std().ok()?, encrypted, shard_aware })
    }
}

/// An order to the accepting task.
pub(super) enum ListenOrder {
    /// Listen on these sockets from now on, or on none. The sender gets whether there is a listener now.
    Listen(Option<Listeners>, std::sync::mpsc::SyncSender<bool>),
    /// Give the sockets away, and listen on none. They stay open, so that no client is refused.
    Give(std::sync::mpsc::SyncSender<Option<Listeners>>),
}

/// Accepts a connection. The last value is whether it may use TLS.
async fn accept(listening: Option<&Listening>) -> std::io::Result<(TcpStream, SocketAddr, bool)> {
    let Some(listening) = listening else {
        return std::future::pending().await;
    };
    let may_be_tls = listening.encrypted.is_none();
    let (encrypted, shard_aware) = (&listening.encrypted, &listening.shard_aware);
    tokio::select! {
        accepted = listening.first.accept() => accepted.map(|(stream, client)| (stream, client, may_be_tls)),
        accepted = accept_also(encrypted) => accepted.map(|(stream, client)| (stream, client, true)),
        accepted = accept_also(shard_aware) => accepted.map(|(stream, client)| (stream, client, may_be_tls)),
    }
}

/// Accepts a connection of a listener that there may be.
async fn accept_also(listener: &Option<TcpListener>) -> std::io::Result<(TcpStream, SocketAddr)> {
    match listener {
        Some(listener) => listener.accept().await,
        None => std::future::pending().await,
    }
}

/// The accepting task: its listeners' counters, its channels to the event loops and its limits.
pub(super) struct Acceptor {
    pub shared: Arc<Shared>,
    pub ways: Arc<Vec<LoopChannel>>,
    /// The handshakes of TLS; `None`: connections are in the clear.
    pub handshakes: Option<Handshakes>,
    pub stopped: watch::Receiver<bool>,
    pub orders: mpsc::Receiver<ListenOrder>,
    pub refused: Refused,
    /// The connections before STARTUP, if this server has a limit of its own; those of all servers are in the budget.
    pub newcomers: Option<Newcomers>,
}

impl Acceptor {
    pub async fn run(mut self, listeners: Listeners) {
        // Closed by the drop, if the server starts paused.
        let listeners = Some(listeners).filter(|_| !self.shared.limits.starts_paused);
        let mut listening = listeners.and_then(Listening::of);
        let mut tick = tokio::time::interval(TICK);
        let mut paused_until = None;
        loop {
            let pause = async move {
                match paused_until {
                    Some(until) => tokio::time::sleep_until(until).await,
                    None => std::future::pending().await,
                }
            };
            let accepted = tokio::select! {
                accepted = accept(listening.as_ref()), if paused_until.is_none() => accepted,
                Some(order) = self.orders.recv() => {
                    listening = carry_out(order, listening);
                    continue;
                }
                () = pause => {
                    paused_until = None;
                    continue;
                }
                _ = tick.tick() => {
                    self.shared.tick();
                    continue;
                }
                _ = self.stopped.changed() => break,
            };
            match accepted {
                Ok((stream, client, may_be_tls)) => self.take(stream, client, may_be_tls),
                Err(error) => {
                    self.note_failure(&error);
                    // The clients wait in the backlog. Trying again at once would fail again and use a whole core.
                    paused_until = Some(tokio::time::Instant::now() + ACCEPT_PAUSE);
                }
            }
        }
        drop(listening);
        let Acceptor { shared, ways, .. } = self;
        tick_until_served(&shared, &ways, tick).await;
    }

    fn take(&mut self, stream: TcpStream, client: SocketAddr, may_be_tls: bool) {
        let admitted = match self.admit(client) {
            Ok(admitted) => admitted,
            Err(reason) => return self.refuse(stream, client, reason),
        };
        let Ok(stream) = prepare(&self.shared, stream) else {
            return;
        };
        let (share, admitted) = admitted;
        let mailbox = Arc::new(Mailbox::default());
        let waiting = Arc::downgrade(&mailbox);
        let entrant = Entrant { client, share, mailbox, admitted };
        match self.handshakes.as_ref().filter(|_| may_be_tls) {
            None => {
                if !place(&self.ways, Accepted { stream, secured: None, entrant }) {
                    return;
                }
            }
            Some(handshakes) => {
                let (shared, ways) = (Arc::clone(&self.shared), Arc::clone(&self.ways));
                let counted = HandshakeCount::of(&shared);
                handshakes
                    .begin(stream, Box::new(WithoutSession { shared, ways, entrant, _counted: counted }));
            }
        }
        self.shared.counts.accepted.fetch_add(1, Ordering::Relaxed);
        if let Some(newcomers) = &mut self.newcomers {
            newcomers.add(waiting.clone()).iter().for_each(|newcomer| newcomer.displace());
        }
        self.shared.limits.budget.add_newcomer(waiting);
    }

    /// Checks the limits on connections: first those of this protocol, then those of the process.
    fn admit(&self, client: SocketAddr) -> Result<(ConnectionShare, Admitted), String> {
        let shared = &self.shared;
        let limits = &shared.limits;
        if limits.own_clients.as_ref().is_some_and(|own| !own.admit(client)) {
            return Err("this server is inside another program, and for it alone".to_owned());
        }
        let address = client.ip();
        let open = (shared.connections_count() + shared.handshakes_count.load(Ordering::Relaxed)) as u64;
        if let Some(max) = limits.connections_max.filter(|max| open >= *max) {
            return Err(format!("there are {max} connections, as many as there may be; close some"));
        }
        let Some(share) = shared.in_flight.enter(address, limits.connections_max_per_address) else {
            return Err("this address has as many connections as it may have; close some".to_owned());
        };
        let admitted = limits.budget.enter(address).map_err(|no_room| no_room.to_string())?;
        Ok((share, admitted))
    }

    #[cold]
    fn refuse(&mut self, stream: TcpStream, client: SocketAddr, reason: String) {
        self.shared.counts.refused.fetch_add(1, Ordering::Relaxed);
        if let Some(slow) = &self.shared.slow {
            slow.refused(client, &reason);
        }
        self.refused.tell(stream, reason);
    }

    #[cold]
    fn note_failure(&self, error: &std::io::Error) {
        if let Some(slow) = &self.shared.slow {
            slow.not_accepted("CQL", error);
        }
    }
}

/// Runs the periodic work of a server that stops until its event loops have ended: answers that they hold still time out.
async fn tick_until_served(shared: &Shared, ways: &[LoopChannel], mut tick: tokio::time::Interval) {
    let served = async {
        for (way, _) in ways {
            way.closed().await;
        }
    };
    let mut served = std::pin::pin!(served);
    loop {
        tokio::select! {
            () = &mut served => return,
            _ = tick.tick() => shared.tick(),
        }
    }
}

/// Carries out an order; returns what is listened on from now on.
fn carry_out(order: ListenOrder, listening: Option<Listening>) -> Option<Listening> {
    match order {
        ListenOrder::Listen(listeners, done) => {
            let listening = listeners.and_then(Listening::of);
            let _may_not_wait = done.send(listening.is_some());
            listening
        }
        ListenOrder::Give(to) => {
            let _may_not_wait = to.send(listening.and_then(Listening::into_std));
            None
        }
    }
}

/// Gives a connection to the event loop that has the fewest. False if it has no room.
fn place(ways: &[LoopChannel], arrival: Accepted) -> bool {
    let fewest = ways.iter().min_by_key(|(_, event_loop)| event_loop.connections.load(Ordering::Relaxed));
    let Some((way, event_loop)) = fewest else {
        return false;
    };
    event_loop.connections.fetch_add(1, Ordering::Relaxed);
    let is_placed = way.try_send(arrival).is_ok();
    if !is_placed {
        // The event loop's queue is full, or its thread has ended.
        event_loop.connections.fetch_sub(1, Ordering::Relaxed);
    }
    is_placed
}

fn prepare(shared: &Shared, stream: TcpStream) -> std::io::Result<std::net::TcpStream> {
    stream.set_nodelay(true)?;
    if shared.limits.keeps_alive {
        socket2::SockRef::from(&stream).set_keepalive(true)?;
    }
    stream.into_std()
}
