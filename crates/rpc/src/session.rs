//! What a connection remembers between its calls.

use crate::family::Family;
use helenus_cql::backend::Identity;
use helenus_model::schema::Schema;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use uuid::Uuid;

/// One client's state.
#[derive(Default)]
pub struct Session {
    /// What `set_keyspace` or USE chose.
    pub(crate) keyspace: Option<Arc<str>>,
    /// Who asks.
    pub(crate) identity: Identity,
    /// From where.
    pub(crate) client: Option<SocketAddr>,
    /// The session under which the next call is traced.
    pub(crate) traced_next: Option<Uuid>,
    /// Column families in use, as they are in `families_of`.
    families: HashMap<Box<str>, Arc<Family>>,
    /// The one used last, which is mostly the one used next.
    latest: Option<Arc<Family>>,
    /// Epoch of the schema that `families` are of.
    families_epoch: u64,
}

impl Session {
    /// That of a client at an address.
    pub fn of_client(client: Option<SocketAddr>) -> Session {
        Session { client, ..Session::default() }
    }

    /// A column family of the keyspace in use that was looked up before, under the schema of this epoch.
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

    /// Keeps a column family of the keyspace in use.
    pub(crate) fn keep(&mut self, schema: &Schema, family: &Arc<Family>) {
        if self.families_epoch != schema.epoch {
            self.forget();
            self.families_epoch = schema.epoch;
        }
        self.families.insert((&*family.table.name).into(), family.clone());
    }

    /// Chooses a keyspace.
    pub(crate) fn use_keyspace(&mut self, keyspace: &str) {
        self.keyspace = Some(keyspace.into());
        self.forget();
    }

    fn forget(&mut self) {
        self.families.clear();
        self.latest = None;
    }
}
