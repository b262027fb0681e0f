//! Checks the SSTables to import and gathers them in a staging folder of the database, under new names.
//!
//! The folder is `DIR/import/<uuid>.staging/<keyspace>/<table>-<id>/`, on the disk of the tables, so that hard links
//! can put the files into the tables. Until it is renamed to `.ready`, the folder does not count, and the next start
//! removes it.

use super::check::check_source;
use super::imports::Imports;
use super::{ImportError, ImportProgress};
use crate::database::Shared;
use crate::folder::{make_folder_below, remove_all};
use crate::table::STAGING;
use helenus_host::Disk;
use helenus_model::schema::Table;
use helenus_sstable::component::Component;
use helenus_sstable::import::{CopyOptions, SsTableFiles, import_sstable};
use helenus_sstable::names::{Descriptor, table_folder};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How files are imported.
#[derive(Clone, Copy, Debug)]
pub struct ImportOptions {
    /// Link files that are on the database's disk and that the server's user alone can change (`Disk::link_if_own`). Others are
    /// copied: whoever can change a file in the database after its check changes what is read.
    pub link: bool,
    /// Read and verify every byte before anything is imported.
    pub verify: bool,
    /// Keep the SSTables' levels of levelled compaction.
    pub keep_level: bool,
}

impl Default for ImportOptions {
    fn default() -> ImportOptions {
        ImportOptions { link: true, verify: true, keep_level: false }
    }
}

/// The SSTables to import into one table.
#[derive(Clone, Debug)]
pub struct ImportTable {
    /// The table as it is in the database, or will be created there.
    pub table: Arc<Table>,
    /// SSTables with their folders.
    pub sstables: Vec<(PathBuf, Descriptor)>,
}

/// Checked files in a staging folder, which is removed with this value unless it is committed.
pub struct StagedImport {
    pub(super) shared: Arc<Shared>,
    /// The `.staging` folder; `None` after the commit.
    pub(super) folder: Option<PathBuf>,
    /// Tables and their new SSTables.
    pub(super) tables: Vec<(Arc<Table>, Vec<Descriptor>)>,
    /// Bytes of their data.
    pub(super) bytes: u64,
}

impl Imports<'_> {
    /// Checks all SSTables to import, and gathers them in a staging folder. `from` is the disk of the SSTables. The
    /// tables do not change.
    ///
    /// # Errors
    /// `Refused`, with all problems; failures of the disk.
    pub fn stage(
        &self,
        from: &Arc<dyn Disk>,
        tables: &[ImportTable],
        options: ImportOptions,
        progress: &ImportProgress,
    ) -> Result<StagedImport, ImportError> {
        let shared = &self.database.shared;
        let bytes = self.check(from, tables, options, progress)?;
        let sizes = |sstable: &(PathBuf, Descriptor)| data_bytes(&**from, sstable);
        let folder = shared.import_dir().join(format!("{}{STAGING}", shared.next_uuid()));
        let mut staged =
            StagedImport { shared: shared.clone(), folder: Some(folder.clone()), tables: Vec::new(), bytes };
        progress.begin(bytes);
        for import in tables {
            let descriptors = stage_table(shared, (from, options), (&folder, import), &mut |sstable| {
                progress.add(sizes(sstable));
            })?;
            staged.tables.push((import.table.clone(), descriptors));
        }
        Ok(staged)
    }

    /// Checks all SSTables to import. Returns the bytes of their data files.
    ///
    /// # Errors
    /// `Refused`, with all problems.
    pub fn check(
        &self,
        from: &Arc<dyn Disk>,
        tables: &[ImportTable],
        options: ImportOptions,
        progress: &ImportProgress,
    ) -> Result<u64, ImportError> {
        let sizes = |sstable: &(PathBuf, Descriptor)| data_bytes(&**from, sstable);
        let bytes = tables.iter().flat_map(|table| &table.sstables).map(sizes).sum();
        progress.begin(bytes);
        let mut problems = Vec::new();
        for ImportTable { table, sstables } in tables {
            for sstable in sstables {
                progress.describe(format!("check {}.{} {}", table.keyspace, table.name, sstable.1));
                let source = (sstable.0.as_path(), sstable.1);
                problems.extend(progress.part_of_total(sizes(sstable), |progress| {
                    check_source(&**from, source, table, options.verify, progress)
                }));
            }
        }
        if problems.is_empty() { Ok(bytes) } else { Err(ImportError::Refused { problems }) }
    }
}

fn data_bytes(from: &dyn Disk, (folder, descriptor): &(PathBuf, Descriptor)) -> u64 {
    let path = descriptor.path(folder, Component::Data);
    from.open(&path).and_then(|file| file.size()).unwrap_or_default()
}

fn stage_table(
    shared: &Shared,
    (from, options): (&Arc<dyn Disk>, ImportOptions),
    (folder, import): (&Path, &ImportTable),
    staged: &mut dyn FnMut(&(PathBuf, Descriptor)),
) -> Result<Vec<Descriptor>, ImportError> {
    let ImportTable { table, sstables } = import;
    let folder = folder.join(&*table.keyspace).join(table_folder(&table.name, table.id));
    let disk = &shared.host.disk;
    make_folder_below(&**disk, &shared.options.dir, &folder)?;
    let how = CopyOptions {
        link: options.link && Arc::ptr_eq(from, disk),
        keep_level: options.keep_level,
        without_page_checksums: false,
    };
    let mut descriptors = Vec::new();
    for sstable in sstables {
        let descriptor = Descriptor { id: shared.next_sstable_id(), ..sstable.1 };
        let source = SsTableFiles { disk: &**from, folder: &sstable.0, descriptor: sstable.1 };
        let target = SsTableFiles { disk: &**disk, folder: &folder, descriptor };
        import_sstable(source, target, how)?;
        descriptors.push(descriptor);
        staged(sstable);
    }
    Ok(descriptors)
}

impl Drop for StagedImport {
    fn drop(&mut self) {
        if let Some(folder) = &self.folder {
            // If this fails, the next start removes the folder.
            let _ = remove_all(&*self.shared.host.disk, folder);
        }
    }
}
