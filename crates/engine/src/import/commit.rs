//! Commits an import: puts the staged files into the tables, all of them even after a crash.
//!
//! 1. The folder `<uuid>.staging` is renamed to `<uuid>.ready`, durably. From here on the whole import counts.
//! 2. For each table, while its set of SSTables is locked: a transaction begins in its folder, the files are linked
//!    there, COMMIT is written, the view changes, and the table's part of the `.ready` folder is retired durably. No
//!    compaction can replace the files before that last step, so a start that finds a file in both places knows that it
//!    was linked and not yet removed.
//! 3. The `.ready` folder is removed.
//!
//! A failure before the first table is changed undoes step 1. After that the rest of the import waits, and is tried again
//! until it is done (`database/leftovers.rs`): until then no tombstone of its tables is purged, and a TRUNCATE or DROP
//! removes its files first. A start does the same with every `.ready` folder before it opens the tables, and removes
//! `.staging` folders.

use super::ImportError;
use super::imports::Imports;
use super::stage::StagedImport;
use crate::database::{Shared, rebuild, record_not_built};
use crate::error::Error;
use crate::folder::remove_all;
use crate::journal::Event;
use crate::table::{ForTable, ImportPart, NotAdded, READY, STAGING, TableStore};
use helenus_host::Disk;
use helenus_sstable::names::table_folder;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What was imported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Keyspace, table and number of imported SSTables.
    pub tables: Vec<(Arc<str>, Arc<str>, usize)>,
    /// Bytes of data files.
    pub bytes: u64,
}

impl Imports<'_> {
    /// Commits an import. Its tables must be in the schema.
    ///
    /// # Errors
    /// `UnknownTable` if one was dropped meanwhile, and failures of the disk: then nothing is imported. `Unfinished` after
    /// a failure half-way: the whole import counts, and the missing files are put in place as soon as the disk allows.
    pub fn commit(&self, mut staged: StagedImport) -> std::result::Result<Imported, ImportError> {
        let shared = &self.database.shared;
        let disk = &*shared.host.disk;
        let mut stores = Vec::new();
        for (table, descriptors) in &staged.tables {
            let store = shared.table(table.id).ok_or_else(|| Error::UnknownTable {
                keyspace: table.keyspace.to_string(),
                table: table.name.to_string(),
            })?;
            stores.push((store, descriptors.clone()));
        }
        let Some(staging) = staged.folder.clone() else { return Ok(Imported::default()) };
        if !disk.is_dir(&staging) {
            return Ok(Imported::default()); // No table has a file.
        }
        let ready = ready_name(&staging);
        let parent = shared.import_dir();
        let mut forgotten = Vec::new();
        // Before the files are added: a search in between would miss their rows.
        let mut indexed = stores.iter().filter(|(_, descriptors)| !descriptors.is_empty());
        let counts = indexed
            .try_for_each(|(store, _)| {
                forgotten.push(store);
                record_not_built(shared, store)
            })
            // From here on the import is durable, so its tables must be too; their creation may only be in the log.
            .and_then(|()| shared.log.as_ref().map_or(Ok(()), |log| log.sync_up_to(log.position())))
            .and_then(|()| disk.rename(&staging, &ready).map_err(Error::io("rename", &staging)));
        if let Err(error) = counts {
            // The import does not count, and the indexes are complete: without a rebuild they would stay unavailable
            // until a restart.
            forgotten.into_iter().for_each(|store| rebuild(shared, store));
            return Err(error.into());
        }
        staged.folder = None;
        let parts: Vec<ForTable> = stores
            .iter()
            .map(|(store, descriptors)| {
                let table = store.table();
                let from = ready.join(&*table.keyspace).join(table_folder(&table.name, table.id));
                (store.clone(), ImportPart { from, descriptors: descriptors.clone(), is_added: false })
            })
            .collect();
        let synced = disk.sync_dir(&parent).map_err(Error::io("sync", &parent));
        // The name may last or not, and only a second rename would tell.
        let begun = synced.map_err(|error| (0, NotAdded { error, is_undone: true }));
        if let Err((count, NotAdded { error, is_undone })) = begun.and_then(|()| take_in_all(shared, &parts))
        {
            let rest = parts.iter().skip(count);
            let is_whole = count == 0 && is_undone;
            if is_whole && take_back(disk, (&ready, &staging), &parent) {
                staged.folder = Some(staging);
                forgotten.into_iter().for_each(|store| rebuild(shared, store));
                return Err(error.into());
            }
            let rest: Vec<&ForTable> = rest.collect();
            // The part that failed waits already, unless it was undone.
            let untried = rest.iter().skip(usize::from(!is_undone));
            untried.for_each(|(store, part)| store.await_import(part.clone()));
            for (store, _) in rest.iter().filter(|(_, part)| !part.descriptors.is_empty()) {
                rebuild(shared, store);
            }
            let tables = rest.iter().map(|(store, _)| name_of(store)).collect();
            let waiting = rest.into_iter().map(|(store, _)| store.clone());
            shared.leftovers.add_imports(shared, waiting, &error);
            return Err(ImportError::Unfinished { tables, source: Box::new(error) });
        }
        if let Err(error) = remove_all(disk, &ready) {
            // Its files are in the tables. The next start removes what is left of the folder.
            shared.options.journal.note(&Event::LeftBehind { path: &ready, error: &error });
        }
        let mut imported = Imported { tables: Vec::new(), bytes: staged.bytes };
        for (store, descriptors) in &stores {
            let (table, sstables) = (&store.table(), descriptors.len() as u64);
            imported.tables.push((table.keyspace.clone(), table.name.clone(), descriptors.len()));
            shared.options.journal.note(&Event::Imported { table, sstables });
        }
        Ok(imported)
    }
}

/// Puts staged files into their tables.
///
/// # Errors
/// The first failure, with the number of tables before it.
fn take_in_all(shared: &Shared, parts: &[ForTable]) -> std::result::Result<(), (usize, NotAdded)> {
    for (count, (store, part)) in parts.iter().enumerate() {
        store.add_imported(shared, part.clone()).map_err(|error| (count, error))?;
        if !part.descriptors.is_empty() {
            rebuild(shared, store);
        }
    }
    Ok(())
}

/// Takes an import back that has changed no table. Returns whether it certainly counts no more.
fn take_back(disk: &dyn Disk, (ready, staging): (&Path, &Path), parent: &Path) -> bool {
    if disk.rename(ready, staging).is_err() {
        return false;
    }
    if disk.sync_dir(parent).is_ok() {
        return true;
    }
    // It may count after a power cut, so it counts now too. If it cannot be named so again, it is gone from here, and a
    // part that finds no folder is over.
    let _ = disk.rename(staging, ready);
    false
}

fn name_of(store: &TableStore) -> String {
    let table = store.table();
    format!("{}.{}", table.keyspace, table.name)
}

fn ready_name(staging: &Path) -> PathBuf {
    let name = staging.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    staging.with_file_name(format!("{}{READY}", name.strip_suffix(STAGING).unwrap_or(name)))
}
