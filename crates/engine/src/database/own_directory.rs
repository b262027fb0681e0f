//! Whether a directory may become one of a database: only a new or an empty one does, or one that is already.
//!
//! A path given by mistake, such as a home directory, must not get files of a database among its own, nor be closed to everybody
//! else (`folder::claim_folders`). The same is asked by `initdb` of PostgreSQL.

use crate::error::{Error, Result};
use helenus_host::Disk;
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// Files that only an opened database makes.
const MARKS: [&str; 2] = ["host-id", "helenus.lock"];
/// The folder of an adoption, which may be unfinished: the directory was never opened then.
const OF_ADOPTION: &str = "of-cassandra";
/// Folders of a database that its owner may have made before the first start, as links to other disks or mounts.
const PREPARED: [&str; 5] = ["commitlog", "data", "export", "import", "restore"];
/// Those of them that are empty before the first start.
const EMPTY_AT_FIRST: [&str; 3] = ["commitlog", "data", "export"];
/// What a start leaves that was killed before it had made `host-id`, and where the socket of tools is.
const LEFT: [&str; 2] = ["host-id.new", "admin.sock"];
/// The folder that a file system has at its root.
const OF_FILE_SYSTEM: &str = "lost+found";
/// The most names in a refusal.
const NAMES_MAX: usize = 3;

/// Whether a database was opened in a directory before: it has files that only a database makes, or a commit log of one, whose
/// other files somebody may have removed. What else lies in the directory does not matter.
pub fn is_database(disk: &dyn Disk, directory: &Path) -> bool {
    MARKS.iter().any(|mark| disk.exists(&directory.join(mark))) || has_log(disk, &directory.join("commitlog"))
}

/// Refuses a directory with files that are not of a database. `beside` are names of files that the owner keeps in it knowingly.
///
/// # Errors
/// `Foreign`; the directory cannot be read.
pub(super) fn check_is_own(disk: &dyn Disk, directory: &Path, beside: &[OsString]) -> Result<()> {
    if !disk.is_dir(directory) || is_database(disk, directory) || disk.exists(&directory.join(OF_ADOPTION)) {
        return Ok(());
    }
    let mut foreign = Vec::new();
    for path in disk.list(directory).map_err(Error::io("list", directory))? {
        let Some(name) = path.file_name() else { continue };
        if is_foreign(disk, (&path, name)) && !beside.iter().any(|own| own == name) {
            foreign.push(name.to_string_lossy().into_owned());
        }
    }
    if foreign.is_empty() {
        return Ok(());
    }
    foreign.sort();
    let is_of_cassandra = foreign.iter().any(|name| is_of_sstables(name));
    let more = foreign.len().saturating_sub(NAMES_MAX);
    foreign.truncate(NAMES_MAX);
    let mut found = foreign.join(", ");
    if more > 0 {
        found.push_str(&format!(" and {more} more"));
    }
    Err(Error::Foreign { path: directory.to_owned(), found, is_of_cassandra })
}

fn is_foreign(disk: &dyn Disk, (path, name): (&Path, &OsStr)) -> bool {
    let Some(name) = name.to_str() else { return true };
    if name.starts_with('.') || name == OF_FILE_SYSTEM || LEFT.contains(&name) {
        return false;
    }
    if EMPTY_AT_FIRST.contains(&name) && disk.is_dir(path) {
        // One that cannot be read will be told of when it is used.
        let names = disk.list(path).unwrap_or_default();
        return names.iter().filter_map(|path| path.file_name()?.to_str()).any(|name| !is_of_system(name));
    }
    !PREPARED.contains(&name)
}

fn is_of_system(name: &str) -> bool {
    name.starts_with('.') || name == OF_FILE_SYSTEM
}

/// Whether a folder has a commit log of a database, whose `host-id` somebody has removed to get a new one.
fn has_log(disk: &dyn Disk, folder: &Path) -> bool {
    let files = disk.list(folder).unwrap_or_default();
    files.iter().filter_map(|path| path.file_name()?.to_str()).any(|name| name.starts_with("helenus-"))
}

/// Whether this is the folder of a table as Cassandra names it, or a file of an SSTable.
fn is_of_sstables(name: &str) -> bool {
    let is_id = |id: &str| id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    name.ends_with("-Data.db") || name.rsplit_once('-').is_some_and(|(_, id)| is_id(id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::{Database, DatabaseOptions};
    use helenus_host::Host;
    use helenus_host::memory::host;

    fn put(host: &Host, path: &str) {
        let path = Path::new(path);
        host.disk.create_dir_all(path.parent().unwrap()).unwrap();
        host.disk.create(path).unwrap();
    }

    fn open(host: &Host) -> Result<()> {
        Database::open(host.clone(), DatabaseOptions::new("/q"))
            .map(|(database, _)| database.close().unwrap())
    }

    #[test]
    fn a_directory_with_files_of_others_is_refused_each_time_and_stays_as_it_is() {
        for (file, sstables) in [
            ("/q/x", false),
            ("/q/data/photo.jpg", false),
            ("/q/commitlog/CommitLog-7-1.log", false),
            ("/q/saved_caches/x", false),
            ("/q/export/report.csv", false),
            ("/q/export/0b1c5c0e-5d0f-4a52-9d5c-0d8f6b1f3a11/x", false),
            ("/q/t-7ad54392bcdd35a684174e047860b377/da-1-bti-Data.db", true),
            ("/q/da-1-bti-Data.db", true),
        ] {
            let host = host();
            put(&host, file);
            put(&host, "/q/.hidden");
            for _ in 0..2 {
                let refused = open(&host).unwrap_err();
                assert!(matches!(&refused, Error::Foreign { .. }), "{file}: {refused}");
                assert_eq!(refused.to_string().contains("helenus import"), sstables, "{file}: {refused}");
                assert_eq!(host.disk.list(Path::new("/q")).unwrap().len(), 2, "{file}: nothing was made");
            }
        }
        let host = host();
        ["a", "b", "c", "d", "e"].iter().for_each(|name| put(&host, &format!("/q/{name}")));
        assert!(open(&host).unwrap_err().to_string().contains("a, b, c and 2 more"));
    }

    #[test]
    fn a_directory_that_somebody_prepared_or_a_start_has_left_is_taken() {
        for file in [
            "/q/.hidden/x",
            "/q/lost+found/x",
            "/q/data/lost+found/x",
            "/q/commitlog/.hidden",
            "/q/export/lost+found/x",
            "/q/import/x",
            "/q/restore/x",
            "/q/helenus.lock",
            "/q/host-id.new",
            "/q/commitlog/helenus-0000000001.log",
        ] {
            let host = host();
            put(&host, file);
            // Any other error says that the file is not what its name says.
            if let Err(Error::Foreign { found, .. }) = open(&host) {
                panic!("{file}: {found}");
            }
        }
        let host = host();
        put(&host, "/q/helenus.yaml");
        let options = DatabaseOptions { beside: vec!["helenus.yaml".into()], ..DatabaseOptions::new("/q") };
        let (database, _) = Database::open(host.clone(), options).unwrap();
        database.close().unwrap();
        drop(database);
        put(&host, "/q/notes.txt");
        open(&host).unwrap();
    }

    #[test]
    fn a_start_removes_what_exports_and_imports_have_left_and_no_file_of_others_beside_it() {
        let host = host();
        open(&host).unwrap();
        let id = "0b1c5c0e-5d0f-4a52-9d5c-0d8f6b1f3a11";
        let left = [
            format!("/q/export/{id}/ks/t/da-1-bti-Data.db"),
            format!("/q/import/{id}.staging/ks/x"),
            format!("/q/import/{id}.ready/ks/t-7ad54392bcdd35a684174e047860b377/x"),
        ];
        let of_others = [
            "/q/export/report.csv".to_owned(),
            "/q/export/2026/report.csv".to_owned(),
            format!("/q/export/{}/x", id.to_uppercase()),
            format!("/q/export/{}/x", id.replace('-', "")),
            format!("/q/export/{id}.old/x"),
            "/q/import/batch.ready/orders/t/x".to_owned(),
            "/q/import/x.staging".to_owned(),
            "/q/import/.ready/x".to_owned(),
            format!("/q/import/old-{id}.ready/ks/t/x"),
            format!("/q/import/{id}.ready.staging/x"),
        ];
        left.iter().chain(&of_others).for_each(|path| put(&host, path));
        open(&host).unwrap();
        for path in &left {
            let folder: std::path::PathBuf = Path::new(path).iter().take(4).collect();
            assert!(!host.disk.exists(&folder), "{path}");
        }
        for path in &of_others {
            assert!(host.disk.exists(Path::new(path)), "{path}");
        }
    }
}
