//! Finds the SSTables that a command line names: files by any of their components, folders by all SSTables in them.

use super::known_schema::KnownSchema;
use anyhow::{Context, Result, anyhow, bail};
use helenus_host::Disk;
use helenus_sstable::Error;
use helenus_sstable::buffer::BufferPool;
use helenus_sstable::component::Component;
use helenus_sstable::names::{Descriptor, FOLDERS_ASIDE, Owner, is_of_the_system, owner_of_folder, refusal};
use helenus_sstable::table::SsTable;
use serde::Serialize;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An SSTable on disk.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Found {
    /// The folder of its files.
    pub folder: PathBuf,
    /// The version and the id in the names of its files.
    pub descriptor: Descriptor,
}

impl Found {
    /// The path of Data.db.
    pub fn data(&self) -> PathBuf {
        self.descriptor.path(&self.folder, Component::Data)
    }

    /// Keyspace, table and the name of the secondary index, if any, as far as the names of the folders tell them.
    pub fn owner(&self) -> (String, String, Option<String>) {
        let Owner { keyspace, table, index, .. } = owner_of_folder(&self.folder);
        (or_unknown(keyspace, "keyspace"), or_unknown(table, "table"), index)
    }

    /// Opens the SSTable with the schema of its own header. `known` decides where that has two readings.
    ///
    /// # Errors
    /// Damage; content that cannot be read.
    pub fn open(&self, disk: &dyn Disk, known: &KnownSchema) -> Result<Arc<SsTable>> {
        let (keyspace, table, _) = self.owner();
        let at = (&*self.folder, self.descriptor);
        let known = known.of(disk, self);
        let as_named = ((&*keyspace, &*table), known.as_deref());
        let opened = SsTable::open_by_header(disk, at, as_named, BufferPool::offline());
        opened.map_err(|error| self.unreadable(disk, error))
    }

    /// As `open`, for a command that reads from start to end and needs no index.
    ///
    /// # Errors
    /// Damage; content that cannot be read.
    pub fn open_for_scans(&self, disk: &dyn Disk, known: &KnownSchema) -> Result<Arc<SsTable>> {
        let (keyspace, table, _) = self.owner();
        let at = (&*self.folder, self.descriptor);
        let known = known.of(disk, self);
        let as_named = ((&*keyspace, &*table), known.as_deref());
        let opened = SsTable::open_for_scans(disk, at, as_named, BufferPool::offline());
        opened.map_err(|error| self.unreadable(disk, error))
    }

    /// Adds advice to an error of opening.
    pub fn unreadable(&self, disk: &dyn Disk, error: Error) -> anyhow::Error {
        let missing = |component| !disk.exists(&self.descriptor.path(&self.folder, component));
        let data = self.data();
        if missing(Component::Statistics) {
            return anyhow!(
                "{}: its {}-Statistics.db is not there, and nothing else says what a row looks like: copy it from where the \
                 SSTable came from",
                data.display(),
                self.descriptor
            );
        }
        if missing(Component::Data) {
            return anyhow!("{}: it is not there; other files of the SSTable are", data.display());
        }
        anyhow!(error)
    }
}

fn or_unknown(name: String, unknown: &str) -> String {
    if name.is_empty() { unknown.to_owned() } else { name }
}

fn file_name(path: &Path) -> &str {
    path.file_name().and_then(OsStr::to_str).unwrap_or_default()
}

/// A file that looks like an SSTable and cannot be read as one.
#[derive(Serialize)]
pub struct Refused {
    /// The path of the file.
    pub data: PathBuf,
    /// The reason, and advice.
    #[serde(rename = "refused")]
    pub reason: String,
}

/// The result of a search.
#[derive(Default)]
pub struct Findings {
    /// The SSTables, sorted.
    pub sstables: BTreeSet<Found>,
    /// The unreadable files, in the order in which they were found.
    pub refused: Vec<Refused>,
}

impl Findings {
    /// Writes the reason for each unreadable file, as a line of text or of JSON.
    ///
    /// # Errors
    /// Errors of writing.
    pub fn tell_refused(&self, json: bool, out: &mut impl Write) -> Result<()> {
        for refused in &self.refused {
            if json {
                serde_json::to_writer(&mut *out, refused)?;
                writeln!(out)?;
            } else {
                writeln!(out, "refused  {}", refused.reason)?;
            }
        }
        Ok(())
    }

    /// The result of a command that skipped unreadable files.
    ///
    /// # Errors
    /// There was an unreadable file.
    pub fn end(&self) -> Result<()> {
        match self.refused.len() {
            0 => Ok(()),
            1 => bail!("1 file is no SSTable that can be read here, and was left out"),
            count => bail!("{count} files are no SSTables that can be read here, and were left out"),
        }
    }
}

/// The SSTables that the arguments name, sorted. Folders are searched with their subfolders, except snapshots and backups, which
/// must be named.
///
/// # Errors
/// An argument that is not a file of an SSTable, a folder without SSTables, an unknown version.
pub fn find(disk: &dyn Disk, arguments: &[PathBuf]) -> Result<Vec<Found>> {
    let Findings { sstables, refused } = find_all(disk, arguments)?;
    match refused.into_iter().next() {
        None => Ok(sstables.into_iter().collect()),
        Some(Refused { reason, .. }) => Err(anyhow!(reason)),
    }
}

/// As `find`, for a command that skips unreadable files and reports each.
///
/// # Errors
/// An argument that does not exist, an empty folder.
pub fn find_all(disk: &dyn Disk, arguments: &[PathBuf]) -> Result<Findings> {
    let mut found = Findings::default();
    for argument in arguments {
        let path = std::path::absolute(argument).unwrap_or_else(|_| argument.clone());
        if disk.is_dir(&path) {
            let count = |found: &Findings| found.sstables.len() + found.refused.len();
            let before = count(&found);
            in_folder(disk, &path, &mut found)?;
            if count(&found) == before {
                bail!(
                    "{}: no SSTable is here (snapshots and backups are looked into when they are named)",
                    argument.display()
                );
            }
        } else if disk.exists(&path) {
            found.add(&path);
        } else {
            bail!("{}: there is no such file or folder", argument.display());
        }
    }
    Ok(found)
}

fn in_folder(disk: &dyn Disk, folder: &Path, found: &mut Findings) -> Result<()> {
    let entries = disk.list(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    for path in entries {
        let name = file_name(&path);
        if disk.is_dir(&path) {
            if !FOLDERS_ASIDE.contains(&name) && !is_of_the_system(name) {
                in_folder(disk, &path, found)?;
            }
        } else if is_an_sstables(&path) {
            found.add(&path);
        }
    }
    Ok(())
}

/// Whether a file is a Data.db, even of an unknown version. Other files beside SSTables are not.
fn is_an_sstables(path: &Path) -> bool {
    let name = file_name(path);
    let is_data = |(_, component): (Descriptor, &str)| component == Component::Data.name();
    Descriptor::parse(name).is_some_and(is_data) || refusal(path).is_some()
}

impl Findings {
    fn add(&mut self, path: &Path) {
        match of_file(path) {
            Ok(found) => _ = self.sstables.insert(found),
            Err(error) => self.refused.push(Refused { data: path.to_owned(), reason: error.to_string() }),
        }
    }
}

fn of_file(path: &Path) -> Result<Found> {
    let name = file_name(path);
    if let Some(refused) = refusal(path) {
        return Err(refused.into());
    }
    let Some((descriptor, _)) = Descriptor::parse(name) else {
        bail!(
            "{}: not the name of an SSTable's file (VERSION-ID-FORMAT-COMPONENT, as in nb-1-big-Data.db)",
            path.display()
        );
    };
    let folder = path.parent().unwrap_or(Path::new("")).to_owned();
    Ok(Found { folder, descriptor })
}

#[cfg(test)]
mod tests {
    use super::*;
    use helenus_host::memory;

    fn refused(disk: &dyn Disk, path: &str) -> String {
        find(disk, &[path.into()]).unwrap_err().to_string()
    }

    #[test]
    fn what_is_no_sstable_is_refused_with_what_to_do() {
        let host = memory::host();
        let disk = &*host.disk;
        for name in ["old/la-1-big-Data.db", "older/ks-t-ka-1-Data.db", "new/zz-1-big-Data.db", "other/notes"]
        {
            let path = Path::new("/d").join(name);
            disk.create_dir_all(path.parent().unwrap()).unwrap();
            drop(disk.create(&path).unwrap());
        }
        for folder in ["/d/old", "/d/older"] {
            let text = refused(disk, folder);
            assert!(text.contains("sstableupgrade of Cassandra 3.0 or 3.11"), "{text}");
        }
        assert!(refused(disk, "/d/new").contains("use a later Helenus"));
        assert!(refused(disk, "/d/other/notes").contains("as in nb-1-big-Data.db"));
        assert!(refused(disk, "/d/nowhere").contains("no such file or folder"));
        assert!(refused(disk, "/d/other").contains("when they are named"));
    }

    #[test]
    fn what_others_leave_in_a_folder_is_neither_found_nor_refused() {
        let host = memory::host();
        let disk = &*host.disk;
        for folder in ["/d/t/lost+found", "/d/t/@eaDir", "/d/t/snapshots/s", "/d/t/backups"] {
            disk.create_dir_all(Path::new(folder)).unwrap();
            drop(disk.create(&Path::new(folder).join("nb-7-big-Data.db")).unwrap());
        }
        let names = [
            "nb-1-big-Data.db",
            "._nb-1-big-Data.db",
            ".nb-1-big-Data.db.Xy12ab",
            "nb-1-big-Data.db.tmp",
            "nb-1-big-Data.db~",
            "Copy of nb-1-big-Data.db",
            ".DS_Store",
            "Thumbs.db",
            "manifest.json",
            "schema.cql",
            "nb-1-big-TOC.txt",
        ];
        for name in names {
            drop(disk.create(&Path::new("/d/t").join(name)).unwrap());
        }
        let found = find_all(disk, &["/d/t".into()]).unwrap();
        let names: Vec<String> = found.sstables.iter().map(|found| found.descriptor.to_string()).collect();
        assert_eq!(names, ["nb-1-big"]);
        assert!(found.refused.is_empty());
        // A file that is named explicitly is not skipped.
        assert!(refused(disk, "/d/t/Copy of nb-1-big-Data.db").contains("as in nb-1-big-Data.db"));
    }

    #[test]
    fn what_cannot_be_read_stands_beside_what_can() {
        let host = memory::host();
        let disk = &*host.disk;
        disk.create_dir_all(Path::new("/d/t")).unwrap();
        for name in ["nb-1-big-Data.db", "la-2-big-Data.db", "da-3-bti-Data.db", "zz-4-big-Data.db"] {
            drop(disk.create(&Path::new("/d/t").join(name)).unwrap());
        }
        let found = find_all(disk, &["/d".into()]).unwrap();
        let mut names: Vec<String> =
            found.sstables.iter().map(|found| found.descriptor.to_string()).collect();
        names.sort();
        assert_eq!(names, ["da-3-bti", "nb-1-big"]);
        assert_eq!(found.refused.len(), 2);
        assert!(
            found.refused.iter().all(|refused| refused.reason.contains(&*refused.data.to_string_lossy()))
        );
        let mut lines = Vec::new();
        found.tell_refused(true, &mut lines).unwrap();
        let lines = String::from_utf8(lines).unwrap();
        assert!(lines.starts_with("{\"data\":\"/d/t/la-2-big-Data.db\",\"refused\":\""), "{lines}");
        assert!(found.end().unwrap_err().to_string().starts_with("2 files"));
        assert!(refused(disk, "/d").contains("sstableupgrade"));
    }

    #[test]
    fn an_sstable_without_its_header_is_refused_by_the_name_of_what_is_missing() {
        let host = memory::host();
        host.disk.create_dir_all(Path::new("/d/t")).unwrap();
        drop(host.disk.create(Path::new("/d/t/nb-1-big-Data.db")).unwrap());
        let found = find(&*host.disk, &["/d/t".into()]).unwrap();
        let text = found[0].open(&*host.disk, &KnownSchema::default()).err().unwrap().to_string();
        assert!(text.contains("nb-1-big-Statistics.db is not there"), "{text}");
    }
}
