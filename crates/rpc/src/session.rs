//! What a connection remembers between its calls.

use crate::family::Family;
use helenus_cql::backend::Identity;
use helenus_model::schema::Schema;
use std::collections::HashMap;
use std::sync::Arc;

/// One client's state.
#[derive(Default)]
pub struct Session {
    /// What `set_keyspace` or USE chose.
    pub(crate) keyspace: Option<Arc<str>>,
    /// Who asks.
    pub(crate) identity: Identity,
    /// Column families in use, as they are in `families_of`.
    families: HashMap<Box<str>, Arc<Family>>,
    /// Epoch of the schema that `families` are of.
    families_epoch: u64,
}

impl Session {
    /// A column family of the keyspace in use that was looked up before.
    pub(crate) fn known(&self, schema: &Schema, name: &str) -> Option<Arc<Family>> {
        let family = self.families.get(name).filter(|_| self.families_epoch == schema.epoch)?;
        Some(family.clone())
    }

    /// Keeps a column family of the keyspace in use.
    pub(crate) fn keep(&mut self, schema: &Schema, family: &Arc<Family>) {
        if self.families_epoch != schema.epoch {
            self.families.clear();
            self.families_epoch = schema.epoch;
        }
        self.families.insert((&*family.table.name).into(), family.clone());
    }

    /// Chooses a keyspace.
    pub(crate) fn use_keyspace(&mut self, keyspace: &str) {
        self.keyspace = Some(keyspace.into());
        self.families.clear();
    }
}
