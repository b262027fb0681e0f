//! Which SSTables a command line means: files by any of their components, folders by all in them.

use anyhow::{Context, Result, bail};
use helenus_host::Disk;
use helenus_sstable::component::Component;
use helenus_sstable::names::{Descriptor, FOLDERS_ASIDE, Owner, owner_of_folder};
use helenus_sstable::recent_blocks::RecentBlocks;
use helenus_sstable::table::SsTable;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An SSTable on disk.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Found {
    /// Its folder.
    pub folder: PathBuf,
    /// Its names.
    pub descriptor: Descriptor,
}

impl Found {
    /// The file of its partitions.
    pub fn data(&self) -> PathBuf {
        self.descriptor.path(&self.folder, Component::Data)
    }

    /// Keyspace, table and, for the files of a secondary index, its name, as far as the folders above tell.
    pub fn owner(&self) -> (String, String, Option<String>) {
        let Owner { keyspace, table, index, .. } = owner_of_folder(&self.folder);
        (or_unknown(keyspace, "keyspace"), or_unknown(table, "table"), index)
    }

    /// Opens it by its own header.
    ///
    /// # Errors
    /// What is damaged or not read here.
    pub fn open(&self, disk: &dyn Disk) -> Result<Arc<SsTable>> {
        let (keyspace, table, _) = self.owner();
        let opened = SsTable::open_alone(
            disk,
            (&self.folder, self.descriptor),
            (&keyspace, &table),
            Arc::new(RecentBlocks::default()),
            [1, 2, 3],
        );
        opened.with_context(|| self.data().display().to_string())
    }
}

fn or_unknown(name: String, unknown: &str) -> String {
    if name.is_empty() { unknown.to_owned() } else { name }
}

fn file_name(path: &Path) -> &str {
    path.file_name().and_then(OsStr::to_str).unwrap_or_default()
}

/// The SSTables that arguments name, sorted. With `recursive`, folders mean those below them too, but for snapshots and
/// backups.
///
/// # Errors
/// An argument that is no SSTable's file, a folder without any, a version that is not known.
pub fn find(disk: &dyn Disk, arguments: &[PathBuf], recursive: bool) -> Result<Vec<Found>> {
    let mut found = BTreeSet::new();
    for argument in arguments {
        let path = std::path::absolute(argument).unwrap_or_else(|_| argument.clone());
        if disk.is_dir(&path) {
            let before = found.len();
            in_folder(disk, &path, recursive, &mut found)?;
            if found.len() == before {
                let hint = if recursive { "" } else { "; --recursive looks into the folders in it" };
                bail!("{}: no SSTable is here{hint}", argument.display());
            }
        } else if disk.exists(&path) {
            found.insert(of_file(&path)?);
        } else {
            bail!("{}: there is no such file or folder", argument.display());
        }
    }
    Ok(found.into_iter().collect())
}

fn in_folder(disk: &dyn Disk, folder: &Path, recursive: bool, found: &mut BTreeSet<Found>) -> Result<()> {
    let entries = disk.list(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    for path in entries {
        let name = file_name(&path);
        if disk.is_dir(&path) {
            if recursive && !FOLDERS_ASIDE.contains(&name) {
                in_folder(disk, &path, true, found)?;
            }
        } else if name.ends_with("-Data.db") {
            found.insert(of_file(&path)?);
        }
    }
    Ok(())
}

fn of_file(path: &Path) -> Result<Found> {
    let name = file_name(path);
    let Some((descriptor, _)) = Descriptor::parse(name) else {
        bail!(
            "{}: not the name of an SSTable's file of a known version (VERSION-ID-FORMAT-COMPONENT, as in nb-1-big-Data.db)",
            path.display()
        );
    };
    let folder = path.parent().unwrap_or(Path::new("")).to_owned();
    Ok(Found { folder, descriptor })
}
