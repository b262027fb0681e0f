//! Commits an import: puts the staged files into the tables, all of them even after a crash.
//!
//! 1. The folder `<uuid>.staging` is renamed to `<uuid>.ready`, durably. From here on the whole import counts.
//! 2. For each table, while its set of SSTables is locked: a transaction begins in its folder, the files are linked
//!    there, COMMIT is written, the view changes, and the table's part of the `.ready` folder is retired durably. No
//!    compaction can replace the files before that last step, so a start that finds a file in both places knows that it
//!    was linked and not yet removed.
//! 3. The `.ready` folder is removed.
//!
//! A start does the same with every `.ready` folder before it opens the tables, and removes `.staging` folders.

use super::ImportError;
use super::imports::Imports;
use super::stage::StagedImport;
use crate::database::{Shared, rebuild, record_not_built};
use crate::error::{Error, Result};
use crate::folder::remove_all;
use crate::journal::Event;
use crate::table::{READY, STAGING, TableStore};
use helenus_sstable::names::{Descriptor, table_folder};
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
    /// `UnknownTable` if one was dropped meanwhile: then nothing is imported. After a failure of the disk half-way, the
    /// whole import counts, and the next start puts the missing files in place.
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
        let mut imported = Imported { tables: Vec::new(), bytes: staged.bytes };
        let synced = disk.sync_dir(&parent).map_err(Error::io("sync", &parent));
        if let Err(error) = synced.and_then(|()| take_in_all(shared, &ready, &stores, &mut imported)) {
            // The next start imports the rest. Until then tables and indexes work with what is there.
            let rest = stores.iter().skip(imported.tables.len());
            for (store, _) in rest.filter(|(_, descriptors)| !descriptors.is_empty()) {
                store.expect_files();
                rebuild(shared, store);
            }
            return Err(error.into());
        }
        remove_all(disk, &ready)?;
        for (store, descriptors) in &stores {
            let (table, sstables) = (&store.table(), descriptors.len() as u64);
            shared.options.journal.note(&Event::Imported { table, sstables });
        }
        Ok(imported)
    }
}

/// A table with its staged SSTables.
type ForTable = (Arc<TableStore>, Vec<Descriptor>);

/// Puts staged files into their tables, and adds the finished tables to `imported`.
fn take_in_all(shared: &Shared, ready: &Path, stores: &[ForTable], imported: &mut Imported) -> Result<()> {
    for (store, descriptors) in stores {
        let table = store.table();
        let from = ready.join(&*table.keyspace).join(table_folder(&table.name, table.id));
        store.add_imported(shared, &from, descriptors)?;
        if !descriptors.is_empty() {
            rebuild(shared, store);
        }
        imported.tables.push((table.keyspace.clone(), table.name.clone(), descriptors.len()));
    }
    Ok(())
}

fn ready_name(staging: &Path) -> PathBuf {
    let name = staging.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    staging.with_file_name(format!("{}{READY}", name.strip_suffix(STAGING).unwrap_or(name)))
}
