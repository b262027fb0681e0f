//! Folders that are there for good once they were made.

use crate::error::{Error, Result};
use helenus_host::Disk;
use std::path::Path;

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

/// Makes a folder below `base`, which is durable, and durable whoever made it or a part of the way to it.
pub(crate) fn make_folder_below(disk: &dyn Disk, base: &Path, folder: &Path) -> Result<()> {
    disk.create_dir_all(folder).map_err(Error::io("create", folder))?;
    let above: Vec<&Path> = folder.ancestors().skip(1).take_while(|dir| dir.starts_with(base)).collect();
    for dir in above.iter().rev() {
        disk.sync_dir(dir).map_err(Error::io("sync", dir))?;
    }
    Ok(())
}
