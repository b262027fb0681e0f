//! Snapshots of tables: hard links of their SSTables, in the same folders as in Cassandra, until somebody removes them.
//!
//! The folder is `DIR/data/<keyspace>/<table>-<id>/snapshots/<name>/`. It contains the files of each SSTable and the
//! text files that the caller adds (`manifest.json` and `schema.cql`, as in Cassandra). Hard links need no space, and
//! their content stays when the table changes, is truncated or dropped. A snapshot without its text files, because of a
//! crash, is valid too.

use crate::checked_name::CheckedName;
use crate::database::{Database, Shared};
use crate::error::{Error, Result};
use crate::folder::{make_folder_below, remove_all};
use helenus_host::Disk;
use helenus_model::schema::Table;
use helenus_sstable::component::Component;
use helenus_sstable::names::{Descriptor, parse_table_folder};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The folder of a table's snapshots.
const SNAPSHOTS: &str = "snapshots";
/// The file that contains the time of a snapshot.
pub const SNAPSHOT_MANIFEST: &str = "manifest.json";

/// A snapshot of one table.
#[derive(Clone, Debug)]
pub struct TakenSnapshot {
    /// The table.
    pub table: Arc<Table>,
    /// The folder.
    pub folder: PathBuf,
    /// The names of its Data.db files.
    pub data_files: Vec<String>,
}

/// A snapshot of one table, as found on the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundSnapshot {
    /// Its name.
    pub name: String,
    /// Its keyspace.
    pub keyspace: String,
    /// Its table, which may be dropped by now.
    pub table: String,
    /// Its folder.
    pub folder: PathBuf,
    /// Bytes of all its files.
    pub bytes: u64,
    /// Bytes of the files that the table no longer has: what removing the snapshot would free.
    pub bytes_alone: u64,
    /// The text of its manifest, if it has one.
    pub manifest: Option<String>,
}

/// The snapshots of a database's tables.
pub struct Snapshots<'d> {
    shared: &'d Arc<Shared>,
}

impl<'d> Snapshots<'d> {
    /// Those of this database.
    pub fn of(database: &'d Database) -> Snapshots<'d> {
        Snapshots { shared: &database.shared }
    }

    /// Takes a snapshot of tables, each as of one moment. With `flush`, the memtables are flushed before. Indexes are
    /// not included, because a restore builds them anew.
    ///
    /// # Errors
    /// `SnapshotExists` if one of the tables already has a snapshot of that name; unreadable SSTables; failures of the
    /// disk. Files made so far are removed then.
    pub fn take(&self, tables: &[Arc<Table>], name: &CheckedName, flush: bool) -> Result<Vec<TakenSnapshot>> {
        let shared = self.shared;
        let mut taken = Vec::new();
        for table in tables {
            let folder = self.folder(table, name)?;
            if shared.host.disk.is_dir(&folder) {
                let (keyspace, table) = (table.keyspace.to_string(), table.name.to_string());
                return Err(Error::SnapshotExists { name: name.to_string(), keyspace, table });
            }
            taken.push(TakenSnapshot { table: table.clone(), folder, data_files: Vec::new() });
        }
        for begun in 0..taken.len() {
            if let Err(error) = taken.get_mut(begun).map_or(Ok(()), |one| self.link(one, flush)) {
                for half in taken.iter().take(begun + 1) {
                    // The first error is the useful one. `clearsnapshot` removes what remains.
                    let _ = remove_all(&*shared.host.disk, &half.folder);
                }
                return Err(error);
            }
        }
        Ok(taken)
    }

    fn folder(&self, table: &Table, name: &CheckedName) -> Result<PathBuf> {
        let store = self.shared.table(table.id).ok_or_else(|| Error::unknown(table))?;
        Ok(store.folder().join(SNAPSHOTS).join(name))
    }

    fn link(&self, taken: &mut TakenSnapshot, flush: bool) -> Result<()> {
        let shared = self.shared;
        let disk = &*shared.host.disk;
        let store = shared.table(taken.table.id).ok_or_else(|| Error::unknown(&taken.table))?;
        if flush {
            store.flush(shared)?;
        }
        make_folder_below(disk, &shared.options.dir, &taken.folder)?;
        let linked = store.link_out(shared, &taken.folder)?;
        disk.sync_dir(&taken.folder).map_err(Error::io("sync", &taken.folder))?;
        let data = |descriptor: &Descriptor| {
            let path = descriptor.path(&taken.folder, Component::Data);
            path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned()
        };
        taken.data_files = linked.iter().map(data).collect();
        Ok(())
    }

    /// All snapshots, including those of dropped tables, ordered by keyspace, table and name.
    pub fn all(&self) -> Result<Vec<FoundSnapshot>> {
        let mut found = Vec::new();
        let disk = &*self.shared.host.disk;
        for keyspace in folders(disk, &self.shared.data_dir())? {
            for table in folders(disk, &keyspace)? {
                let name = file_name(&table);
                let Some((table_name, _)) = parse_table_folder(name) else { continue };
                for snapshot in folders(disk, &table.join(SNAPSHOTS))? {
                    let (bytes, bytes_alone) = sizes(disk, &snapshot, &table)?;
                    found.push(FoundSnapshot {
                        name: file_name(&snapshot).to_owned(),
                        keyspace: file_name(&keyspace).to_owned(),
                        table: table_name.to_owned(),
                        bytes,
                        bytes_alone,
                        manifest: manifest(disk, &snapshot)?,
                        folder: snapshot,
                    });
                }
            }
        }
        found.sort_by(|a, b| (&a.keyspace, &a.table, &a.name).cmp(&(&b.keyspace, &b.table, &b.name)));
        Ok(found)
    }

    /// Removes a snapshot.
    ///
    /// # Errors
    /// Failures of the disk.
    pub fn remove(&self, snapshot: &FoundSnapshot) -> Result<()> {
        let disk = &*self.shared.host.disk;
        remove_all(disk, &snapshot.folder)?;
        // The folders above it are not needed if the table was dropped or has no other snapshots.
        for above in snapshot.folder.ancestors().skip(1).take(2) {
            let is_empty = disk.list(above).is_ok_and(|left| left.is_empty());
            let is_live = file_name(above) != SNAPSHOTS && self.is_live(above);
            if !is_empty || is_live || disk.remove_dir(above).is_err() {
                break;
            }
        }
        Ok(())
    }

    fn is_live(&self, folder: &Path) -> bool {
        let id = parse_table_folder(file_name(folder)).map(|(_, id)| id);
        id.is_some_and(|id| self.shared.table(id).is_some())
    }
}

fn file_name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

fn folders(disk: &dyn Disk, folder: &Path) -> Result<Vec<PathBuf>> {
    if !disk.is_dir(folder) {
        return Ok(Vec::new());
    }
    let list = disk.list(folder).map_err(Error::io("list", folder))?;
    Ok(list.into_iter().filter(|path| disk.is_dir(path)).collect())
}

/// Bytes of a snapshot's files, and of those whose names are no longer in the table's folder.
fn sizes(disk: &dyn Disk, snapshot: &Path, table: &Path) -> Result<(u64, u64)> {
    let (mut all, mut alone) = (0, 0);
    for path in disk.list(snapshot).map_err(Error::io("list", snapshot))? {
        if disk.is_dir(&path) {
            let (bytes, _) = sizes(disk, &path, table)?;
            all += bytes;
            continue;
        }
        // The file may be removed meanwhile.
        let bytes = disk.open(&path).and_then(|file| file.size()).unwrap_or_default();
        all += bytes;
        if !disk.exists(&table.join(file_name(&path))) {
            alone += bytes;
        }
    }
    Ok((all, alone))
}

fn manifest(disk: &dyn Disk, snapshot: &Path) -> Result<Option<String>> {
    let path = snapshot.join(SNAPSHOT_MANIFEST);
    if !disk.exists(&path) {
        return Ok(None);
    }
    let bytes = helenus_sstable::table::read_whole(disk, &path)?;
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}
