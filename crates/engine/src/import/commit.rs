//! Puts gathered files into the tables: all of them, whatever happens in between.
//!
//! 1. The folder `<uuid>.staging` is renamed to `<uuid>.ready`, durably. From here on everything counts.
//! 2. For each table, under its lock: a transaction log in its folder, the files linked there, COMMIT, the view swapped, and
//!    its part of the `.ready` folder retired, durably. No compaction can replace the files before that last step, so what is found
//!    in both places at a start was linked and not yet removed.
//! 3. The folder goes.
//!
//! A start does the same with every `.ready` folder before it opens the tables, and removes `.staging` ones.

use super::ImportError;
use super::stage::{STAGING, StagedImport, import_folder, remove_all, retire};
use crate::database::{Database, Shared};
use crate::error::{Error, Result};
use crate::folder::make_folder_below;
use crate::index::{forget_built, rebuild};
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

/// Ends the name of a folder that counts.
const READY: &str = ".ready";

/// What was imported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Tables that got something, with how many SSTables.
    pub tables: Vec<(Arc<str>, Arc<str>, usize)>,
    /// Bytes of data files.
    pub bytes: u64,
}

impl Database {
    /// Makes an import count. Its tables must be in the schema by now.
    ///
    /// # Errors
    /// `UnknownTable` when one was dropped meanwhile: nothing counts then. After a failure of the disk on the way
    /// everything counts, and what is not in place yet is put there at the next start.
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
        // Before the files are there: a search that came between would miss what they hold.
        let mut indexed = stores.iter().filter(|(_, descriptors)| !descriptors.is_empty());
        let counts = indexed
            .try_for_each(|(store, _)| {
                forgotten.push(store);
                forget_built(shared, store)
            })
            // What is imported lasts from here on, and so must the tables that it is for, whose making may be in the log alone.
            .and_then(|()| shared.log.as_ref().map_or(Ok(()), |log| log.sync_up_to(log.position())))
            .and_then(|()| disk.rename(&staging, &ready).map_err(Error::io("rename", &staging)));
        if let Err(error) = counts {
            // Nothing counts, and the indexes have all there is: without this they would stay closed until a restart.
            forgotten.into_iter().for_each(|store| rebuild(shared, store));
            return Err(error.into());
        }
        staged.folder = None;
        let mut imported = Imported { tables: Vec::new(), bytes: staged.bytes };
        let synced = disk.sync_dir(&parent).map_err(Error::io("sync", &parent));
        if let Err(error) = synced.and_then(|()| take_in_all(shared, &ready, &stores, &mut imported)) {
            // The rest comes at the next start. Until then tables and indexes have what there is.
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

/// SSTables for a table.
type ForTable = (Arc<TableStore>, Vec<Descriptor>);

/// Puts gathered files into their tables, and says in `imported` which have theirs.
fn take_in_all(shared: &Shared, ready: &Path, stores: &[ForTable], imported: &mut Imported) -> Result<()> {
    for (store, descriptors) in stores {
        let table = store.table();
        let from = ready.join(&*table.keyspace).join(table_folder(&table.name, table.id));
        store.take_in(shared, &from, descriptors)?;
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

/// Finishes the imports that a cut left, and removes those that do not count. To be called when the schema is known and
/// its tables are not open yet. Returns the tables that got files.
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
    // Of a table that was dropped since, nothing is wanted.
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

/// Links the files of SSTables from one folder into another, under a transaction that says so first.
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
