//! Restores a backup.
//!
//! From an archive, the needed files are first unpacked into the database's directory, and linked from there. They are
//! removed at the end, and unpacked again if an interrupted restore is ordered again.

use std::path::Path;

use helenus_cql::{LocalBackend, Renames, RestoreRequest};
use helenus_engine::import::{FindOptions, ImportOptions, ImportProgress, SourceDisk};
use helenus_engine::{CheckedName, uuid_of_name};
use helenus_host::Disk;

use super::archive::Archive;
use super::journal::Journal;
use super::manifest::BackupManifest;
use super::order::{RestoreOrder, Restored, RestoredTable};

/// Suffix of the folder into which an archive is unpacked.
const UNPACKED: &str = ".unpacked";

/// Restores a backup, a directory or an archive on the disk `from`. `database` is the database's directory, or `None`
/// in memory.
///
/// First every file is compared with the manifest, then every SSTable is read as one of its table; nothing changes
/// before that.
///
/// # Errors
/// All reasons why it cannot be done; failures of the disk, after which the same order continues where it stopped.
pub fn restore(
    backend: &LocalBackend,
    (from, database): (&SourceDisk, Option<&Path>),
    order: &RestoreOrder,
    progress: &ImportProgress,
) -> Result<Restored, String> {
    if order.as_table.is_some() && order.table.is_none() {
        return Err("--as-table renames one table: name it with --keyspace and --table".to_owned());
    }
    if order.as_keyspace.is_some() && order.keyspace.is_none() {
        return Err("--as-keyspace renames one keyspace: name it with --keyspace".to_owned());
    }
    let names = (order.keyspace.as_deref(), order.table.as_deref());
    if from.is_dir(&order.directory) || !from.exists(&order.directory) {
        let manifest = BackupManifest::read(&**from, &order.directory)?;
        know(&manifest, names)?;
        return restore_directory(backend, (from, database), (order, manifest), progress);
    }
    let archive = Archive::open(&**from, &order.directory)?;
    know(&archive.manifest, names)?;
    let folder = match database {
        Some(directory) => {
            let place = directory.join("restore");
            remove_left(&**from, &place).map_err(|error| format!("{}: {error}", place.display()))?;
            place.join(format!("{}{UNPACKED}", uuid::Uuid::new_v4()))
        }
        // A random name, so that no other user can have put anything there.
        None => std::env::temp_dir().join(format!("helenus-restore-{}", uuid::Uuid::new_v4())),
    };
    let wrong = |error: std::io::Error| format!("{}: {error}", folder.display());
    let unpacked = archive.unpack(&**from, &folder, names, progress);
    let restored = unpacked.and_then(|()| {
        let order = RestoreOrder { directory: folder.clone(), ..order.clone() };
        restore_directory(backend, (from, database), (&order, archive.manifest), progress)
    });
    let removed = remove_all(&**from, &folder).map_err(wrong);
    let place = format!("{}/", folder.display());
    let restored =
        restored.map_err(|text| text.replace(&place, &format!("{}: ", order.directory.display())))?;
    removed.map(|()| restored)
}

/// Removes what interrupted restores have unpacked, and nothing else: the owner of the folder may keep other files in it.
fn remove_left(disk: &dyn Disk, place: &Path) -> std::io::Result<()> {
    if !disk.is_dir(place) {
        return Ok(());
    }
    for path in disk.list(place)? {
        if uuid_of_name(&path, UNPACKED).is_some() && !disk.is_link(&path) {
            remove_all(disk, &path)?;
        }
    }
    Ok(())
}

/// The manifest of a backup, a directory or an archive.
///
/// # Errors
/// It is no backup.
pub fn manifest_of(disk: &dyn Disk, backup: &Path) -> Result<BackupManifest, String> {
    if disk.is_dir(backup) || !disk.exists(backup) {
        return BackupManifest::read(disk, backup);
    }
    Ok(Archive::open(disk, backup)?.manifest)
}

/// Removes a folder and its contents, if it exists.
///
/// # Errors
/// The disk fails.
pub fn remove_all(disk: &dyn Disk, folder: &Path) -> std::io::Result<()> {
    if disk.is_link(folder) {
        // The target of a link is not ours to empty.
        return disk.remove(folder);
    }
    if !disk.is_dir(folder) {
        return Ok(());
    }
    for path in disk.list(folder)? {
        if disk.is_dir(&path) && !disk.is_link(&path) {
            remove_all(disk, &path)?;
        } else {
            disk.remove(&path)?;
        }
    }
    disk.remove_dir(folder)
}

fn restore_directory(
    backend: &LocalBackend,
    (from, database): (&SourceDisk, Option<&Path>),
    (order, manifest): (&RestoreOrder, BackupManifest),
    progress: &ImportProgress,
) -> Result<Restored, String> {
    let names = (order.keyspace.as_deref(), order.table.as_deref());
    let problems = manifest.check(&**from, &order.directory, names, progress);
    let problems = problems.map_err(|error| format!("{}: {error}", order.directory.display()))?;
    if !problems.is_empty() {
        return Err(format!("nothing was restored:\n  {}", problems.join("\n  ")));
    }
    let request = RestoreRequest {
        directory: order.directory.clone(),
        find: FindOptions { snapshot: None, keyspace: order.keyspace.clone(), table: order.table.clone() },
        names: Renames { keyspace: order.as_keyspace.clone(), table: order.as_table.clone() },
        options: ImportOptions { link: !order.copy, verify: !order.no_verify, keep_level: true },
        dry_run: order.dry_run,
    };
    let id = CheckedName::new("a backup", &manifest.id).map_err(|error| error.to_string())?;
    let mut journal = Journal::open(&backend.database().host().disk, database, &id);
    let parts = backend.restore(from, &request, &mut journal, progress);
    let parts =
        parts.map_err(|error| error.to_string().replace("nothing was imported", "nothing was restored"))?;
    let table = |part: helenus_cql::RestorePart| RestoredTable {
        from: part.from,
        to: part.to,
        sstables: part.sstables,
        was_there: part.was_there,
    };
    Ok(Restored {
        files: manifest.files_of(names.0, names.1).count() as u64,
        bytes: manifest.files_of(names.0, names.1).map(|file| file.bytes).sum(),
        tables: parts.into_iter().map(table).collect(),
        backup: manifest.id,
        created_at: manifest.created_at,
        notes: Vec::new(),
    })
}

/// Checks that the backup contains the requested keyspace or table.
fn know(manifest: &BackupManifest, (keyspace, table): (Option<&str>, Option<&str>)) -> Result<(), String> {
    let has = |of: &super::BackedUpTable| {
        keyspace.is_none_or(|name| name == of.keyspace) && table.is_none_or(|name| name == of.table)
    };
    if manifest.tables.iter().any(has) || keyspace.is_none() {
        return Ok(());
    }
    let known: Vec<String> =
        manifest.tables.iter().map(|of| format!("{}.{}", of.keyspace, of.table)).collect();
    let asked = [keyspace, table].into_iter().flatten().collect::<Vec<_>>().join(".");
    Err(format!("the backup has no {asked}; it has: {}", known.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupted_restore_s_files_are_removed_and_no_others() {
        let disk = helenus_host::sim::Machine::new(1).host().disk;
        let id = "0b1c5c0e-5d0f-4a52-9d5c-0d8f6b1f3a11";
        let left = format!("/q/restore/{id}.unpacked/ks/x");
        let of_others = [
            "/q/restore/unpacked/x".to_owned(),
            format!("/q/restore/{id}/x"),
            "/q/restore/a.unpacked/x".to_owned(),
        ];
        for path in of_others.iter().chain([&left]) {
            disk.create_dir_all(Path::new(path).parent().unwrap()).unwrap();
            disk.create(Path::new(path)).unwrap();
        }
        remove_left(&*disk, Path::new("/q/restore")).unwrap();
        assert!(!disk.exists(Path::new(&format!("/q/restore/{id}.unpacked"))));
        assert!(of_others.iter().all(|path| disk.exists(Path::new(path))));
        remove_left(&*disk, Path::new("/q/nothing")).unwrap();
    }
}
