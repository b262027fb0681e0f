//! Changes of the schema: one log record each, no flush.

use super::shared::Database;
use crate::commitlog::Ticket;
use crate::error::Error;
use crate::schema::{SchemaChange, changes_between};
use crate::table::TableStore;
use helenus_model::schema::{Schema, Table, TableId};
use std::collections::HashMap;
use std::sync::Arc;

/// Why a change of the schema did not happen.
#[derive(Debug)]
pub enum DdlError<E> {
    /// Whoever asked for it found it wrong.
    Refused(E),
    /// The engine could not.
    Engine(Error),
}

impl<E> From<Error> for DdlError<E> {
    fn from(error: Error) -> DdlError<E> {
        DdlError::Engine(error)
    }
}

impl Database {
    /// The present schema.
    pub fn schema(&self) -> Arc<Schema> {
        self.shared.schema.load_full()
    }

    /// Changes the schema: `change` makes the next one from the present one, alone with it. Nothing happens when both
    /// are equal in content.
    ///
    /// # Errors
    /// What `change` returns; the errors of a write.
    pub fn change_schema<E>(
        &self,
        change: impl FnOnce(&Schema, i64) -> Result<Schema, E>,
    ) -> Result<(Vec<SchemaChange>, Ticket), DdlError<E>> {
        let shared = &self.shared;
        let _alone = shared.ddl.lock();
        let present = shared.schema.load_full();
        let timestamp_us = self.next_timestamp()?;
        let mut next = change(&present, timestamp_us).map_err(DdlError::Refused)?;
        let (mutation, changes) = changes_between(&present, &next, timestamp_us);
        if changes.is_empty() {
            return Ok((changes, Ticket::ready()));
        }
        next.version = shared.next_uuid();
        next.epoch = present.epoch + 1;
        let (added, dropped) = self.stores_after(&next)?;
        let ticket = shared.write(&mutation)?;
        // Only now: a definition that the log has not taken must not get into a file.
        for table in next.keyspaces.values().flat_map(|keyspace| keyspace.tables.values()) {
            if let Some(store) = added.get(&table.id) {
                store.redefine(table);
            }
        }
        shared.tables.store(Arc::new(added));
        shared.schema.store(Arc::new(next));
        if !dropped.is_empty() {
            // Files go only once their record is on the disk, in every mode: a table must not come back empty.
            match (&shared.log, ticket.position()) {
                (Some(log), Some(position)) => log.sync_up_to(position)?,
                _ => ticket.wait()?,
            }
        }
        for store in dropped {
            store.drop_files(shared)?;
            if let Some(log) = &shared.log {
                log.forget(store.table().id)?;
            }
        }
        Ok((changes, ticket))
    }

    /// Empties a table.
    ///
    /// # Errors
    /// `UnknownTable`; the errors of a write; failures of removing files.
    pub fn truncate(&self, table: &Table) -> Result<(), Error> {
        let shared = &self.shared;
        let _alone = shared.ddl.lock();
        let store = shared.table(table.id).ok_or_else(|| Error::UnknownTable {
            keyspace: table.keyspace.to_string(),
            table: table.name.to_string(),
        })?;
        store.truncate(shared)
    }

    /// The stores that a new schema needs: present ones, new ones opened, and those that go.
    #[allow(clippy::type_complexity, reason = "a pair used once, by the function above")]
    fn stores_after(
        &self,
        next: &Schema,
    ) -> Result<(HashMap<TableId, Arc<TableStore>>, Vec<Arc<TableStore>>), Error> {
        let present = self.shared.tables.load();
        let mut stores = HashMap::new();
        for table in next.keyspaces.values().flat_map(|keyspace| keyspace.tables.values()) {
            let store = match present.get(&table.id) {
                Some(store) => store.clone(),
                None => Arc::new(TableStore::open(&self.shared, table)?),
            };
            stores.insert(table.id, store);
        }
        let dropped =
            present.iter().filter(|(id, _)| !stores.contains_key(id)).map(|(_, store)| store.clone());
        let dropped = dropped.collect();
        Ok((stores, dropped))
    }
}
