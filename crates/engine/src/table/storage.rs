//! All tables of a database with their environment, for the background work below the database.

use super::{TableStore, Tables};
use crate::env::Env;
use arc_swap::ArcSwap;
use helenus_model::schema::TableId;
use parking_lot::Mutex;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The tables of a database.
pub(crate) struct Storage {
    pub(crate) env: Env,
    /// Stores of all tables, the hidden tables of indexes included.
    pub(crate) tables: ArcSwap<Tables>,
    pub(crate) closing: AtomicBool,
    /// The directory's lock, until the database is closed. It is here because background work of a dropped database
    /// may still change files for a moment.
    pub(crate) lock: Mutex<Option<Box<dyn Send + Sync>>>,
}

impl Storage {
    pub(crate) fn table(&self, id: TableId) -> Option<Arc<TableStore>> {
        self.tables.load().get(&id).cloned()
    }
}

impl Deref for Storage {
    type Target = Env;

    fn deref(&self) -> &Env {
        &self.env
    }
}
