//! Exports the SSTables of tables: hard links of their files in a new folder of the database.
//!
//! The folder is `DIR/export/<uuid>/<keyspace>/<table>/`. Hard links need no space and keep the files, whatever
//! compactions do meanwhile. The caller copies, links or reads the files and then removes the folder. The next start
//! removes the folders that are left, and nothing else of `DIR/export`: its owner may keep other files there.

use crate::database::{Database, Shared};
use crate::error::{Error, Result};
use crate::folder::{make_folder_below, remove_all};
use crate::table::TableStore;
use helenus_model::schema::Table;
use helenus_sstable::names::Descriptor;
use helenus_sstable::sequential_writer::SequentialWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A folder with files of tables.
#[derive(Clone, Debug)]
pub struct Exported {
    /// The folder; its path is absolute if the database's directory is.
    pub folder: PathBuf,
    /// Keyspace, table, number of SSTables.
    pub tables: Vec<(Arc<str>, Arc<str>, u64)>,
}

/// Exports of a database's tables.
pub struct Exports<'d> {
    shared: &'d Arc<Shared>,
}

impl<'d> Exports<'d> {
    /// Those of this database.
    pub fn of(database: &'d Database) -> Exports<'d> {
        Exports { shared: &database.shared }
    }

    /// Flushes these tables and links all their SSTables into a new folder, each table as of one moment.
    ///
    /// # Errors
    /// A table has SSTables that cannot be read, or the disk failed. No folder is left then.
    pub fn link(&self, tables: &[Arc<Table>]) -> Result<Exported> {
        let shared = self.shared;
        let folder = shared.export_dir().join(shared.next_uuid().to_string());
        let exported = self.link_tables(tables, &folder);
        if exported.is_err() {
            // The first error is the useful one. The next start removes what remains.
            let _ = remove_all(&*shared.host.disk, &folder);
        }
        exported
    }

    fn link_tables(&self, tables: &[Arc<Table>], folder: &Path) -> Result<Exported> {
        let shared = self.shared;
        make_folder_below(&*shared.host.disk, &shared.options.dir, folder)?;
        let mut exported = Exported { folder: folder.to_owned(), tables: Vec::new() };
        for table in tables {
            let store = shared.table(table.id).ok_or_else(|| Error::unknown(table))?;
            store.flush(shared)?;
            let to = folder.join(&*table.keyspace).join(&*table.name);
            make_folder_below(&*shared.host.disk, &shared.options.dir, &to)?;
            let sstables = store.link_out(shared, &to)?.len() as u64;
            exported.tables.push((table.keyspace.clone(), table.name.clone(), sstables));
        }
        Ok(exported)
    }

    /// Writes a text to a new file, durably, in a folder that `export` or `snapshot` made.
    ///
    /// # Errors
    /// The disk failed.
    pub fn add_file(&self, path: &Path, text: &str) -> Result<()> {
        let mut out = SequentialWriter::create(&*self.shared.host.disk, path, false)?;
        out.write(text.as_bytes())?;
        out.finish()?;
        let folder = path.parent().unwrap_or(Path::new("."));
        self.shared.host.disk.sync_dir(folder).map_err(Error::io("sync", folder))
    }
}

impl TableStore {
    /// Links the files of every SSTable of the view into a folder. Returns the SSTables.
    pub(crate) fn link_out(&self, shared: &Shared, to: &Path) -> Result<Vec<Descriptor>> {
        let disk = &shared.host.disk;
        let view = self.with_stable_files(|view| {
            view.check_whole()?;
            let files = if view.sstables.is_empty() {
                Vec::new()
            } else {
                disk.list(self.folder()).map_err(Error::io("list", self.folder()))?
            };
            for sstable in &view.sstables {
                let prefix = sstable.descriptor().prefix();
                for path in &files {
                    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
                    if name.starts_with(&*prefix) {
                        disk.hard_link(path, &to.join(name)).map_err(Error::io("link", path))?;
                    }
                }
            }
            Ok(view.clone())
        })?;
        Ok(view.sstables.iter().map(|sstable| *sstable.descriptor()).collect())
    }
}
