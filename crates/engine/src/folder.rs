//! Folders that are there for good once they were made.

use crate::error::{Error, Result};
use helenus_host::Disk;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Makes a folder and those above it, and their names durable: the name of a folder lasts only once the folder it
/// stands in was synced.
///
/// What is above a folder that is there already may not be ours to open, so it is not insisted on.
pub(crate) fn make_folder(disk: &dyn Disk, folder: &Path) -> Result<()> {
    let above = |dir: &Path| {
        dir.parent().filter(|above| !above.as_os_str().is_empty()).map_or(".".into(), Path::to_owned)
    };
    if disk.is_dir(folder) {
        // Made by a process that died before it came to this.
        let _ = disk.sync_dir(&above(folder));
        return Ok(());
    }
    let missing: Vec<&Path> =
        folder.ancestors().take_while(|dir| !dir.as_os_str().is_empty() && !disk.is_dir(dir)).collect();
    disk.create_dir_all(folder).map_err(Error::io("create", folder))?;
    for dir in missing.iter().rev() {
        let above = above(dir);
        disk.sync_dir(&above).map_err(Error::io("sync", &above))?;
    }
    Ok(())
}

/// Names in a directory that make it one of ours.
const OURS: [&str; 5] = ["helenus.lock", "host-id", "commitlog", "data", "of-cassandra"];
/// Folders in it that may lead to other disks, by links of its owner.
const BELOW: [&str; 5] = ["commitlog", "data", "export", "import", "restore"];

/// Takes the rights of others to the directory of a database away, so that nobody else reads what is in it, nor prepares a
/// file where one of ours will be. Which folders others had rights to.
///
/// A directory with other things in it, which somebody has named by mistake, stays as it is.
pub(crate) fn claim_folders(disk: &dyn Disk, dir: &Path) -> Result<Vec<PathBuf>> {
    let names = disk.list(dir).map_err(Error::io("list", dir))?;
    let is_ours = |path: &PathBuf| OURS.iter().any(|name| path.ends_with(name));
    let mut folders = BELOW.map(|name| dir.join(name)).to_vec();
    if names.is_empty() || names.iter().any(is_ours) {
        folders.insert(0, dir.to_owned());
    }
    let mut made_private = Vec::new();
    for folder in folders.into_iter().filter(|folder| disk.is_dir(folder)) {
        if disk.claim_dir(&folder).map_err(Error::io("use", &folder))? {
            made_private.push(folder);
        }
    }
    Ok(made_private)
}

/// Makes a folder below `base`, which is durable, and durable whoever made it or a part of the way to it.
pub(crate) fn make_folder_below(disk: &dyn Disk, base: &Path, folder: &Path) -> Result<()> {
    make_folders_below(disk, base, &[folder])
}

/// The same of several; what they stand in is synced once.
pub(crate) fn make_folders_below(disk: &dyn Disk, base: &Path, folders: &[&Path]) -> Result<()> {
    let mut above = BTreeSet::new();
    for folder in folders {
        disk.create_dir_all(folder).map_err(Error::io("create", folder))?;
        above.extend(folder.ancestors().skip(1).take_while(|dir| dir.starts_with(base)));
    }
    // A folder comes before those in it.
    for dir in above {
        disk.sync_dir(dir).map_err(Error::io("sync", dir))?;
    }
    Ok(())
}
