//! Accepts connections, checks the limits on them, and hands them to the event loops that serve them.
//!
//! Nothing here waits for an event loop or a client, because the same task runs the server's periodic work.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};

use super::event_loops::{EventLoop, Shared};
use super::in_flight::ConnectionShare;
use super::limits::TICK;
use super::mailbox::Mailbox;
use super::refused::Refused;
use crate::connection_budget::Admitted;

/// The pause after a failure to accept, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// At most one in this many of the allowed connections may be without STARTUP; the rest is for clients that have begun.
const BEFORE_STARTUP_PART: u64 = 2;
/// When too many connections are without STARTUP, one in this many of them is closed at once.
const EVICTED_PART: usize = 16;

/// An accepted connection.
pub(super) struct Accepted {
    pub stream: std::net::TcpStream,
    pub client: SocketAddr,
    pub share: ConnectionShare,
    pub mailbox: Arc<Mailbox>,
    pub admitted: Admitted,
}

pub(super) type LoopChannel = (mpsc::Sender<Accepted>, Arc<EventLoop>);

/// An order to the accepting task: listen on this socket from now on, or on none.
pub(super) struct ListenOrder {
    pub listener: Option<std::net::TcpListener>,
    /// Gets whether there is a listener now.
    pub done: std::sync::mpsc::SyncSender<bool>,
}

async fn accept(listener: Option<&TcpListener>) -> std::io::Result<(TcpStream, SocketAddr)> {
    match listener {
        Some(listener) => listener.accept().await,
        None => std::future::pending().await,
    }
}

/// The accepting task: its listeners' counters, its channels to the event loops and its limits.
pub(super) struct Acceptor {
    pub shared: Arc<Shared>,
    pub ways: Vec<LoopChannel>,
    pub stopped: watch::Receiver<bool>,
    pub orders: mpsc::Receiver<ListenOrder>,
    pub refused: Refused,
    pub not_begun: BeforeStartup,
}

impl Acceptor {
    pub async fn run(mut self, listener: std::net::TcpListener) {
        let Ok(listener) = TcpListener::from_std(listener) else { return };
        let mut listener = Some(listener);
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
                accepted = accept(listener.as_ref()), if paused_until.is_none() => accepted,
                Some(order) = self.orders.recv() => {
                    listener = order.listener.and_then(|listener| TcpListener::from_std(listener).ok());
                    let _may_not_wait = order.done.send(listener.is_some());
                    continue;
                }
                () = pause => {
                    paused_until = None;
                    continue;
                }
                _ = tick.tick() => {
                    self.shared.ticks.fetch_add(1, Ordering::Relaxed);
                    // Connections that hold answers check whether these have waited too long.
                    self.shared.written.wake_all();
                    self.shared.login_pool.send_due();
                    continue;
                }
                _ = self.stopped.changed() => return,
            };
            match accepted {
                Ok((stream, client)) => self.take(stream, client),
                Err(error) => {
                    self.note_failure(&error);
                    // The clients wait in the backlog. Trying again at once would fail again and use a whole core.
                    paused_until = Some(tokio::time::Instant::now() + ACCEPT_PAUSE);
                }
            }
        }
    }

    fn take(&mut self, stream: TcpStream, client: SocketAddr) {
        let admitted = match self.admit(client) {
            Ok(admitted) => admitted,
            Err(reason) => return self.refuse(stream, client, reason),
        };
        let Ok(arrival) = arrive(&self.shared, stream, client, admitted) else { return };
        let mailbox = Arc::downgrade(&arrival.mailbox);
        let fewest =
            self.ways.iter().min_by_key(|(_, event_loop)| event_loop.connections.load(Ordering::Relaxed));
        let Some((way, event_loop)) = fewest else { return };
        event_loop.connections.fetch_add(1, Ordering::Relaxed);
        if way.try_send(arrival).is_err() {
            // The event loop's queue is full, or its thread has ended.
            event_loop.connections.fetch_sub(1, Ordering::Relaxed);
            return;
        }
        self.shared.counts.accepted.fetch_add(1, Ordering::Relaxed);
        self.not_begun.add(mailbox);
    }

    /// Checks the limits on connections: first those of this protocol, then those of the process.
    fn admit(&self, client: SocketAddr) -> Result<(ConnectionShare, Admitted), String> {
        let shared = &self.shared;
        let limits = &shared.limits;
        let address: IpAddr = client.ip().to_canonical();
        let open = shared.connections_count() as u64;
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

fn arrive(
    shared: &Shared,
    stream: TcpStream,
    client: SocketAddr,
    (share, admitted): (ConnectionShare, Admitted),
) -> std::io::Result<Accepted> {
    stream.set_nodelay(true)?;
    if shared.limits.keeps_alive {
        socket2::SockRef::from(&stream).set_keepalive(true)?;
    }
    let mailbox = Arc::new(Mailbox::default());
    Ok(Accepted { stream: stream.into_std()?, client, share, mailbox, admitted })
}

/// The connections whose STARTUP has not arrived, the oldest first. When there are too many, the oldest are closed, so
/// that clients that connect and send nothing do not keep others out.
pub(super) struct BeforeStartup {
    connections: VecDeque<Weak<Mailbox>>,
    max: usize,
}

impl BeforeStartup {
    /// A list for a server that allows this many connections.
    pub fn of(connections_max: u64) -> BeforeStartup {
        let max = usize::try_from(connections_max / BEFORE_STARTUP_PART).unwrap_or(usize::MAX).max(1);
        BeforeStartup { connections: VecDeque::new(), max }
    }

    fn add(&mut self, mailbox: Weak<Mailbox>) {
        if self.connections.len() >= self.max {
            let waits = |weak: &Weak<Mailbox>| {
                weak.upgrade().is_some_and(|mailbox| !mailbox.began.load(Ordering::Acquire))
            };
            self.connections.retain(waits);
            // Several are closed at once, so that the list is not scanned for every new connection.
            let surplus = self.connections.len().saturating_sub(self.max - self.max.div_ceil(EVICTED_PART));
            for mailbox in self.connections.drain(..surplus).filter_map(|weak| weak.upgrade()) {
                mailbox.displaced.store(true, Ordering::Release);
                mailbox.wake();
            }
        }
        self.connections.push_back(mailbox);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_that_have_not_begun_make_room_and_those_that_have_do_not() {
        let mut not_begun = BeforeStartup::of(64);
        let mailboxes: Vec<Arc<Mailbox>> = (0..40).map(|_| Arc::default()).collect();
        for (number, mailbox) in mailboxes.iter().enumerate() {
            mailbox.began.store(number % 4 == 0, Ordering::Release);
            not_begun.add(Arc::downgrade(mailbox));
        }
        let displaced = |mailbox: &&Arc<Mailbox>| mailbox.displaced.load(Ordering::Acquire);
        assert_eq!(mailboxes.iter().filter(displaced).count(), 0, "30 wait, and 32 may");
        let more: Vec<Arc<Mailbox>> = (0..8).map(|_| Arc::default()).collect();
        more.iter().for_each(|mailbox| not_begun.add(Arc::downgrade(mailbox)));
        assert!(displaced(&&mailboxes[1]) && displaced(&&mailboxes[2]), "the oldest");
        assert!(!mailboxes.iter().step_by(4).any(|mailbox| displaced(&mailbox)), "none that has begun");
        assert!(not_begun.connections.len() <= 32);
    }
}
