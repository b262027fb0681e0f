//! `backup.json`, the manifest of a backup.
//!
//! It is written last, so a directory without it is an incomplete backup. Digests are SHA-256 in hexadecimal digits, as
//! `sha256sum` prints them.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use helenus_engine::CheckedPath;
use helenus_engine::import::ImportProgress;
use helenus_host::Disk;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Name of the manifest.
pub const MANIFEST: &str = "backup.json";
/// The format version that is written, and the only one that is read.
const FORMAT: u32 = 1;
/// What a path in the manifest names, for errors.
pub(super) const FILE: &str = "a file of a backup";
/// Bytes read at a time.
const PIECE_BYTES: u64 = 1 << 20;

/// The contents of a backup.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupManifest {
    /// Format version of this file.
    pub format: u32,
    /// Identity of the backup.
    pub id: String,
    /// When it was taken, ISO 8601.
    pub created_at: String,
    /// Version of the program that took it.
    pub version: String,
    /// Its tables.
    pub tables: Vec<BackedUpTable>,
    /// All its files except this one.
    pub files: Vec<BackedUpFile>,
}

/// A table of a backup.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackedUpTable {
    /// Its keyspace.
    pub keyspace: String,
    /// Number of SSTables.
    pub table: String,
    /// SSTables.
    pub sstables: u64,
}

/// A file of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackedUpFile {
    /// Path relative to the backup's directory, with `/` as separator.
    #[serde(serialize_with = "write_path", deserialize_with = "read_path")]
    pub path: CheckedPath,
    /// Its size.
    pub bytes: u64,
    /// SHA-256 of its content.
    pub sha256: String,
}

fn write_path<S: serde::Serializer>(path: &CheckedPath, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(path.as_str())
}

fn read_path<'de, D: serde::Deserializer<'de>>(from: D) -> Result<CheckedPath, D::Error> {
    let path = String::deserialize(from)?;
    CheckedPath::new(FILE, &path).map_err(serde::de::Error::custom)
}

/// The digest and size of a file. `read` is called with the number of bytes read.
///
/// # Errors
/// The file cannot be read.
pub fn digest_of(disk: &dyn Disk, path: &Path, read: &mut dyn FnMut(u64)) -> io::Result<(String, u64)> {
    let file = disk.open(path)?;
    let size = file.size()?;
    let mut hash = Sha256::new();
    let mut piece = vec![0; PIECE_BYTES.min(size) as usize];
    let mut at = 0;
    while at < size {
        let length = (size - at).min(PIECE_BYTES);
        let Some(bytes) = piece.get_mut(..length as usize) else { break };
        file.read_exact_at(bytes, at)?;
        hash.update(&*bytes);
        at += length;
        read(length);
    }
    Ok((hex(&hash.finalize()), size))
}

/// Formats bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl BackupManifest {
    /// A manifest without files.
    pub fn new(id: String, created_at: String, version: &str) -> BackupManifest {
        let version = version.to_owned();
        BackupManifest { format: FORMAT, id, created_at, version, tables: Vec::new(), files: Vec::new() }
    }

    /// Writes the manifest durably. It must be the last file written to the directory.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, disk: &dyn Disk, directory: &Path) -> io::Result<()> {
        let text = self.text()?;
        let unfinished = directory.join(format!("{MANIFEST}.unfinished"));
        let file = disk.create(&unfinished)?;
        file.write_all_at(text.as_bytes(), 0)?;
        file.sync()?;
        disk.rename(&unfinished, &directory.join(MANIFEST))?;
        disk.sync_dir(directory)
    }

    /// The text of the manifest's file.
    pub(super) fn text(&self) -> io::Result<String> {
        serde_json::to_string_pretty(self).map_err(io::Error::other)
    }

    /// Reads the manifest of a directory.
    ///
    /// # Errors
    /// What is wrong with the manifest, in a sentence.
    pub fn read(disk: &dyn Disk, directory: &Path) -> Result<BackupManifest, String> {
        let path = directory.join(MANIFEST);
        if !disk.is_dir(directory) {
            return Err(format!("{}: there is no such directory or archive", directory.display()));
        }
        if !disk.exists(&path) {
            return Err(format!(
                "{}: there is no {MANIFEST}: not a backup, or one that was cut before its end; helenus import takes \
                 snapshots and exports",
                directory.display()
            ));
        }
        let text = helenus_engine::import::read_text(disk, &path).map_err(|error| error.to_string())?;
        BackupManifest::parse(text.as_bytes(), &path)
    }

    /// Parses a manifest. `path` is named in errors.
    pub(super) fn parse(text: &[u8], path: &Path) -> Result<BackupManifest, String> {
        let manifest: BackupManifest =
            serde_json::from_slice(text).map_err(|error| format!("{}: {error}", path.display()))?;
        if manifest.format != FORMAT {
            return Err(format!(
                "{}: format {} is not known; a newer helenus wrote this backup",
                path.display(),
                manifest.format
            ));
        }
        Ok(manifest)
    }

    /// The files of a keyspace or table, and the schema; all files if no names are given.
    pub fn files_of(
        &self,
        keyspace: Option<&str>,
        table: Option<&str>,
    ) -> impl Iterator<Item = &BackedUpFile> {
        let below = match (keyspace, table) {
            (Some(keyspace), Some(table)) => format!("{keyspace}/{table}/"),
            (Some(keyspace), None) => format!("{keyspace}/"),
            _ => String::new(),
        };
        self.files.iter().filter(move |file| {
            let path = file.path.as_str();
            path.starts_with(&below) || path == "schema.cql"
        })
    }

    /// Compares the listed files with those of a directory; returns every problem. Progress counts their bytes.
    ///
    /// # Errors
    /// A folder cannot be listed.
    pub fn check(
        &self,
        disk: &dyn Disk,
        directory: &Path,
        (keyspace, table): (Option<&str>, Option<&str>),
        progress: &ImportProgress,
    ) -> io::Result<Vec<String>> {
        progress.begin(self.files_of(keyspace, table).map(|file| file.bytes).sum());
        let mut problems = Vec::new();
        for file in self.files_of(keyspace, table) {
            let path = file.path.below(directory);
            progress.describe(format!("compare {}", file.path));
            if disk.is_link(&path) {
                problems.push(format!(
                    "{}: a symbolic link is no file of a backup; put the file there",
                    path.display()
                ));
            } else if !disk.exists(&path) {
                problems.push(format!("{}: this file is missing, and {MANIFEST} has it", path.display()));
            } else {
                problems.extend(differs(disk, &path, file, progress));
            }
        }
        let known: BTreeSet<PathBuf> = self.files.iter().map(|file| file.path.below(directory)).collect();
        let mut present = Vec::new();
        list(disk, directory, &mut present)?;
        let strange =
            present.iter().filter(|path| !known.contains(*path) && **path != directory.join(MANIFEST));
        problems.extend(
            strange.map(|path| format!("{}: not in the manifest, {MANIFEST}; move it out", path.display())),
        );
        Ok(problems)
    }
}

fn differs(disk: &dyn Disk, path: &Path, file: &BackedUpFile, progress: &ImportProgress) -> Option<String> {
    match digest_of(disk, path, &mut |bytes| progress.add(bytes)) {
        Err(error) => Some(format!("{}: {error}", path.display())),
        Ok((_, bytes)) if bytes != file.bytes => Some(format!(
            "{}: it has {bytes} bytes, and had {} when it was backed up, says {MANIFEST}",
            path.display(),
            file.bytes
        )),
        Ok((digest, _)) if digest != file.sha256 => {
            let path = path.display();
            Some(format!(
                "{path}: its content is not what was backed up: its SHA-256 is not that of {MANIFEST}"
            ))
        }
        Ok(_) => None,
    }
}

fn list(disk: &dyn Disk, folder: &Path, into: &mut Vec<PathBuf>) -> io::Result<()> {
    for path in disk.list(folder)? {
        if disk.is_dir(&path) && !disk.is_link(&path) {
            list(disk, &path, into)?;
        } else {
            into.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(host: &helenus_host::Host, content: &[(&str, &[u8])]) -> BackupManifest {
        let mut manifest = BackupManifest::new("id".to_owned(), "then".to_owned(), "1");
        for (path, bytes) in content {
            let target = Path::new("/b").join(path);
            host.disk.create_dir_all(target.parent().unwrap()).unwrap();
            host.disk.create(&target).unwrap().write_all_at(bytes, 0).unwrap();
            let (sha256, bytes) = digest_of(&*host.disk, &target, &mut |_| {}).unwrap();
            let path = CheckedPath::new(FILE, path).unwrap();
            manifest.files.push(BackedUpFile { path, bytes, sha256 });
        }
        manifest.write(&*host.disk, Path::new("/b")).unwrap();
        manifest
    }

    #[test]
    fn a_manifest_says_of_each_file_whether_it_is_what_it_was() {
        let host = helenus_host::memory::host();
        let disk = &*host.disk;
        let written = of(&host, &[("schema.cql", b"abc"), ("ks/t/da-1", b"12345"), ("ks/u/da-2", b"")]);
        let read = BackupManifest::read(disk, Path::new("/b")).unwrap();
        assert_eq!(read, written);
        // The example of FIPS 180-2.
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(read.files[0].sha256, abc);
        let check = |of| read.check(disk, Path::new("/b"), of, &ImportProgress::default()).unwrap();
        assert_eq!(check((None, None)), Vec::<String>::new());
        disk.open_write(Path::new("/b/ks/t/da-1")).unwrap().write_all_at(b"X", 2).unwrap();
        disk.remove(Path::new("/b/ks/u/da-2")).unwrap();
        disk.create(Path::new("/b/ks/u/da-3")).unwrap();
        let found = check((None, None)).join("\n");
        assert!(found.contains("/b/ks/t/da-1: its content is not what was backed up"), "{found}");
        assert!(
            found.contains("da-2: this file is missing") && found.contains("da-3: not in the manifest"),
            "{found}"
        );
        assert_eq!(check((Some("ks"), Some("u"))).len(), 2);
    }

    #[test]
    fn paths_of_a_manifest_stay_in_its_directory() {
        for hostile in ["../etc/passwd", "/etc/passwd", "a/../../b", "a//b", "", "a\0b"] {
            let text = serde_json::json!({ "path": hostile, "bytes": 1, "sha256": "" }).to_string();
            let error = serde_json::from_str::<BackedUpFile>(&text).unwrap_err().to_string();
            assert!(error.contains("a file of a backup cannot be named"), "{error}");
        }
    }
}
