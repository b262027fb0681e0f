//! Schema changes: one log record each, without a flush.

use super::shared::Database;
use super::watching::watched_changes;
use crate::commitlog::Ticket;
use crate::error::Error;
use crate::index::{attach, stored_tables};
use crate::journal::Event;
use crate::schema::{SchemaChange, changes_between};
use crate::table::{TableStore, Tables};
use helenus_host::account;
use helenus_model::schema::{Schema, Table};
use std::sync::Arc;

/// Why a schema change failed.
#[derive(Debug)]
pub enum DdlError<E> {
    /// The caller's `change` refused it.
    Refused(E),
    /// The engine failed.
    Engine(Error),
}

impl<E> From<Error> for DdlError<E> {
    fn from(error: Error) -> DdlError<E> {
        DdlError::Engine(error)
    }
}

/// Memory of a table beside its columns, measured: its store, an empty memtable, its rows in `system_schema`.
const TABLE_BYTES: u64 = 16 << 10;

/// Memory of a column, measured with tables of 8,000.
const COLUMN_BYTES: u64 = 640;

/// The part of the memory of requests that the schema may take: one in so many.
const SCHEMA_PART: u64 = 2;

/// Estimated memory of the tables of a schema, in bytes.
pub(crate) fn schema_bytes(schema: &Schema) -> u64 {
    let columns = |table: &Table| table.columns().count() as u64;
    stored_tables(schema).map(|(table, _)| TABLE_BYTES + COLUMN_BYTES * columns(&table)).sum()
}

fn check_memory(bytes: u64) -> Result<(), Error> {
    let limit = account::limit() / SCHEMA_PART;
    if bytes > limit { Err(Error::SchemaTooLarge { bytes, limit }) } else { Ok(()) }
}

impl Database {
    /// The present schema.
    pub fn schema(&self) -> Arc<Schema> {
        self.shared.schema.load_full()
    }

    /// The epoch of the present schema. For callers that check at each request whether the schema has changed: it
    /// takes no reference.
    pub fn schema_epoch(&self) -> u64 {
        self.shared.schema.load().epoch
    }

    /// Changes the schema: `change` makes the next schema from the present one. Changes run one at a time. Nothing
    /// happens if both have the same content.
    ///
    /// # Errors
    /// The error of `change`; the errors of a write.
    pub fn change_schema<E>(
        &self,
        change: impl FnOnce(&Schema, i64) -> Result<Schema, E>,
    ) -> Result<(Vec<SchemaChange>, Ticket), DdlError<E>> {
        let shared = &self.shared;
        let mut memory = shared.ddl.lock();
        let present = shared.schema.load_full();
        let timestamp_us = shared.timestamps.next_of_schema()?;
        let mut next = change(&present, timestamp_us).map_err(DdlError::Refused)?;
        let written_us = shared.after_system_writes(timestamp_us);
        let (mutation, changes) = changes_between(&present, &next, written_us);
        if changes.is_empty() {
            return Ok((changes, Ticket::ready()));
        }
        next.version = shared.next_uuid();
        next.epoch = present.epoch + 1;
        let bytes = schema_bytes(&next);
        if bytes > memory.bytes() {
            check_memory(bytes)?;
        }
        let (added, dropped) = self.stores_after(&next)?;
        if let Some(log) = &shared.log {
            log.announce(watched_changes(&present, &next));
        }
        let ticket = shared.write(&mutation).inspect_err(|_| {
            if let Some(log) = &shared.log {
                log.announce(Vec::new());
            }
        })?;
        // A schema that may still be refused is not shown to anybody.
        if let (Some(log), Some(position)) = (&shared.log, ticket.position()) {
            log.secure(position)?;
        }
        // Only after that: a definition that is not in the log must not be stored in a file.
        for (table, _) in stored_tables(&next) {
            if let Some(store) = added.get(&table.id) {
                store.redefine(&table);
            }
        }
        let new_indexes = {
            // Every write either knows of a new index, or is in the memtable that the index's build reads.
            let _gate = shared.gate.close();
            let new_indexes = attach(&next, &added);
            shared.tables.store(Arc::new(added));
            shared.schema.store(Arc::new(next));
            new_indexes
        };
        memory.resize(bytes);
        // Before anything that can fail, because nothing else would start these builds.
        new_indexes.into_iter().for_each(|index| shared.index_builds.add(shared, index, true));
        if !dropped.is_empty() {
            // Files are removed only once the record is on disk, in every mode: otherwise the table could come back
            // empty.
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
        for change in &changes {
            shared.options.journal.note(&Event::SchemaChanged(change));
        }
        Ok((changes, ticket))
    }

    /// Truncates a table.
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
        store.truncate(shared)?;
        shared.options.journal.note(&Event::Truncated(table));
        Ok(())
    }

    /// The stores that a schema needs, present or newly opened, and the stores of dropped tables.
    #[allow(clippy::type_complexity, reason = "a pair used once, by the function above")]
    fn stores_after(&self, next: &Schema) -> Result<(Tables, Vec<Arc<TableStore>>), Error> {
        let present = self.shared.tables.load();
        let mut stores = Tables::default();
        for (table, index) in stored_tables(next) {
            let store = match present.get(&table.id) {
                Some(store) => store.clone(),
                None => Arc::new(TableStore::open(&self.shared, &table, index.as_deref())?),
            };
            stores.insert(table.id, store);
        }
        let dropped =
            present.iter().filter(|(id, _)| !stores.contains_key(id)).map(|(_, store)| store.clone());
        let mut dropped: Vec<Arc<TableStore>> = dropped.collect();
        // Folders of indexes lie in those of their tables, and are removed before them.
        dropped.sort_by_key(|store| std::cmp::Reverse(store.folder().components().count()));
        Ok((stores, dropped))
    }
}
