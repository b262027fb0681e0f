//! Makes folders durably, and makes them private.

use crate::error::{Error, Result};
use helenus_host::Disk;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Makes a folder and its missing ancestors durably: a folder's name is durable only once its parent folder was synced.
///
/// A failure to sync the parent of an existing folder is ignored, because we may not be allowed to open it.
pub(crate) fn make_folder(disk: &dyn Disk, folder: &Path) -> Result<()> {
    let above = |dir: &Path| {
        dir.parent().filter(|above| !above.as_os_str().is_empty()).map_or(".".into(), Path::to_owned)
    };
    if disk.is_dir(folder) {
        // The process that made the folder may have died before this sync.
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

/// Names that mark a directory as one of a database.
const DATABASE_FILES: [&str; 5] = ["helenus.lock", "host-id", "commitlog", "data", "of-cassandra"];
/// Folders that the owner may have replaced by links to other disks.
const DATABASE_FOLDERS: [&str; 5] = ["commitlog", "data", "export", "import", "restore"];

/// Removes the access of other users to the directory of a database, so that nobody else reads its files or creates
/// files in it. Returns the folders that others had access to.
///
/// A directory with unrelated files, which somebody has given by mistake, stays as it is.
pub(crate) fn claim_folders(disk: &dyn Disk, dir: &Path) -> Result<Vec<PathBuf>> {
    let names = disk.list(dir).map_err(Error::io("list", dir))?;
    let is_ours = |path: &PathBuf| DATABASE_FILES.iter().any(|name| path.ends_with(name));
    let mut folders = DATABASE_FOLDERS.map(|name| dir.join(name)).to_vec();
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

/// Makes a folder below `base`, which is durable already. The folder is durable then, even if another process had made
/// it or a part of its path.
pub(crate) fn make_folder_below(disk: &dyn Disk, base: &Path, folder: &Path) -> Result<()> {
    make_folders_below(disk, base, &[folder])
}

/// Makes several folders like `make_folder_below`; each parent folder is synced once.
pub(crate) fn make_folders_below(disk: &dyn Disk, base: &Path, folders: &[&Path]) -> Result<()> {
    let mut above = BTreeSet::new();
    for folder in folders {
        disk.create_dir_all(folder).map_err(Error::io("create", folder))?;
        above.extend(folder.ancestors().skip(1).take_while(|dir| dir.starts_with(base)));
    }
    // In this order, parents come before their subfolders.
    for dir in above {
        disk.sync_dir(dir).map_err(Error::io("sync", dir))?;
    }
    Ok(())
}

/// Removes a folder with everything in it.
pub(crate) fn remove_all(disk: &dyn Disk, folder: &Path) -> Result<()> {
    if disk.is_link(folder) {
        // The target of a link is not ours to empty.
        return disk.remove(folder).map_err(Error::io("remove", folder));
    }
    if !disk.is_dir(folder) {
        return Ok(());
    }
    for path in disk.list(folder).map_err(Error::io("list", folder))? {
        if disk.is_dir(&path) && !disk.is_link(&path) {
            remove_all(disk, &path)?;
        } else {
            disk.remove(&path).map_err(Error::io("remove", &path))?;
        }
    }
    disk.remove_dir(folder).map_err(Error::io("remove", folder))
}
