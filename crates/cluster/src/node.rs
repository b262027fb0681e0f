//! A node of the cluster, with its connections.
//!
//! A task for each node opens connections that are missing, and tries again after a pause when it cannot. So who needs a node
//! finds a connection at once or sees that there is none.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use helenus_wire::native::{ErrorMessage, Query, QueryParameters, Request};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use uuid::Uuid;

use crate::keyspace_connections::KeyspaceConnections;
use crate::known_keyspace::check_keyspace;
use crate::options::{ClusterOptions, HostPort, Login};
use crate::{Asks, CallError, ClusterError, ConnectError, Connection, Extras};

/// The first and the longest pause between two attempts to connect.
const PAUSE: Duration = Duration::from_millis(250);
const PAUSE_MAX: Duration = Duration::from_secs(10);
/// A connection that ends sooner counts as one that could not be opened: a node may take each and close it.
const LIVED_MIN: Duration = Duration::from_secs(5);

/// A node.
#[derive(Debug)]
pub struct Node {
    /// The address that clients use.
    pub address: SocketAddr,
    /// The address that it names to clients, which may differ from the one by which it is reached from here.
    pub named: SocketAddr,
    /// The address that other nodes use.
    pub peer: SocketAddr,
    /// Its id, which stays when its address changes.
    pub host_id: Uuid,
    /// Its data center.
    pub datacenter: String,
    /// Its rack.
    pub rack: String,
    /// The version of its software, such as `5.0.9`.
    pub release_version: String,
    /// Its tokens; empty if they are no numbers (partitioners other than `Murmur3Partitioner`).
    pub tokens: Vec<i64>,
    pub(crate) pool: Arc<Pool>,
}

impl Node {
    /// A connection, if there is one. Calls take turns among the node's connections.
    pub fn connection(&self) -> Option<Connection> {
        self.pool.connection()
    }

    /// A connection that takes a request now, or else as `connection`.
    pub fn connection_with_room(&self) -> Option<Connection> {
        self.pool.connection_with_room()
    }

    /// Whether no connection takes a request now.
    pub fn is_full(&self) -> bool {
        self.pool.live.load().iter().all(Connection::is_full)
    }

    /// Whether there is a connection.
    pub fn is_connected(&self) -> bool {
        !self.pool.live.load().is_empty()
    }

    /// Why there is no connection, as far as it is known.
    pub fn error(&self) -> Option<String> {
        self.pool.error.lock().clone()
    }

    /// The error by which the node has refused the login of these connections, if there is none for that reason: its role is gone, may not
    /// log in any more, or has another password.
    pub fn login_refusal(&self) -> Option<ErrorMessage> {
        self.pool.refusal.lock().clone()
    }

    /// Checks a login: opens a connection with it, and closes that.
    ///
    /// # Errors
    /// The node refuses the login, asks for none, or cannot be reached.
    pub async fn check_login(&self, login: &Login) -> Result<(), ConnectError> {
        let mut options = ClusterOptions::clone(&self.pool.options);
        (options.login, options.must_log_in) = (Some(login.clone()), true);
        Connection::open(self.address, &self.pool.name, &options, None).await.map(drop)
    }

    /// A connection on which a keyspace is in use, for nodes whose protocol cannot name it in each request (before v5). It is made when
    /// it is first needed, by one of those who need it; what it costs is bounded whatever names clients send (`keyspace_connections`).
    /// Waits for room until this time.
    ///
    /// # Errors
    /// The node cannot be reached; it does not know the keyspace; connections for too many keyspaces are being opened.
    pub async fn connection_in(&self, keyspace: &str, until: Instant) -> Result<Connection, ClusterError> {
        self.pool.connection_in(keyspace, until).await
    }
}

/// The connections of a node.
#[derive(Debug)]
pub(crate) struct Pool {
    address: SocketAddr,
    /// The name that its certificate must be for.
    name: HostPort,
    options: Arc<ClusterOptions>,
    live: ArcSwap<Vec<Connection>>,
    by_keyspace: KeyspaceConnections,
    turn: AtomicUsize,
    error: Mutex<Option<String>>,
    /// The answer to the last login, if that was refused.
    refusal: Mutex<Option<ErrorMessage>>,
    wake: Arc<Notify>,
    /// Called when a connection was opened, or all are lost.
    changed: Arc<Notify>,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl Drop for Pool {
    fn drop(&mut self) {
        if let Some(task) = self.task.get_mut() {
            task.abort();
        }
    }
}

/// The connections of a node as the task has them that opens them.
struct Opened {
    /// Each with the time at which it was opened.
    live: Vec<(Connection, Instant)>,
    /// No connection is opened before.
    not_before: Option<Instant>,
    /// The next pause.
    pause: Duration,
}

impl Default for Opened {
    fn default() -> Opened {
        Opened { live: Vec::new(), not_before: None, pause: PAUSE }
    }
}

impl Opened {
    /// Drops connections that have ended. After one that has lived a while the next is opened at once; after one that has not, there is a
    /// pause, and why it ended is returned.
    fn drop_closed(&mut self) -> Option<String> {
        let now = tokio::time::Instant::now();
        let mut early = None;
        let mut has_lived = false;
        self.live.retain(|(connection, opened)| {
            let Some(reason) = connection.end() else { return true };
            match now.saturating_duration_since(*opened) < LIVED_MIN {
                true => early = Some(format!("a connection ended right after it was opened: {reason}")),
                false => has_lived = true,
            }
            false
        });
        if early.is_some() {
            self.pause();
        } else if has_lived {
            self.try_now();
        }
        early
    }

    /// Waits before the next connection, each time longer.
    fn pause(&mut self) {
        self.not_before = Some(tokio::time::Instant::now() + self.pause);
        self.pause = (self.pause * 2).min(PAUSE_MAX);
    }

    /// Waits no more, and shortly after the next failure.
    fn try_now(&mut self) {
        (self.not_before, self.pause) = (None, PAUSE);
    }
}

impl Pool {
    /// Begins to connect. `changed` is notified when connections come and go.
    pub fn start(
        address: SocketAddr,
        name: HostPort,
        options: &Arc<ClusterOptions>,
        changed: &Arc<Notify>,
    ) -> Arc<Pool> {
        let pool = Arc::new(Pool {
            address,
            name,
            options: Arc::clone(options),
            live: ArcSwap::default(),
            by_keyspace: KeyspaceConnections::default(),
            turn: AtomicUsize::new(0),
            error: Mutex::new(None),
            refusal: Mutex::new(None),
            wake: Arc::new(Notify::new()),
            changed: Arc::clone(changed),
            task: Mutex::new(None),
        });
        let (weak, wake) = (Arc::downgrade(&pool), Arc::clone(&pool.wake));
        let task = tokio::spawn(async move {
            let mut opened = Opened::default();
            loop {
                let Some(pool) = weak.upgrade() else { return };
                let wait = pool.keep(&mut opened).await;
                // Woken by the end of any connection.
                let connections = Vec::clone(&pool.live.load());
                drop(pool);
                let ends = async {
                    match connections.first() {
                        None => std::future::pending().await,
                        Some(_) => any_closed(&connections).await,
                    }
                };
                tokio::select! {
                    () = ends => {}
                    () = wake.notified() => opened.try_now(),
                    () = sleep(wait) => {}
                }
            }
        });
        *pool.task.lock() = Some(task);
        pool
    }

    /// Tries to connect now, not after the pause.
    pub fn nudge(&self) {
        self.wake.notify_one();
    }

    fn connection(&self) -> Option<Connection> {
        let live = self.live.load();
        let turn = match live.len() {
            0 => return None,
            1 => 0,
            count => self.turn.fetch_add(1, Ordering::Relaxed) % count,
        };
        let connection = live.get(turn)?;
        if !connection.is_closed() {
            return Some(connection.clone());
        }
        live.iter().find(|connection| !connection.is_closed()).cloned()
    }

    fn connection_with_room(&self) -> Option<Connection> {
        let live = self.live.load();
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let mut in_turn = live.iter().cycle().skip(turn % live.len().max(1)).take(live.len());
        let with_room = in_turn.find(|connection| !connection.is_closed() && !connection.is_full());
        with_room.cloned().or_else(|| self.connection())
    }

    /// Drops connections that have ended and opens missing ones. Returns when to look again; `None`: all is well.
    async fn keep(&self, opened: &mut Opened) -> Option<Duration> {
        if let Some(reason) = opened.drop_closed() {
            *self.error.lock() = Some(reason);
        }
        self.by_keyspace.drop_closed();
        self.publish(opened);
        while opened.live.len() < self.options.connections.max(1) {
            let now = tokio::time::Instant::now();
            if let Some(wait) = opened.not_before.map(|at| at.saturating_duration_since(now))
                && !wait.is_zero()
            {
                return Some(wait);
            }
            match Connection::open(self.address, &self.name, &self.options, None).await {
                Ok(connection) => {
                    opened.live.push((connection, tokio::time::Instant::now()));
                    *self.error.lock() = None;
                    *self.refusal.lock() = None;
                    self.publish(opened);
                }
                Err(error) => {
                    *self.error.lock() = Some(error.to_string());
                    *self.refusal.lock() = error.login_refusal().cloned();
                    self.changed.notify_waiters();
                    opened.pause();
                }
            }
        }
        None
    }

    fn publish(&self, opened: &Opened) {
        let live = opened.live.iter().map(|(connection, _)| connection.clone());
        self.live.store(Arc::new(live.collect()));
        self.changed.notify_waiters();
    }

    async fn connection_in(&self, keyspace: &str, until: Instant) -> Result<Connection, ClusterError> {
        if let Some(connection) = self.by_keyspace.find(keyspace) {
            return Ok(connection);
        }
        // Asked on a connection that is there: a name that the node does not know costs no login.
        let asked = self.connection().ok_or_else(|| self.none())?;
        check_keyspace(&asked, keyspace, until).await?;
        self.by_keyspace.get(keyspace, self.address, || self.open_in(keyspace)).await
    }

    async fn open_in(&self, keyspace: &str) -> Result<Connection, ClusterError> {
        let connection = Connection::open(self.address, &self.name, &self.options, None).await?;
        let text = format!("USE \"{}\"", keyspace.replace('"', "\"\""));
        let query = Query { query: &text, parameters: QueryParameters::default() };
        let asks = Extras { asks: Asks::Keyspace, ..Extras::default() };
        let answer = connection.call(&Request::Query(query), &asks).await?;
        answer.result()?;
        Ok(connection)
    }

    /// Why a call finds no connection.
    pub fn none(&self) -> CallError {
        let reason = self.error.lock().clone().unwrap_or_else(|| "there is none yet".to_owned());
        CallError::NotSent { node: self.address, reason }
    }
}

async fn any_closed(connections: &[Connection]) {
    let mut ends: Vec<_> = connections.iter().map(|connection| Box::pin(connection.closed())).collect();
    std::future::poll_fn(|context| {
        use std::future::Future as _;
        match ends.iter_mut().any(|end| end.as_mut().poll(context).is_ready()) {
            true => std::task::Poll::Ready(()),
            false => std::task::Poll::Pending,
        }
    })
    .await;
}

async fn sleep(wait: Option<Duration>) {
    match wait {
        Some(wait) => tokio::time::sleep(wait).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::tests::{connected, options};

    #[tokio::test(start_paused = true)]
    async fn a_node_that_closes_each_connection_at_once_is_tried_ever_more_rarely() {
        let options = options(1, 1 << 20);
        let mut opened = Opened::default();
        // A connection that ends after this time.
        let ends = async |opened: &mut Opened, after: Duration| {
            let (connection, node) = connected(&options, None);
            opened.live.push((connection.clone(), tokio::time::Instant::now()));
            tokio::time::sleep(after).await;
            drop(node);
            connection.closed().await;
        };
        let mut waits = Vec::new();
        for _ in 0..8 {
            ends(&mut opened, Duration::ZERO).await;
            let reason = opened.drop_closed().expect("it has ended early");
            assert!(reason.contains("the node closed it"), "{reason}");
            let before = opened.not_before.unwrap();
            waits.push(before.saturating_duration_since(tokio::time::Instant::now()).as_millis());
            tokio::time::sleep_until(before).await;
            assert_eq!(opened.drop_closed(), None, "once for each");
        }
        assert_eq!(waits, [250, 500, 1_000, 2_000, 4_000, 8_000, 10_000, 10_000]);
        ends(&mut opened, LIVED_MIN).await;
        assert_eq!((opened.drop_closed(), opened.not_before, opened.pause), (None, None, PAUSE));
    }
}
