//! Decides at a start which indexes are complete, and builds the others anew.
//!
//! An index is complete if `system."IndexInfo"` says that it was built, and the folders of its table and of its hidden table have
//! the SSTables that they had when the last run ended (`table/indexed_files.rs`). Otherwise somebody has put files back,
//! removed or replaced them, and a search could miss rows. The log of the process says so. Searches are refused until the
//! build is done.

use super::index_builds::{mark_built, mark_not_built, record_still_built, recorded_built};
use super::shared::Shared;
use crate::error::{DiskTrouble, Error, Result};
use crate::index::{shapes_of, tables_of};
use crate::journal::Event;
use crate::schema::SchemaRow;
use crate::table::{IndexedFiles, TableStore};
use helenus_model::schema::{Schema, TableId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use uuid::Uuid;

/// The files of each table with indexes, compared with what they should be.
pub(super) struct IndexCheck {
    tables: BTreeMap<TableId, Arc<IndexedFiles>>,
}

impl IndexCheck {
    /// Compares the SSTables of all tables with indexes. Called when they are open and before the log is replayed, because a
    /// TRUNCATE in it removes files.
    ///
    /// # Errors
    /// Failures of the disk.
    pub(super) fn of(shared: &Shared, schema: &Schema) -> Result<IndexCheck> {
        let stores = shared.tables.load();
        let mut tables = BTreeMap::new();
        if shared.log.is_none() {
            return Ok(IndexCheck { tables }); // Nothing outlives the process.
        }
        for table in tables_of(schema).filter(|table| !table.indexes.is_empty()) {
            let Some(base) = stores.get(&table.id) else { continue };
            let files = Arc::new(IndexedFiles::load(&shared.host.disk, base.folder(), shared.run));
            let hidden = shapes_of(table).filter_map(|shape| stores.get(&shape.index.id));
            for store in std::iter::once(base).chain(hidden) {
                files.compare(store)?;
                store.announce_in(Some(&files));
            }
            tables.insert(table.id, files);
        }
        Ok(IndexCheck { tables })
    }

    /// Sets for each index whether it is complete, and starts the build of the others. `indexes` are all of them; `noted` the rows
    /// of `system."IndexInfo"`; `lost` says what is missing of the log, if anything is.
    ///
    /// # Errors
    /// Failures of the disk, and of a write.
    pub(super) fn decide(
        &self,
        shared: &Shared,
        (indexes, noted): (Vec<(Arc<TableStore>, TableId)>, &[SchemaRow]),
        lost: Option<&'static str>,
    ) -> Result<()> {
        let mut complete: BTreeMap<TableId, Vec<TableId>> = BTreeMap::new();
        let mut incomplete = Vec::new();
        // On a full disk: tables whose records stay those of the run before, and tables whose records have to go.
        let (mut unwritten, mut doubted) = (BTreeMap::new(), BTreeSet::new());
        for (base, id) in indexes {
            let table = base.table().id;
            let (recorded, files) = (recorded_built(&base, id, noted), self.tables.get(&table));
            let (Some(runs), Some(files)) = (recorded, files) else {
                // One that was not complete before is built without further words.
                incomplete.push((base, id, None));
                continue;
            };
            match lost.or_else(|| doubt(files, &runs, (table, id))) {
                Some(reason) => incomplete.push((base, id, Some(reason))),
                None => {
                    let before = files.found_run().unwrap_or_default();
                    if let Some(full) = full_disk(record_still_built(shared, &base, id, before))? {
                        unwritten.insert(table, full);
                    }
                    mark_built(&base, id);
                    complete.entry(table).or_default().push(id);
                }
            }
        }
        for (base, id, reason) in &incomplete {
            if let Some(reason) = reason {
                // Nothing else would tell the next start of it.
                if full_disk(mark_not_built(shared, base, *id))?.is_some() {
                    doubted.insert(base.table().id);
                }
                shared.options.journal.note(&Event::IndexIncomplete {
                    table: &base.table(),
                    index: &base.index_name(*id),
                    reason,
                });
            }
        }
        if let Some(log) = shared.log.as_ref().filter(|_| !self.tables.is_empty()) {
            log.sync_up_to(log.position())?;
        }
        let stores = shared.tables.load();
        for (table, files) in &self.tables {
            let is_doubted = doubted.contains(table);
            let complete = complete.get(table).filter(|_| !is_doubted).map_or(&[][..], Vec::as_slice);
            let full = match unwritten.remove(table).filter(|_| !is_doubted) {
                Some(full) => Some(full),
                None => full_disk(self.keep(shared, *table, files, complete))?,
            };
            if let Some(error) = full {
                if let Some(base) = stores.get(table) {
                    let event = Event::IndexFilesNotKept { table: &base.table(), error: &error };
                    shared.options.journal.note(&event);
                }
                continue;
            }
            // From now on a folder of the run before is another one, if somebody puts it back. This is not synced: only a cut within the
            // first seconds of a run (`periodic`) loses it.
            for (base, id) in complete.iter().filter_map(|id| Some((stores.get(table)?, id))) {
                full_disk(record_still_built(shared, base, *id, shared.run))?;
            }
        }
        for (base, id, _) in incomplete {
            shared.index_builds.add(shared, (base, id), false);
        }
        Ok(())
    }

    /// Writes the record of a table for this run. Forgets the files of indexes that are not complete; without any that is, those of the
    /// table too. A failure leaves the record of the run before, which is as right: the next change of files writes it, or fails.
    fn keep(
        &self,
        shared: &Shared,
        table: TableId,
        files: &Arc<IndexedFiles>,
        complete: &[TableId],
    ) -> Result<()> {
        let mut kept = complete.to_vec();
        if !kept.is_empty() {
            kept.push(table);
        }
        let written = match &shared.log {
            Some(log) => log.with_reserve(|| files.keep(&kept)),
            None => files.keep(&kept),
        };
        let stores = shared.tables.load();
        let Some(base) = stores.get(&table) else { return written };
        let hidden: Vec<_> = base.indexes().iter().map(|index| index.store.clone()).collect();
        for store in std::iter::once(base).chain(&hidden) {
            if !kept.contains(&store.table().id) {
                store.announce_in(None);
            }
        }
        written
    }
}

/// Tells a full disk, on which a start goes on, from other failures.
fn full_disk(done: Result<()>) -> Result<Option<Error>> {
    match done {
        Err(error) if error.disk_trouble() == Some(DiskTrouble::Full) => Ok(Some(error)),
        done => done.map(|()| None),
    }
}

/// Why an index that is recorded as built may lack entries.
fn doubt(files: &IndexedFiles, runs: &[Uuid], (table, id): (TableId, TableId)) -> Option<&'static str> {
    if runs.is_empty() {
        return Some("it was built by an earlier version");
    }
    match files.found_run() {
        None => Some("the record of its files in the table's folder is not there, or damaged"),
        Some(run) if !runs.contains(&run) => Some("the table's folder is that of an earlier run"),
        Some(_) if !files.is_found(table) => Some("the table's SSTables are others than at the last stop"),
        Some(_) if !files.is_found(id) => Some("its own SSTables are others than at the last stop"),
        Some(_) => None,
    }
}
