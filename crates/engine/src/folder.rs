//! Folders that are there for good once they were made.

use crate::error::{Error, Result};
use helenus_host::Disk;
use std::path::Path;

/// Makes a folder and those above it, and their names durable: the name of a folder lasts only once the folder it
/// stands in was synced.
pub(crate) fn make_folder(disk: &dyn Disk, folder: &Path) -> Result<()> {
    if disk.is_dir(folder) {
        return Ok(());
    }
    let missing: Vec<&Path> =
        folder.ancestors().take_while(|dir| !dir.as_os_str().is_empty() && !disk.is_dir(dir)).collect();
    disk.create_dir_all(folder).map_err(Error::io("create", folder))?;
    for dir in missing.iter().rev() {
        let above = dir.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
        disk.sync_dir(above).map_err(Error::io("sync", above))?;
    }
    Ok(())
}
