//! The connections of a node on which a keyspace is in use, for nodes whose protocol cannot name it in each request (before v5).
//!
//! Clients choose the names, and each connection costs the node a login, so the number is bounded: one connection a keyspace, opened by
//! one of those who wait for it; a failure is the answer to all of them, and to those who ask soon after; of more keyspaces than are kept,
//! the one that was used longest ago loses its connection. Names that the node does not know do not come here (`Pool::connection_in`).

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::{CallError, ClusterError, Connection};

/// Keyspaces with a connection, of each node and role.
const KEYSPACES_MAX: usize = 64;
/// No further attempt is made for this time after a failure, or after the opening of a connection that has ended meanwhile.
const PAUSE: Duration = Duration::from_millis(250);

/// The connections of a node, by keyspace.
#[derive(Debug, Default)]
pub(crate) struct KeyspaceConnections {
    slots: Mutex<Slots>,
}

#[derive(Debug, Default)]
struct Slots {
    by_name: HashMap<String, Arc<Slot>>,
    /// Counts uses, to know which slot was used last.
    uses: u64,
}

/// The connection of a keyspace.
#[derive(Debug, Default)]
struct Slot {
    state: Mutex<State>,
    /// Held by who opens the connection, with the last failure.
    opening: tokio::sync::Mutex<Option<Failure>>,
}

#[derive(Debug, Default)]
struct State {
    connection: Option<Connection>,
    opened: Option<Instant>,
    last_use: u64,
}

#[derive(Debug)]
struct Failure {
    at: Instant,
    error: ClusterError,
}

impl Failure {
    /// Whether it is the answer to who has asked then. A node's own error may be over at once, as that for a keyspace that is made now.
    fn answers(&self, asked: Instant) -> bool {
        match self.error {
            ClusterError::Server(_) => self.at >= asked,
            _ => self.at + PAUSE > asked,
        }
    }
}

impl Slot {
    fn live(&self) -> Option<Connection> {
        self.state.lock().connection.clone().filter(|connection| !connection.is_closed())
    }

    /// Whether the connection was opened just before `now`, which may have ended already.
    fn is_new(&self, now: Instant) -> bool {
        self.state.lock().opened.is_some_and(|opened| opened + PAUSE > now)
    }

    /// Whether somebody opens the connection or waits for it. Called with the list locked, which holds one reference.
    fn is_wanted(self: &Arc<Slot>) -> bool {
        Arc::strong_count(self) > 1
    }
}

impl KeyspaceConnections {
    /// The connection of a keyspace, if it is open.
    pub fn find(&self, keyspace: &str) -> Option<Connection> {
        let mut slots = self.slots.lock();
        slots.uses += 1;
        let uses = slots.uses;
        let slot = slots.by_name.get(keyspace)?;
        slot.state.lock().last_use = uses;
        slot.live()
    }

    /// The connection of a keyspace; `open` opens it if there is none and nobody else is about to.
    ///
    /// # Errors
    /// It cannot be opened, or connections for too many keyspaces are being opened.
    pub async fn get<F: Future<Output = Result<Connection, ClusterError>>>(
        &self,
        keyspace: &str,
        node: SocketAddr,
        open: impl FnOnce() -> F,
    ) -> Result<Connection, ClusterError> {
        let asked = tokio::time::Instant::now();
        let slot = self.slot(keyspace).ok_or_else(|| {
            let reason =
                format!("connections for {KEYSPACES_MAX} keyspaces are being opened, as many as are kept");
            CallError::NotSent { node, reason }
        })?;
        let mut failed = slot.opening.lock().await;
        if let Some(connection) = slot.live() {
            return Ok(connection);
        }
        if let Some(failure) = failed.as_ref().filter(|failure| failure.answers(asked)) {
            return Err(again(&failure.error, node));
        }
        if slot.is_new(asked) {
            let reason = "the last one with this keyspace has ended right after it was opened".to_owned();
            return Err(CallError::NotSent { node, reason }.into());
        }
        match open().await {
            Ok(connection) => {
                {
                    let mut state = slot.state.lock();
                    state.opened = Some(tokio::time::Instant::now());
                    state.connection = Some(connection.clone());
                }
                *failed = None;
                Ok(connection)
            }
            Err(error) => {
                let told = again(&error, node);
                *failed = Some(Failure { at: tokio::time::Instant::now(), error });
                Err(told)
            }
        }
    }

    /// Forgets connections that have ended.
    pub fn drop_closed(&self) {
        let now = tokio::time::Instant::now();
        self.slots
            .lock()
            .by_name
            .retain(|_, slot| slot.is_wanted() || slot.live().is_some() || slot.is_new(now));
    }

    fn slot(&self, keyspace: &str) -> Option<Arc<Slot>> {
        let mut slots = self.slots.lock();
        slots.uses += 1;
        let uses = slots.uses;
        if !slots.by_name.contains_key(keyspace) && slots.by_name.len() >= KEYSPACES_MAX {
            let unwanted = slots.by_name.iter().filter(|(_, slot)| !slot.is_wanted());
            let oldest = unwanted.min_by_key(|(_, slot)| slot.state.lock().last_use)?.0.clone();
            // Requests on their way keep the connection until they have their answers.
            slots.by_name.remove(&oldest);
        }
        let slot = slots.by_name.entry(keyspace.to_owned()).or_default();
        slot.state.lock().last_use = uses;
        Some(Arc::clone(slot))
    }
}

/// A failure for one more of those who wait. Nothing of theirs was sent.
fn again(error: &ClusterError, node: SocketAddr) -> ClusterError {
    match error {
        ClusterError::Server(error) => ClusterError::Server(error.clone()),
        other => CallError::NotSent { node, reason: other.to_string() }.into(),
    }
}
