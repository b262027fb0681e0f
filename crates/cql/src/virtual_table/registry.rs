//! The registry of virtual tables.

use super::table::{VirtualContext, VirtualRead, VirtualRows, VirtualTable};
use super::{changes, compaction_history, estimates, local, peers, views, virtual_schema};
use crate::super_family;
use crate::virtual_table::NodeInfo;
use helenus_engine::Database;
use helenus_model::schema::{Keyspace, Schema, TableId};
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The virtual tables of a backend.
pub struct VirtualTables {
    tables: RwLock<BTreeMap<TableId, Arc<dyn VirtualTable>>>,
    node: RwLock<NodeInfo>,
    /// The last shown schema, with the schema from which it was made.
    shown: RwLock<Option<(Arc<Schema>, Arc<Schema>)>>,
}

impl VirtualTables {
    /// Registers the tables for drivers (`system.local`, `peers`, `peers_v2`, `system_virtual_schema`), estimates and
    /// past compactions in `system`, and the engine's metrics in `system_views`.
    pub(crate) fn new(database: &Database, node: NodeInfo) -> VirtualTables {
        let tables =
            VirtualTables { tables: RwLock::default(), node: RwLock::default(), shown: RwLock::default() };
        tables.describe_node(database, node);
        peers::tables(database).into_iter().for_each(|table| tables.register(table));
        estimates::tables(database).into_iter().for_each(|table| tables.register(table));
        compaction_history::table(database).into_iter().for_each(|table| tables.register(table));
        virtual_schema::tables().into_iter().for_each(|table| tables.register(table));
        tables.register(changes::table());
        views::tables().into_iter().for_each(|table| tables.register(table));
        tables
    }

    /// Sets the node's properties in `system.local`, once the addresses of the listeners are known.
    pub fn describe_node(&self, database: &Database, node: NodeInfo) {
        *self.node.write() = node.clone();
        local::tables(database, node).into_iter().for_each(|table| self.register(table));
    }

    /// The node's properties.
    pub fn node(&self) -> NodeInfo {
        self.node.read().clone()
    }

    /// Adds a table, or replaces the one with its id. Its keyspace is `system_views` or another one without stored
    /// tables; or it replaces a stored table of the same id.
    pub fn register(&self, table: Arc<dyn VirtualTable>) {
        self.tables.write().insert(table.table().id, table);
        *self.shown.write() = None;
    }

    /// The schema with the virtual tables, and with super column families as statements see them.
    pub(crate) fn shown_in(&self, schema: &Arc<Schema>) -> Arc<Schema> {
        if let Some((of, shown)) = &*self.shown.read()
            && Arc::ptr_eq(of, schema)
        {
            return shown.clone();
        }
        let mut shown = (**schema).clone();
        for table in self.tables.read().values() {
            let table = table.table();
            if schema.table(&table.keyspace, &table.name).is_some() {
                continue;
            }
            let keyspace = shown.keyspaces.entry(table.keyspace.clone());
            let keyspace = keyspace.or_insert_with(|| Arc::new(virtual_keyspace(&table.keyspace)));
            Arc::make_mut(keyspace).tables.insert(table.name.clone(), table.clone());
        }
        for (name, keyspace) in &schema.keyspaces {
            let families = super_family::shown(keyspace);
            let Some(keyspace) = shown.keyspaces.get_mut(name).filter(|_| !families.is_empty()) else {
                continue;
            };
            let tables = &mut Arc::make_mut(keyspace).tables;
            tables.extend(families.into_iter().map(|table| (table.name.clone(), table)));
        }
        let shown = Arc::new(shown);
        *self.shown.write() = Some((schema.clone(), shown.clone()));
        shown
    }

    /// Whether a table is virtual.
    pub(crate) fn contains(&self, table: TableId) -> bool {
        self.tables.read().contains_key(&table)
    }

    /// The rows of a table that a read may need, if it is virtual.
    pub(crate) fn rows(
        &self,
        table: TableId,
        cx: &VirtualContext<'_>,
        read: &VirtualRead<'_>,
    ) -> Option<helenus_engine::Result<VirtualRows>> {
        let found = self.tables.read().get(&table).cloned()?;
        let mut rows = VirtualRows::new(found.table().clone());
        Some(found.rows_of(cx, read, &mut rows).map(|()| rows))
    }
}

fn virtual_keyspace(name: &str) -> Keyspace {
    Keyspace {
        name: name.into(),
        durable_writes: true,
        replication: BTreeMap::new(),
        tables: BTreeMap::new(),
        types: BTreeMap::new(),
    }
}

/// Whether all tables of a keyspace are virtual: these need no ALLOW FILTERING.
pub(crate) fn is_virtual_keyspace(name: &str) -> bool {
    matches!(name, "system_views" | "system_virtual_schema")
}
