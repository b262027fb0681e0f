//! What holds space on the disk: every file of the database's directory, by purpose.
//!
//! It asks the names in the directory, and not what the server believes to have: files that were left behind show too.

use super::shared::{Database, Shared};
use crate::error::{Error, Result};
use crate::table::TableStore;
use helenus_host::Disk;
use helenus_sstable::component::Component;
use helenus_sstable::names::{Descriptor, is_temporary, parse_table_folder};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A purpose of space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SpacePurpose {
    /// SSTables of a table.
    Live,
    /// SSTables that cannot be read.
    Unreadable,
    /// SSTables that are being written.
    Writing,
    /// SSTables that were replaced or removed, and whose files are still there.
    Left,
    /// SSTables that were replaced or removed, and that readers still have open.
    HeldByReaders,
    /// Files that only a snapshot has.
    Snapshot,
    /// Files of dropped tables and indexes.
    DroppedTable,
    /// The commit log.
    CommitLog,
    /// What is kept of the commit log for consumers of changes.
    KeptChanges,
    /// Files that an import or a restore gathers.
    Import,
    /// Files that only an export has.
    Export,
    /// Temporary files.
    Temporary,
    /// Anything else.
    Other,
}

impl SpacePurpose {
    /// The purpose in words.
    pub fn describe(self) -> &'static str {
        match self {
            SpacePurpose::Live => "SSTables",
            SpacePurpose::Unreadable => "unreadable SSTables",
            SpacePurpose::Writing => "being written",
            SpacePurpose::Left => "waiting for removal",
            SpacePurpose::HeldByReaders => "held by readers",
            SpacePurpose::Snapshot => "snapshots",
            SpacePurpose::DroppedTable => "dropped tables",
            SpacePurpose::CommitLog => "commit log",
            SpacePurpose::KeptChanges => "kept changes",
            SpacePurpose::Import => "imports",
            SpacePurpose::Export => "exports",
            SpacePurpose::Temporary => "temporary files",
            SpacePurpose::Other => "other",
        }
    }
}

/// What something takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpaceUse {
    /// Bytes of its files.
    pub bytes: u64,
    /// Their number.
    pub files: u64,
}

/// What holds space: purpose, keyspace and table; both are empty where they mean nothing.
pub type SpaceHolder = (SpacePurpose, String, String);

/// The space of a database's directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiskUsage {
    /// Bytes that are free; `None` if the system does not tell.
    pub free_bytes: Option<u64>,
    /// What holds the others.
    pub uses: BTreeMap<SpaceHolder, SpaceUse>,
}

impl Database {
    /// What holds space on the disk. It walks through all folders of the database.
    ///
    /// # Errors
    /// A folder cannot be listed.
    pub fn disk_usage(&self) -> Result<DiskUsage> {
        let shared = &self.shared;
        let disk = &*shared.host.disk;
        let free_bytes = disk.free_bytes(&shared.options.dir).ok().filter(|free| *free != u64::MAX);
        let stores = shared.tables.load();
        let stores = stores.values().map(|store| (store.folder().to_owned(), store.clone())).collect();
        let usage = DiskUsage { free_bytes, uses: BTreeMap::new() };
        let mut walk = Walk { shared, disk, stores, seen: HashSet::new(), usage };
        walk.directory(&shared.options.dir)?;
        for (table, sstable) in shared.obsolete.open() {
            let holder = (SpacePurpose::HeldByReaders, table.keyspace.to_string(), table.name.to_string());
            let data = (sstable.descriptor().file_name(Component::Data), sstable.data_bytes());
            if !walk.seen.contains(&data) {
                walk.add(&holder, sstable.open_file_bytes());
            }
        }
        Ok(walk.usage)
    }
}

struct Walk<'a> {
    shared: &'a Shared,
    disk: &'a dyn Disk,
    stores: HashMap<PathBuf, Arc<TableStore>>,
    /// Names and sizes of the files of SSTables so far. Another such file is a link to it, and takes no space.
    seen: HashSet<(String, u64)>,
    usage: DiskUsage,
}

impl Walk<'_> {
    fn directory(&mut self, dir: &Path) -> Result<()> {
        let data = self.shared.data_dir();
        self.data(&data)?;
        for path in self.list(dir)?.into_iter().filter(|path| *path != data) {
            let purpose = match name(&path) {
                "commitlog" => SpacePurpose::CommitLog,
                "changes" => SpacePurpose::KeptChanges,
                "import" | "restore" => SpacePurpose::Import,
                "export" => SpacePurpose::Export,
                _ => SpacePurpose::Other,
            };
            self.all(&path, &(purpose, String::new(), String::new()))?;
        }
        Ok(())
    }

    fn data(&mut self, data: &Path) -> Result<()> {
        for keyspace in self.list(data)? {
            if !self.disk.is_dir(&keyspace) {
                self.all(&keyspace, &(SpacePurpose::Other, String::new(), String::new()))?;
                continue;
            }
            for folder in self.list(&keyspace)? {
                let of = name(&keyspace).to_owned();
                match (self.stores.get(&folder).cloned(), parse_table_folder(name(&folder))) {
                    (Some(store), _) => self.table(&store)?,
                    (None, Some((table, _))) => self.dropped(&folder, (of, table.to_owned()))?,
                    (None, None) => {
                        self.all(&folder, &(SpacePurpose::Other, of, String::new()))?;
                    }
                }
            }
        }
        Ok(())
    }

    /// The folder of a table, with those of its indexes in it.
    fn table(&mut self, store: &Arc<TableStore>) -> Result<()> {
        let files = self.list(store.folder())?;
        // Asked after the folder was listed: what is written later is not in the list.
        let (view, outputs, is_changing) = (store.view(), store.compaction.outputs(), store.is_changing());
        let live: BTreeSet<Descriptor> = view.sstables.iter().map(|sstable| *sstable.descriptor()).collect();
        let unreadable: BTreeSet<Descriptor> =
            view.unreadable.iter().filter_map(|unreadable| unreadable.descriptor).collect();
        let table = store.table();
        let holder = |purpose| (purpose, table.keyspace.to_string(), table.name.to_string());
        // Folders come last, because a file in a snapshot counts only if the table does not have it.
        let (folders, files): (Vec<_>, Vec<_>) = files.into_iter().partition(|path| self.disk.is_dir(path));
        for path in files {
            let purpose = match Descriptor::parse(name(&path)) {
                _ if is_temporary(name(&path)) => SpacePurpose::Temporary,
                Some((descriptor, _)) if live.contains(&descriptor) => SpacePurpose::Live,
                Some((descriptor, _)) if unreadable.contains(&descriptor) => SpacePurpose::Unreadable,
                Some((descriptor, _)) if outputs.contains(&descriptor) || is_changing => {
                    SpacePurpose::Writing
                }
                Some(_) => SpacePurpose::Left,
                None if name(&path).ends_with(".log") => SpacePurpose::Writing,
                None => SpacePurpose::Other,
            };
            self.count(&path, &holder(purpose));
        }
        for path in folders {
            match self.stores.get(&path).cloned() {
                Some(index) => self.table(&index)?,
                None if name(&path) == "snapshots" => {
                    self.all(&path, &holder(SpacePurpose::Snapshot))?;
                }
                None if name(&path).starts_with(".helenus-") => {
                    self.all(&path, &holder(SpacePurpose::DroppedTable))?;
                }
                None => self.all(&path, &holder(SpacePurpose::Other))?,
            }
        }
        Ok(())
    }

    fn dropped(&mut self, folder: &Path, (keyspace, table): (String, String)) -> Result<()> {
        for path in self.list(folder)? {
            let purpose = match name(&path) {
                "snapshots" => SpacePurpose::Snapshot,
                _ => SpacePurpose::DroppedTable,
            };
            self.all(&path, &(purpose, keyspace.clone(), table.clone()))?;
        }
        Ok(())
    }

    /// Counts a file, or everything in a folder.
    fn all(&mut self, path: &Path, holder: &SpaceHolder) -> Result<()> {
        if !self.disk.is_dir(path) || self.disk.is_link(path) {
            self.count(path, holder);
            return Ok(());
        }
        self.list(path)?.iter().try_for_each(|below| self.all(below, holder))
    }

    /// Counts a file, unless it is a link to one that counts already. It may be gone meanwhile.
    fn count(&mut self, path: &Path, holder: &SpaceHolder) {
        let Ok(bytes) = self.disk.file_bytes(path) else { return };
        let is_of_an_sstable = Descriptor::parse(name(path)).is_some();
        if !is_of_an_sstable || self.seen.insert((name(path).to_owned(), bytes)) {
            self.add(holder, bytes);
        }
    }

    fn add(&mut self, holder: &SpaceHolder, bytes: u64) {
        let space = self.usage.uses.entry(holder.clone()).or_default();
        space.bytes += bytes;
        space.files += 1;
    }

    /// The entries of a folder, which may be gone meanwhile.
    fn list(&self, folder: &Path) -> Result<Vec<PathBuf>> {
        match self.disk.list(folder) {
            Err(gone) if gone.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
            listed => listed.map_err(Error::io("list", folder)),
        }
    }
}

fn name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}
