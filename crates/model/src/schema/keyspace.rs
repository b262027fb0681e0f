//! A keyspace, and the schema: all keyspaces at one moment.

use super::table::{Table, TableId};
use crate::types::UserType;
use std::collections::BTreeMap;
use std::sync::Arc;
use uuid::Uuid;

/// A keyspace.
#[derive(Clone, Debug, PartialEq)]
pub struct Keyspace {
    /// Its name.
    pub name: Arc<str>,
    /// Whether writes go to the commit log.
    pub durable_writes: bool,
    /// `class` (full name) and the strategy's options.
    pub replication: BTreeMap<String, String>,
    /// Tables by name.
    pub tables: BTreeMap<Arc<str>, Arc<Table>>,
    /// User-defined types by name.
    pub types: BTreeMap<Arc<str>, Arc<UserType>>,
}

/// The schema: all keyspaces at one moment.
#[derive(Clone, Debug)]
pub struct Schema {
    /// Keyspaces by name.
    pub keyspaces: BTreeMap<Arc<str>, Arc<Keyspace>>,
    /// Identity of this content: `system.local.schema_version`.
    pub version: Uuid,
    /// Number of schema changes in this process; a statement prepared under another epoch is analysed again.
    pub epoch: u64,
}

impl Schema {
    /// A table by names.
    pub fn table(&self, keyspace: &str, name: &str) -> Option<&Arc<Table>> {
        self.keyspaces.get(keyspace)?.tables.get(name)
    }

    /// A table by identity.
    pub fn table_by_id(&self, id: TableId) -> Option<&Arc<Table>> {
        self.keyspaces.values().flat_map(|keyspace| keyspace.tables.values()).find(|table| table.id == id)
    }
}
