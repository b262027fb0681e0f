//! A node of the cluster, with its connections.
//!
//! A task for each node opens connections that are missing, and tries again after a pause when it cannot. So who needs a node
//! finds a connection at once or sees that there is none.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use helenus_wire::native::{Query, QueryParameters, Request};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::options::{ClusterOptions, HostPort, Login};
use crate::{CallError, ClusterError, ConnectError, Connection, Extras};

/// The first and the longest pause between two attempts to connect.
const PAUSE: Duration = Duration::from_millis(250);
const PAUSE_MAX: Duration = Duration::from_secs(10);

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

    /// Whether there is a connection.
    pub fn is_connected(&self) -> bool {
        !self.pool.live.load().is_empty()
    }

    /// Why there is no connection, as far as it is known.
    pub fn error(&self) -> Option<String> {
        self.pool.error.lock().clone()
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
    /// it is first needed.
    ///
    /// # Errors
    /// The node cannot be reached; it does not know the keyspace.
    pub async fn connection_in(&self, keyspace: &str) -> Result<Connection, ClusterError> {
        self.pool.connection_in(keyspace).await
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
    by_keyspace: Mutex<HashMap<String, Connection>>,
    turn: AtomicUsize,
    error: Mutex<Option<String>>,
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
            by_keyspace: Mutex::new(HashMap::new()),
            turn: AtomicUsize::new(0),
            error: Mutex::new(None),
            wake: Arc::new(Notify::new()),
            changed: Arc::clone(changed),
            task: Mutex::new(None),
        });
        let (weak, wake) = (Arc::downgrade(&pool), Arc::clone(&pool.wake));
        let task = tokio::spawn(async move {
            let mut pause = PAUSE;
            loop {
                let Some(pool) = weak.upgrade() else { return };
                let wait = pool.keep(&mut pause).await;
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
                    () = wake.notified() => pause = PAUSE,
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

    /// Drops connections that have ended and opens missing ones. Returns when to look again; `None`: all is well.
    async fn keep(&self, pause: &mut Duration) -> Option<Duration> {
        let mut live: Vec<Connection> =
            self.live.load().iter().filter(|connection| !connection.is_closed()).cloned().collect();
        self.by_keyspace.lock().retain(|_, connection| !connection.is_closed());
        self.publish(&live);
        while live.len() < self.options.connections.max(1) {
            match Connection::open(self.address, &self.name, &self.options, None).await {
                Ok(connection) => {
                    live.push(connection);
                    *self.error.lock() = None;
                    self.publish(&live);
                }
                Err(error) => {
                    *self.error.lock() = Some(error.to_string());
                    self.changed.notify_waiters();
                    let wait = *pause;
                    *pause = (*pause * 2).min(PAUSE_MAX);
                    return Some(wait);
                }
            }
        }
        *pause = PAUSE;
        None
    }

    fn publish(&self, live: &[Connection]) {
        self.live.store(Arc::new(live.to_vec()));
        self.changed.notify_waiters();
    }

    async fn connection_in(&self, keyspace: &str) -> Result<Connection, ClusterError> {
        let kept = self.by_keyspace.lock().get(keyspace).cloned();
        if let Some(connection) = kept.filter(|connection| !connection.is_closed()) {
            return Ok(connection);
        }
        let connection = Connection::open(self.address, &self.name, &self.options, None).await?;
        let text = format!("USE \"{}\"", keyspace.replace('"', "\"\""));
        let query = Query { query: &text, parameters: QueryParameters::default() };
        let answer = connection.call(&Request::Query(query), &Extras::default()).await?;
        answer.result()?;
        self.by_keyspace.lock().insert(keyspace.to_owned(), connection.clone());
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
