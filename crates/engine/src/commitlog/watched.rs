//! The watched tables (`cdc = true`), and their definitions in the log.
//!
//! An append defines a watched table before its first record in a segment, under the log's lock. A schema change of a
//! watched table is announced first (`announce`); its mutation then goes to the log right behind the new definitions, so
//! that a reader of changes finds both or neither.

use super::active::Active;
use super::definition::DefinitionKind;
use super::log::{CommitLog, State};
use super::record::{self, HEADER_BYTES};
use crate::error::Result;
use crate::log_position::LogPosition;
use helenus_model::mutation::PartitionUpdate;
use helenus_model::schema::{Table, TableId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The keyspace whose mutations are schema changes.
const SCHEMA_KEYSPACE: &str = "system_schema";

/// The watched tables of a log.
#[derive(Default)]
pub(super) struct WatchedTables {
    /// The record of each one's definition.
    definitions: BTreeMap<TableId, Vec<u8>>,
    /// Definitions to be logged with the schema change that is about to be logged.
    upcoming: Vec<Upcoming>,
}

struct Upcoming {
    kind: DefinitionKind,
    table: Arc<Table>,
    content: Vec<u8>,
}

impl WatchedTables {
    /// Whether no table is watched, nor about to be.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.definitions.is_empty() && self.upcoming.is_empty()
    }

    /// The most bytes that `define` writes for a table.
    pub(super) fn definition_bytes(&self, table: TableId) -> usize {
        self.definitions.get(&table).map_or(0, |content| content.len() + HEADER_BYTES)
    }

    /// The most bytes that `define_all` writes.
    pub(super) fn definitions_bytes<'u>(&self, updates: impl Iterator<Item = &'u PartitionUpdate>) -> usize {
        if self.is_empty() {
            return 0;
        }
        let upcoming: usize = self.upcoming.iter().map(|new| new.content.len() + HEADER_BYTES).sum();
        upcoming + updates.map(|update| self.definition_bytes(update.table.id)).sum::<usize>()
    }

    /// Defines a table in the active segment, if it is watched and not defined there.
    pub(super) fn define(&self, table: TableId, active: &mut Active) {
        if let Some(content) = self.definitions.get(&table)
            && active.defined.insert(table)
        {
            active.put(content);
        }
    }

    /// Defines the tables of a mutation that is about to be logged; if it is the announced schema change, also the tables
    /// that it changes.
    pub(super) fn define_all<'u>(
        &mut self,
        updates: impl Iterator<Item = &'u PartitionUpdate>,
        active: &mut Active,
    ) {
        let mut changes_schema = false;
        for update in updates {
            changes_schema |= &*update.table.keyspace == SCHEMA_KEYSPACE;
            self.define(update.table.id, active);
        }
        if !changes_schema {
            return;
        }
        for Upcoming { kind, table, content } in std::mem::take(&mut self.upcoming) {
            active.defined.insert(table.id);
            active.put(&content);
            match kind {
                DefinitionKind::Unwatched | DefinitionKind::Dropped => {
                    self.definitions.remove(&table.id);
                }
                _ => self.watch(&table),
            }
        }
    }

    fn watch(&mut self, table: &Table) {
        self.definitions.insert(table.id, record::definition(DefinitionKind::Repeated, table));
    }
}

impl CommitLog {
    /// Watches these tables from now on.
    pub(crate) fn watch<'t>(&self, tables: impl Iterator<Item = &'t Arc<Table>>) {
        let mut state = self.state.lock();
        tables.for_each(|table| state.watched.watch(table));
    }

    /// Announces changes of watched tables: the next mutation of the schema's tables makes them.
    pub(crate) fn announce(&self, changes: Vec<(DefinitionKind, Arc<Table>)>) {
        let upcoming = changes.into_iter().map(|(kind, table)| {
            let content = record::definition(kind, &table);
            Upcoming { kind, table, content }
        });
        self.state.lock().watched.upcoming = upcoming.collect();
    }

    /// Records that SSTables were imported into a table, if it is watched, and syncs.
    ///
    /// # Errors
    /// As `append`; failures of writing and syncing.
    pub(crate) fn note_import(&self, table: TableId, sstables: usize) -> Result<()> {
        let end: LogPosition = {
            let mut state = self.state.lock();
            let definition = state.watched.definition_bytes(table);
            if definition == 0 {
                return Ok(());
            }
            let mut content = Vec::new();
            record::put_imported(table, u32::try_from(sstables).unwrap_or(u32::MAX), &mut content);
            self.make_room(&mut state, definition + HEADER_BYTES + content.len(), || true)?;
            let State { active, watched, .. } = &mut *state;
            let Some(active) = active else { unreachable!("make_room leaves an active segment") };
            watched.define(table, active);
            active.put(&content)
        };
        self.sync_up_to(end)
    }
}
