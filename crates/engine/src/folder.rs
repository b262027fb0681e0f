//! Makes folders durably, and makes them private.

use crate::error::{Error, Result};
use helenus_host::Disk;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use uuid::Uuid;

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

/// Folders that the owner may have replaced by links to other disks.
const DATABASE_FOLDERS: [&str; 5] = ["commitlog", "data", "export", "import", "restore"];

/// Removes the access of other users to the directory of a database, so that nobody else reads its files or creates
/// files in it. Returns the folders that others had access to.
///
/// One with files of others was refused before (`database::own_directory`).
pub(crate) fn claim_folders(disk: &dyn Disk, dir: &Path) -> Result<Vec<PathBuf>> {
    let folders = [dir.to_owned()].into_iter().chain(DATABASE_FOLDERS.map(|name| dir.join(name)));
    let mut made_private = Vec::new();
    for folder in folders.filter(|folder| disk.is_dir(folder)) {
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

/// The id in a name that consists of a UUID and a suffix, exactly as this process writes such names. What a start removes
/// from a folder that its owner may use too is found by this, and not by a part of its name.
pub fn uuid_of_name(path: &Path, suffix: &str) -> Option<Uuid> {
    let digits = path.file_name()?.to_str()?.strip_suffix(suffix)?;
    Uuid::parse_str(digits).ok().filter(|id| id.to_string() == digits)
}

/// Removes the folders whose names are UUIDs, as interrupted exports have left them in `DIR/export`. Called by a start.
///
/// # Errors
/// The disk failed.
pub(crate) fn remove_left(disk: &dyn Disk, folder: &Path) -> Result<()> {
    if !disk.is_dir(folder) {
        return Ok(());
    }
    for path in disk.list(folder).map_err(Error::io("list", folder))? {
        // An export makes a folder: a link of such a name is somebody else's.
        if uuid_of_name(&path, "").is_some() && !disk.is_link(&path) {
            remove_all(disk, &path)?;
        }
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
