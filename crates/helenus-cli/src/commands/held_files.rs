//! Holds the present files of tables by hard links until they are released, for `export` and `backup`.

use super::target::{Target, TargetOptions};
use anyhow::{Context, Result, anyhow, bail};
use helenus_host::{Disk, Host};
use helenus_server::admin::{AdminAnswer, AdminRequest, ExportedFiles, ask, export};
use helenus_server::backup::remove_all;
use std::path::Path;

/// Holds the files: through a running server if one answers, otherwise by opening the directory.
///
/// # Errors
/// No database; tables that do not exist; a server in memory; failures of the disk.
pub fn hold_files(
    host: &Host,
    at: &TargetOptions,
    keyspace: Option<String>,
    table: Option<String>,
) -> Result<ExportedFiles> {
    match at.find_existing(host)? {
        Target::Server(socket) => match ask(&socket, &AdminRequest::Export { keyspace, table })? {
            AdminAnswer::Exported(exported) => Ok(exported),
            AdminAnswer::Error(text) => bail!("{text}"),
            _ => bail!("the server answered with something else than files"),
        },
        Target::Directory(opened) => {
            let done = export(&opened.database, keyspace.as_deref(), table.as_deref());
            opened.database.close()?;
            done.map_err(|text| anyhow!(text))
        }
    }
}

/// Releases the held files.
///
/// # Errors
/// Failures of the disk.
pub fn release_files(disk: &dyn Disk, held: &ExportedFiles) -> Result<()> {
    let removed = remove_all(disk, &held.folder);
    removed.with_context(|| format!("cannot remove {}", held.folder.display()))
}

/// Creates a folder and its parents.
///
/// # Errors
/// Failures of the disk.
pub fn make_folder(disk: &dyn Disk, folder: &Path) -> Result<()> {
    disk.create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))
}
