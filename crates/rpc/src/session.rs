//! The state of a connection between its calls.

use crate::call_options::{Arrival, LoginHandle};
use crate::family::Family;
use helenus_cql::backend::{ClientCertificate, Identity};
use helenus_cql::syntax::ast::Permission;
use helenus_model::schema::Schema;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// The permissions that a call needs on each column family that it names.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Asks {
    pub(crate) permissions: &'static [Permission],
    pub(crate) may_block: bool,
}

impl Asks {
    pub(crate) fn new(permissions: &'static [Permission], may_block: bool) -> Asks {
        Asks { permissions, may_block }
    }

    /// Other permissions for the same call.
    pub(crate) fn with(self, permissions: &'static [Permission]) -> Asks {
        Asks { permissions, ..self }
    }
}

/// The state of one client.
#[derive(Default)]
pub struct Session {
    /// Its role may not be used any more: its connection is to end.
    is_over: bool,
    /// The keyspace that `set_keyspace` or USE has chosen.
    pub(crate) keyspace: Option<Arc<str>>,
    /// The identity of the client.
    pub(crate) identity: Identity,
    /// What the storage keeps of its login.
    pub(crate) login: Option<LoginHandle>,
    /// What the call that runs needs on the column families that it names.
    pub(crate) asks: Asks,
    /// How long the answers to failed logins are to wait, in all since the delay was last taken.
    pub(crate) login_delay: Duration,
    /// The address of the client.
    pub(crate) client: Option<SocketAddr>,
    /// Whom the certificate is for that the client has shown, if it has.
    pub(crate) certificate: Option<ClientCertificate>,
    /// The trace session of the next call, if it is to be traced.
    pub(crate) traced_next: Option<Uuid>,
    /// The column families used so far, by the names that calls gave.
    families: HashMap<Box<str>, Arc<Family>>,
    /// The family used last, which is usually used next.
    latest: Option<Arc<Family>>,
    /// The schema epoch that `families` belong to.
    families_epoch: u64,
}

impl Session {
    /// The session of a client with this address, and this certificate if it has shown one.
    pub fn of_client(client: Option<SocketAddr>, certificate: Option<ClientCertificate>) -> Session {
        Session { client, certificate, ..Session::default() }
    }

    /// How long the answers to the calls since the last time are to wait: those of logins that failed.
    pub fn take_login_delay(&mut self) -> Duration {
        std::mem::take(&mut self.login_delay)
    }

    /// Whether its client has logged in, or needs no login.
    pub fn has_role(&self) -> bool {
        self.identity.role.is_some()
    }

    /// Whether the session has ended, because its role was dropped or may not log in any more. The connection ends with
    /// the answer that says so.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Ends the session: its connection is to end. Its role may be allowed to log in again, on another one. The role is still known, so that
    /// the audit log names it.
    pub(crate) fn end(&mut self) {
        self.is_over = true;
    }

    /// Counts a call of this many bytes among those in flight of its role.
    #[inline]
    pub fn arrive(&self, bytes: usize) -> Arrival {
        Arrival::of(&self.identity, bytes)
    }

    /// The name of its role, if its client has logged in.
    pub fn role(&self) -> Option<&Arc<str>> {
        self.identity.role.as_ref()
    }

    /// A cached column family of the keyspace in use, if the cache has this schema epoch.
    #[inline]
    pub(crate) fn known(&mut self, epoch: u64, name: &str) -> Option<Arc<Family>> {
        if self.families_epoch != epoch {
            return None;
        }
        if let Some(latest) = self.latest.as_ref().filter(|latest| *latest.table.name == *name) {
            return Some(latest.clone());
        }
        self.latest = self.families.get(name).cloned();
        self.latest.clone()
    }

    /// Caches a column family of the keyspace in use.
    pub(crate) fn keep(&mut self, schema: &Schema, family: &Arc<Family>) {
        if self.families_epoch != schema.epoch {
            self.forget();
            self.families_epoch = schema.epoch;
        }
        self.families.insert((&*family.table.name).into(), family.clone());
    }

    /// Sets the keyspace.
    pub(crate) fn use_keyspace(&mut self, keyspace: &str) {
        self.keyspace = Some(keyspace.into());
        self.forget();
    }

    fn forget(&mut self) {
        self.families.clear();
        self.latest = None;
    }
}
