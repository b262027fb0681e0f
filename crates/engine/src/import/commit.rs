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
use super::stage::{STAGING, StagedImport, import_folder, remove_all, retire};
use crate::database::{Database, Shared};
use crate::error::{Error, Result};
use crate::folder::make_folder_below;
use crate::index::{rebuild, record_not_built};
use crate::journal::Event;
use crate::table::TableStore;
use helenus_host::Disk;
use helenus_model::schema::{Schema, Table};
use helenus_sstable::component::Component;
use helenus_sstable::names::{Descriptor, parse_table_folder, table_folder};
use helenus_sstable::transaction_log::{Operation, TransactionLog, recover};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Suffix of a folder that counts.
const READY: &str = ".ready";

/// What was imported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Keyspace, table and number of imported SSTables.
    pub tables: Vec<(Arc<str>, Arc<str>, usize)>,
    /// Bytes of data files.
    pub bytes: u64,
}

impl Database {
    /// Commits an import. Its tables must be in the schema.
    ///
    /// # Errors
    /// `UnknownTable` if one was dropped meanwhile: then nothing is imported. After a failure of the disk half-way, the
    /// whole import counts, and the next start puts the missing files in place.
    pub fn commit_import(&self, mut staged: StagedImport) -> std::result::Result<Imported, ImportError> {
        let shared = &self.shared;
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
        let parent = import_folder(shared);
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

/// Finishes committed imports that a crash interrupted, and removes uncommitted ones. Called when the schema is known
/// and its tables are not open yet. Returns the tables that got files.
pub(crate) fn finish_imports(shared: &Shared, schema: &Schema) -> Result<Vec<Arc<Table>>> {
    let disk = &shared.host.disk;
    let folder = import_folder(shared);
    let mut changed = Vec::new();
    if !disk.is_dir(&folder) {
        return Ok(changed);
    }
    for path in disk.list(&folder).map_err(Error::io("list", &folder))? {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name.ends_with(READY) {
            for keyspace in disk.list(&path).map_err(Error::io("list", &path))? {
                for from in disk.list(&keyspace).map_err(Error::io("list", &keyspace))? {
                    changed.extend(finish_table(shared, schema, &from)?);
                }
            }
        }
        if name.ends_with(READY) || name.ends_with(STAGING) {
            remove_all(&**disk, &path)?;
        }
    }
    Ok(changed)
}

fn finish_table(shared: &Shared, schema: &Schema, from: &Path) -> Result<Option<Arc<Table>>> {
    let id = from.file_name().and_then(|name| name.to_str()).and_then(parse_table_folder).map(|(_, id)| id);
    // Files of a table that was dropped since are not needed.
    let Some(table) = id.and_then(|id| schema.table_by_id(id)) else { return Ok(None) };
    let folder = shared.data_dir().join(&*table.keyspace).join(table_folder(&table.name, table.id));
    let disk = &shared.host.disk;
    make_folder_below(&**disk, &shared.options.dir, &folder)?;
    recover(&**disk, &folder)?;
    let descriptors = descriptors_in(&**disk, from)?;
    let missing: BTreeSet<Descriptor> = descriptors
        .into_iter()
        .filter(|descriptor| !disk.exists(&descriptor.path(&folder, Component::Data)))
        .collect();
    if !missing.is_empty() {
        let mut transaction =
            TransactionLog::begin(disk.clone(), &folder, Operation::Write, shared.next_uuid());
        link_all(&mut transaction, disk, (from, &folder), &missing)?;
        transaction.commit()?;
        transaction.finish()?;
    }
    retire(&**disk, from)?;
    Ok(Some(table.clone()))
}

fn descriptors_in(disk: &dyn Disk, folder: &Path) -> Result<BTreeSet<Descriptor>> {
    let files = disk.list(folder).map_err(Error::io("list", folder))?;
    let names = files.iter().filter_map(|path| path.file_name()?.to_str());
    Ok(names.filter_map(Descriptor::parse).map(|(descriptor, _)| descriptor).collect())
}

/// Links the files of SSTables from one folder into another, after recording them in the transaction.
pub(crate) fn link_all(
    transaction: &mut TransactionLog,
    disk: &Arc<dyn Disk>,
    (from, to): (&Path, &Path),
    descriptors: &BTreeSet<Descriptor>,
) -> Result<()> {
    let files = disk.list(from).map_err(Error::io("list", from))?;
    for descriptor in descriptors {
        let prefix = descriptor.prefix();
        let of_it = |path: &&PathBuf| {
            path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(&*prefix))
        };
        let files: Vec<&PathBuf> = files.iter().filter(of_it).collect();
        transaction.add(descriptor, files.len())?;
        for path in files {
            let target = to.join(path.file_name().unwrap_or_default());
            disk.hard_link(path, &target).map_err(Error::io("link", &target))?;
        }
    }
    Ok(())
}
