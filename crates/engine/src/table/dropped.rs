//! Removes the files of dropped tables, without a transaction: no table uses them, so no order matters, and a removal needs
//! no space on a full disk.
//!
//! Before the DROP is logged, the table's folder gets the file `MARKER`. A start removes the folders with this file whose
//! tables are not in the schema. A folder of an unknown table without it is not touched: it may be a copy that somebody
//! has put there, or what is left of a lost schema. Snapshots and files of unknown names stay in any case.

use super::TableStore;
use super::indexed_files::{NAME, NEW_NAME};
use crate::env::Env;
use crate::error::{Error, Result};
use helenus_host::Disk;
use helenus_model::schema::TableId;
use helenus_sstable::names::{Descriptor, is_temporary, is_transaction_log, parse_table_folder};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

/// Name of the file that marks the folder of a table whose DROP has begun.
const MARKER: &str = ".helenus-dropping";
/// Prefix of the names of the folders of hidden tables.
pub(super) const INDEX_FOLDER_PREFIX: &str = ".helenus-";

impl TableStore {
    /// Marks the folder, durably. Called before the DROP is logged. May be called again after a failure.
    ///
    /// # Errors
    /// Failures of the disk. Without the mark, files stay if the process dies before they are removed.
    pub(crate) fn mark_dropping(&self, env: &Env) -> Result<()> {
        let (disk, folder, marker) = (&env.host.disk, self.folder(), self.folder().join(MARKER));
        if !disk.is_dir(folder) {
            return Ok(());
        }
        if !disk.exists(&marker) {
            disk.create(&marker).map_err(Error::io("create", &marker))?;
        }
        disk.sync_dir(folder).map_err(Error::io("sync", folder))
    }

    /// Takes the mark off again: the table stays.
    pub(crate) fn unmark_dropping(&self, env: &Env) -> Result<()> {
        let marker = self.folder().join(MARKER);
        if !env.host.disk.exists(&marker) {
            return Ok(());
        }
        env.host.disk.remove(&marker).map_err(Error::io("remove", &marker))
    }

    /// Removes the table's files and folder for good. Returns whether all are gone; a compaction that is under way removes
    /// its own later.
    ///
    /// # Errors
    /// The first failure, after everything was tried.
    pub(crate) fn drop_files(&self, env: &Env) -> Result<bool> {
        self.dropped.store(true, Ordering::Release);
        let mut changing = self.changing.lock();
        {
            let _gate = env.gate.close();
            self.empty_view(env, &mut changing, None);
        }
        let abandoned = self.abandon_imports(env, &mut changing);
        // An output is registered before its first file exists, and a transaction before its log.
        let is_compacted = self.compaction.has_running();
        let outputs = self.compaction.outputs();
        let is_in_use = |path: &Path| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let is_output = Descriptor::parse(name).is_some_and(|(found, _)| outputs.contains(&found));
            is_output || self.compaction.is_running(path)
        };
        let is_gone = remove_folder(&*env.host.disk, self.folder(), &is_in_use)?;
        abandoned?;
        Ok(is_gone && !is_compacted)
    }
}

/// Removes what dropped tables have left: marked folders of tables that do not exist, and of their indexes. Called by a
/// start. Returns the folders of which something stayed, with the reason.
pub(crate) fn remove_dropped(env: &Env, exists: impl Fn(TableId) -> bool) -> Vec<(PathBuf, Error)> {
    let disk = &*env.host.disk;
    let folders = |folder: &Path| -> Vec<PathBuf> {
        let entries = disk.list(folder).unwrap_or_default();
        entries.into_iter().filter(|path| disk.is_dir(path) && !disk.is_link(path)).collect()
    };
    let is_left = |folder: &Path| {
        let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let id = parse_table_folder(name).map(|(_, id)| id);
        id.is_some_and(|id| !exists(id)) && disk.exists(&folder.join(MARKER))
    };
    let tables = folders(&env.data_dir()).into_iter().flat_map(|keyspace| folders(&keyspace));
    let mut failed = Vec::new();
    for table in tables {
        let left = match is_left(&table) {
            true => vec![table],
            false => {
                folders(&table).into_iter().filter(|folder| is_index(folder) && is_left(folder)).collect()
            }
        };
        for folder in left {
            if let Err(error) = remove_folder(disk, &folder, &|_| false) {
                failed.push((folder, error));
            }
        }
    }
    failed
}

fn is_index(folder: &Path) -> bool {
    let name = folder.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.starts_with(INDEX_FOLDER_PREFIX))
}

/// Removes the SSTables and transaction logs of a folder, those of indexes in it, and the folder if nothing else is there.
/// Returns whether nothing of these is left.
fn remove_folder(disk: &dyn Disk, folder: &Path, is_in_use: &dyn Fn(&Path) -> bool) -> Result<bool> {
    if !disk.is_dir(folder) {
        return Ok(true);
    }
    let (mut is_gone, mut first) = (true, None);
    for path in disk.list(folder).map_err(Error::io("list", folder))? {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let done = if is_index(&path) && disk.is_dir(&path) {
            remove_folder(disk, &path, is_in_use)
        } else if [NAME, NEW_NAME].contains(&name) {
            remove_file(disk, &path).map(|()| true)
        } else if !(Descriptor::parse(name).is_some() || is_temporary(name) || is_transaction_log(name)) {
            Ok(true)
        } else if is_in_use(&path) {
            Ok(false)
        } else {
            remove_file(disk, &path).map(|()| true)
        };
        is_gone &= done.unwrap_or_else(|error| {
            first = first.take().or(Some(error));
            false
        });
    }
    if let Some(error) = first {
        return Err(error);
    }
    if is_gone {
        // Last: until then, a start finds the folder by it.
        let marker = folder.join(MARKER);
        if disk.exists(&marker) {
            disk.sync_dir(folder).map_err(Error::io("sync", folder))?;
            remove_file(disk, &marker)?;
        }
        if disk.list(folder).is_ok_and(|left| left.is_empty()) {
            match disk.remove_dir(folder) {
                Err(gone) if gone.kind() == ErrorKind::NotFound => {}
                removed => removed.map_err(Error::io("remove", folder))?,
            }
        }
    }
    Ok(is_gone)
}

/// Removes a file, which a compaction that ends may have removed.
pub(super) fn remove_file(disk: &dyn Disk, path: &Path) -> Result<()> {
    match disk.remove(path) {
        Err(gone) if gone.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed.map_err(Error::io("remove", path)),
    }
}
