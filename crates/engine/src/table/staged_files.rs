//! The folder in which imports gather files (`DIR/import`), and what a start does with the imports in it.
//!
//! `crate::import` describes the steps of an import.

use crate::env::Env;
use crate::error::{Error, Result};
use crate::folder::{make_folder_below, remove_all, uuid_of_name};
use helenus_host::Disk;
use helenus_model::schema::{Schema, Table};
use helenus_sstable::component::Component;
use helenus_sstable::names::{Descriptor, parse_table_folder, table_folder};
use helenus_sstable::transaction_log::{Operation, TransactionLog, recover};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Suffix of a folder that does not count yet.
pub(crate) const STAGING: &str = ".staging";
/// Suffix of a folder that counts.
pub(crate) const READY: &str = ".ready";
/// Suffix of a table's folder in an import whose files are in the table by now. No table's folder has such a name.
const RETIRED: &str = ".retired";

/// Finishes committed imports that a crash interrupted, and removes uncommitted ones. Called when the schema is known
/// and its tables are not open yet. Returns the tables that got files.
pub(crate) fn finish_imports(env: &Env, schema: &Schema) -> Result<Vec<Arc<Table>>> {
    let disk = &env.host.disk;
    let folder = env.import_dir();
    let mut changed = Vec::new();
    if !disk.is_dir(&folder) {
        return Ok(changed);
    }
    for path in disk.list(&folder).map_err(Error::io("list", &folder))? {
        // An import makes a folder, and its owner may keep other files beside it.
        let is_own =
            |suffix| uuid_of_name(&path, suffix).is_some() && disk.is_dir(&path) && !disk.is_link(&path);
        let is_ready = is_own(READY);
        if is_ready {
            for keyspace in disk.list(&path).map_err(Error::io("list", &path))? {
                for from in disk.list(&keyspace).map_err(Error::io("list", &keyspace))? {
                    changed.extend(finish_table(env, schema, &from)?);
                }
            }
        }
        if is_ready || is_own(STAGING) {
            remove_all(&**disk, &path)?;
        }
    }
    Ok(changed)
}

fn finish_table(env: &Env, schema: &Schema, from: &Path) -> Result<Option<Arc<Table>>> {
    let id = from.file_name().and_then(|name| name.to_str()).and_then(parse_table_folder).map(|(_, id)| id);
    // Files of a table that was dropped since are not needed.
    let Some(table) = id.and_then(|id| schema.table_by_id(id)) else { return Ok(None) };
    let folder = env.data_dir().join(&*table.keyspace).join(table_folder(&table.name, table.id));
    let disk = &env.host.disk;
    make_folder_below(&**disk, &env.dir, &folder)?;
    recover(&**disk, &folder)?;
    let descriptors = descriptors_in(&**disk, from)?;
    let sstables = descriptors.len();
    let missing: BTreeSet<Descriptor> = descriptors
        .into_iter()
        .filter(|descriptor| !disk.exists(&descriptor.path(&folder, Component::Data)))
        .collect();
    if !missing.is_empty() {
        let mut transaction = TransactionLog::begin(disk.clone(), &folder, Operation::Write, env.next_uuid());
        link_all(&mut transaction, disk, (from, &folder), &missing)?;
        transaction.commit()?;
        transaction.finish()?;
    }
    if let Some(log) = &env.log {
        log.note_import(table.id, sstables)?;
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
pub(super) fn link_all(
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

/// Removes a folder whose files are linked into a table's folder. The folder is renamed first, durably, so that no
/// start imports its files again. Otherwise a power failure could bring back data that a compaction, a truncate or a
/// delete has removed from the table since.
pub(super) fn retire(disk: &dyn Disk, folder: &Path) -> Result<()> {
    let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let retired = folder.with_file_name(format!("{name}{RETIRED}"));
    if disk.is_dir(folder) {
        disk.rename(folder, &retired).map_err(Error::io("rename", folder))?;
    }
    // Also if an earlier attempt has renamed it and failed here.
    if let Some(parent) = folder.parent().filter(|parent| disk.is_dir(parent)) {
        disk.sync_dir(parent).map_err(Error::io("sync", parent))?;
    }
    remove_all(disk, &retired)
}

/// Removes the folder of an import once all its parts are retired.
pub(crate) fn clear_import(disk: &dyn Disk, ready: &Path) -> Result<()> {
    if !disk.is_dir(ready) {
        return Ok(());
    }
    for keyspace in disk.list(ready).map_err(Error::io("list", ready))? {
        let parts = disk.list(&keyspace).map_err(Error::io("list", &keyspace))?;
        let is_retired = |part: &PathBuf| part.to_str().is_some_and(|name| name.ends_with(RETIRED));
        if !parts.iter().all(is_retired) {
            return Ok(());
        }
    }
    remove_all(disk, ready)
}
