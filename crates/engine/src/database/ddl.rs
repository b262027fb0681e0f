//! Schema changes: one log record each, without a flush.

use super::schema_memory::{check_memory, schema_bytes, table_bytes, types_change};
use super::shared::Database;
use super::watching::watched_changes;
use crate::commitlog::Ticket;
use crate::error::{DiskTrouble, Error};
use crate::index::{attach, stored_of};
use crate::journal::Event;
use crate::schema::{SchemaChange, SchemaDelta, changes_between};
use crate::table::{TableStore, Tables};
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
        let delta = SchemaDelta::between(&present, &next);
        let bytes_of = |tables: &[Arc<Table>]| -> u64 {
            tables
                .iter()
                .flat_map(stored_of)
                .map(|(table, _)| table_bytes(&table))
                .fold(0, u64::saturating_add)
        };
        let (types_come, types_gone) = types_change(&present, &next);
        let come = bytes_of(&delta.come).saturating_add(types_come);
        let gone = bytes_of(&delta.gone).saturating_add(types_gone);
        let bytes = memory.bytes().saturating_add(come).saturating_sub(gone);
        let bytes = match bytes > memory.bytes() {
            true => check_memory(bytes).map(|()| bytes)?,
            // What went may have counted for less than its size since the start.
            false => bytes.max(schema_bytes(&next)),
        };
        self.check_new_ids(&present, &delta)?;
        let (added, dropped) = self.stores_after(&delta)?;
        if let Some(log) = &shared.log {
            log.announce(watched_changes(&delta));
        }
        for store in &dropped {
            // On a full disk the mark takes the room of the reserve, of which the record needs less than all. If it fails
            // all the same, the table is dropped: the mark helps only where the process dies before the files are removed.
            let _ = match &shared.log {
                Some(log) => log.with_reserve(|| store.mark_dropping(shared)),
                None => store.mark_dropping(shared),
            };
        }
        // The next start takes off what stays.
        let unmark = || dropped.iter().for_each(|store| _ = store.unmark_dropping(shared));
        let written = shared.write_schema(&mutation).or_else(|error| {
            unmark();
            match error.disk_trouble() {
                // The marks may have taken the room, or the last file, that the record needs.
                Some(DiskTrouble::Full) if !dropped.is_empty() => shared.write_schema(&mutation),
                _ => Err(error),
            }
        });
        let ticket = written.inspect_err(|_| {
            if let Some(log) = &shared.log {
                log.announce(Vec::new());
            }
        })?;
        // A schema that may still be refused is not shown to anybody.
        if let (Some(log), Some(position)) = (&shared.log, ticket.position()) {
            log.secure(position)?;
        }
        // Only after that: a definition that is not in the log must not be stored in a file.
        let mut is_compacted_otherwise = false;
        for (table, _) in delta.come.iter().flat_map(stored_of) {
            if let Some(store) = added.get(&table.id) {
                is_compacted_otherwise |= store.redefine(&table);
            }
        }
        let new_indexes = {
            // Every write either knows of a new index, or is in the memtable that the index's build reads.
            let _gate = shared.gate.close();
            let new_indexes = attach(&delta.come, &added);
            shared.tables.store(Arc::new(added));
            shared.schema.store(Arc::new(next));
            new_indexes
        };
        memory.resize(bytes);
        if is_compacted_otherwise {
            shared.compactors.wake();
        }
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
        dropped.into_iter().for_each(|store| self.remove_dropped(store));
        for change in &changes {
            shared.options.journal.note(&Event::SchemaChanged(change));
        }
        Ok((changes, ticket))
    }

    /// Refuses a new table with the id of another one, or of a dropped one whose files are not removed yet: the removal
    /// would take the new one's. `CREATE TABLE .. WITH id` allows any id.
    fn check_new_ids(&self, present: &Schema, delta: &SchemaDelta) -> Result<(), Error> {
        let shared = &self.shared;
        for table in &delta.come {
            let name = (&table.keyspace, &table.name);
            match present.table_by_id(table.id) {
                Some(other) if (&other.keyspace, &other.name) == name => continue,
                Some(other) => {
                    let by = format!("{}.{} has it", other.keyspace, other.name);
                    return Err(Error::TableIdInUse { id: table.id.0, by });
                }
                None => {}
            }
            if shared.leftovers.has_dropped(table.id) {
                let by = "the files of a dropped table with it are still being removed; try again".to_owned();
                return Err(Error::TableIdInUse { id: table.id.0, by });
            }
            if let Some(log) = &shared.log {
                log.begin_table(table.id)?;
            }
        }
        Ok(())
    }

    /// Removes the files of a dropped table, now or later. The log forgets it first: whatever happens to its files, its
    /// writes keep no segment.
    fn remove_dropped(&self, store: Arc<TableStore>) {
        let shared = &self.shared;
        if let Some(log) = &shared.log {
            log.forget(store.table().id);
        }
        let dropped = Error::contain(|| store.drop_files(shared));
        if let Some(log) = &shared.log {
            // A flush that was under way may have marked it.
            log.forget(store.table().id);
        }
        match dropped {
            Ok(true) => {}
            Ok(false) => shared.leftovers.add_dropped(shared, store, None),
            Err(error) => shared.leftovers.add_dropped(shared, store, Some(&error)),
        }
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

    /// The stores after a change, present or newly opened, and the stores of dropped tables.
    #[allow(clippy::type_complexity, reason = "a pair used once, by the function above")]
    fn stores_after(&self, delta: &SchemaDelta) -> Result<(Tables, Vec<Arc<TableStore>>), Error> {
        let present = self.shared.tables.load();
        let mut stores = Tables::clone(&present);
        for (table, _) in delta.gone.iter().flat_map(stored_of) {
            stores.remove(&table.id);
        }
        for (table, index) in delta.come.iter().flat_map(stored_of) {
            let store = match present.get(&table.id) {
                Some(store) => store.clone(),
                None => Arc::new(TableStore::open(&self.shared, &table, index.as_deref())?),
            };
            stores.insert(table.id, store);
        }
        let gone = delta.gone.iter().flat_map(stored_of).map(|(table, _)| table.id);
        let dropped = gone.filter(|id| !stores.contains_key(id));
        let mut dropped: Vec<Arc<TableStore>> = dropped.filter_map(|id| present.get(&id).cloned()).collect();
        // Folders of indexes lie in those of their tables, and are removed before them.
        dropped.sort_by_key(|store| std::cmp::Reverse(store.folder().components().count()));
        Ok((stores, dropped))
    }
}
