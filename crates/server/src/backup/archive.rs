//! A backup as one file: a tar archive that `tar` reads on every system (POSIX's ustar, with GNU's sizes beyond 8 GiB).
//!
//! Each file follows a header block with its name; the manifest is last. An archive that a user made with `tar -cf`
//! from a backup's directory can be read too; then all files are below one folder. Links, long names in extra blocks
//! and other features that are never written here are refused.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use helenus_engine::CheckedPath;
use helenus_engine::import::ImportProgress;
use helenus_host::{Disk, File};
use sha2::{Digest, Sha256};
use tar::{EntryType, Header};

use super::manifest::{BackedUpFile, BackupManifest, FILE, MANIFEST, hex};

/// Block size of the archive: headers, contents and the end are padded to it.
const BLOCK: u64 = 512;
/// Bytes copied at a time.
const PIECE_BYTES: u64 = 1 << 20;
/// Most files of an archive that is read, to bound memory.
const ENTRIES_MAX: usize = 1 << 20;
/// Longest manifest that is read.
const MANIFEST_BYTES_MAX: u64 = 1 << 30;

/// Writes an archive, under a temporary name until it is complete.
pub struct ArchiveWriter {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    file: Arc<dyn File>,
    at: u64,
    mtime_s: u64,
}

impl ArchiveWriter {
    /// Begins an archive. One that an earlier run left unfinished is replaced.
    ///
    /// # Errors
    /// The name exists already, or the disk fails.
    pub fn begin(disk: &Arc<dyn Disk>, path: &Path, mtime_s: u64) -> io::Result<ArchiveWriter> {
        if disk.exists(path) {
            let text = format!("{} is there already; give another name", path.display());
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
        }
        let unfinished = unfinished(path);
        if disk.exists(&unfinished) {
            disk.remove(&unfinished)?;
        }
        let file = disk.create(&unfinished)?;
        Ok(ArchiveWriter { disk: Arc::clone(disk), path: path.to_owned(), file, at: 0, mtime_s })
    }

    /// Adds a file and returns its digest and size. `read` is called with the number of bytes copied.
    ///
    /// # Errors
    /// The name is not valid in an archive, or the disk fails.
    pub fn add(&mut self, name: &str, source: &Path, read: &mut dyn FnMut(u64)) -> io::Result<(String, u64)> {
        let from = self.disk.open(source)?;
        let size = from.size()?;
        self.put_head(name, size)?;
        let mut hash = Sha256::new();
        let mut piece = vec![0; PIECE_BYTES.min(size) as usize];
        let mut done = 0;
        while done < size {
            let length = (size - done).min(PIECE_BYTES);
            let Some(bytes) = piece.get_mut(..length as usize) else { break };
            from.read_exact_at(bytes, done)?;
            hash.update(&*bytes);
            self.put(bytes)?;
            done += length;
            read(length);
        }
        self.pad()?;
        Ok((hex(&hash.finalize()), size))
    }

    /// Adds the manifest, completes the archive durably and gives it its name.
    ///
    /// # Errors
    /// The disk fails.
    pub fn finish(mut self, manifest: &BackupManifest) -> io::Result<()> {
        let text = manifest.text()?;
        self.put_head(MANIFEST, text.len() as u64)?;
        self.put(text.as_bytes())?;
        self.pad()?;
        self.put(&[0; 2 * BLOCK as usize])?;
        self.file.sync()?;
        self.disk.rename(&unfinished(&self.path), &self.path)?;
        match self.path.parent() {
            Some(folder) => self.disk.sync_dir(folder),
            None => Ok(()),
        }
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, self.at)?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    fn pad(&mut self) -> io::Result<()> {
        let missing = self.at.next_multiple_of(BLOCK) - self.at;
        self.put(&vec![0; missing as usize])
    }

    fn put_head(&mut self, name: &str, size: u64) -> io::Result<()> {
        let head = head(name, size, self.mtime_s)
            .map_err(|error| io::Error::new(error.kind(), format!("{name}: {error}")))?;
        self.put(head.as_bytes())
    }
}

fn unfinished(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".unfinished");
    PathBuf::from(name)
}

/// The header block of a file.
fn head(name: &str, size: u64, mtime_s: u64) -> io::Result<Header> {
    let mut head = Header::new_ustar();
    head.set_path(name)?;
    head.set_mode(0o600);
    head.set_uid(0);
    head.set_gid(0);
    head.set_size(size);
    head.set_mtime(mtime_s);
    head.set_entry_type(EntryType::Regular);
    head.set_cksum();
    Ok(head)
}

/// A file of an archive, with its name unchecked.
struct Found {
    path: String,
    offset: u64,
    size: u64,
}

/// A file of an archive, with its name checked.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    path: CheckedPath,
    offset: u64,
    size: u64,
}

/// An archive that is being read.
pub(super) struct Archive {
    file: Arc<dyn File>,
    path: PathBuf,
    entries: Vec<Entry>,
    pub manifest: BackupManifest,
}

impl Archive {
    /// Lists the files of an archive and reads its manifest.
    ///
    /// # Errors
    /// What is wrong with the archive, in a sentence.
    pub fn open(disk: &dyn Disk, path: &Path) -> Result<Archive, String> {
        let wrong = |error: io::Error| format!("{}: {error}", path.display());
        let file = disk.open(path).map_err(wrong)?;
        let found_entries = entries(&*file).map_err(|problem| format!("{}: {problem}", path.display()))?;
        let is_manifest =
            |entry: &&Found| entry.path == MANIFEST || entry.path.ends_with(&format!("/{MANIFEST}"));
        let Some(found) = found_entries.iter().filter(is_manifest).min_by_key(|entry| entry.path.len())
        else {
            return Err(format!(
                "{}: there is no {MANIFEST} in it: not a backup, or one that was cut before its end",
                path.display()
            ));
        };
        if found.size > MANIFEST_BYTES_MAX {
            return Err(format!("{}: its {MANIFEST} is too long", path.display()));
        }
        let folder = found.path.strip_suffix(MANIFEST).unwrap_or_default().to_owned();
        let mut text = vec![0; found.size as usize];
        file.read_exact_at(&mut text, found.offset).map_err(wrong)?;
        let manifest = BackupManifest::parse(&text, path)?;
        let mut entries = Vec::with_capacity(found_entries.len());
        for Found { path: name, offset, size } in found_entries {
            let below = name.strip_prefix(&folder).unwrap_or("/");
            let checked = CheckedPath::new(FILE, below).map_err(|_| {
                let leads_out = CheckedPath::new(FILE, &name).err().map(|error| format!(": {error}"));
                format!(
                    "{}: {name:.200?} leads out of the backup{}",
                    path.display(),
                    leads_out.unwrap_or_default()
                )
            })?;
            entries.push(Entry { path: checked, offset, size });
        }
        Ok(Archive { file, path: path.to_owned(), entries, manifest })
    }

    /// Unpacks the files of a keyspace or table, and the manifest, into a folder. Files of an earlier run are
    /// overwritten.
    ///
    /// # Errors
    /// What is wrong with the archive, or failures of the disk.
    pub fn unpack(
        &self,
        disk: &dyn Disk,
        to: &Path,
        (keyspace, table): (Option<&str>, Option<&str>),
        progress: &ImportProgress,
    ) -> Result<(), String> {
        let paths = |files: &mut dyn Iterator<Item = &'_ BackedUpFile>| -> HashSet<CheckedPath> {
            files.map(|file| file.path.clone()).collect()
        };
        let known = paths(&mut self.manifest.files.iter());
        let asked = paths(&mut self.manifest.files_of(keyspace, table));
        // Files that the manifest does not list are unpacked too, so that the check reports them.
        let is_wanted = |entry: &&Entry| asked.contains(&entry.path) || !known.contains(&entry.path);
        let wanted: Vec<&Entry> = self.entries.iter().filter(is_wanted).collect();
        progress.begin(wanted.iter().map(|entry| entry.size).sum());
        for entry in wanted {
            progress.describe(format!("unpack {}", entry.path));
            self.unpack_one(disk, entry, &entry.path.below(to), progress)
                .map_err(|error| format!("{}: {}: {error}", self.path.display(), entry.path))?;
        }
        Ok(())
    }

    fn unpack_one(
        &self,
        disk: &dyn Disk,
        entry: &Entry,
        to: &Path,
        progress: &ImportProgress,
    ) -> io::Result<()> {
        if let Some(folder) = to.parent() {
            disk.create_dir_all(folder)?;
        }
        if disk.exists(to) {
            disk.remove(to)?;
        }
        let target = disk.create(to)?;
        let mut piece = vec![0; PIECE_BYTES.min(entry.size) as usize];
        let mut done = 0;
        while done < entry.size {
            let length = (entry.size - done).min(PIECE_BYTES);
            let Some(bytes) = piece.get_mut(..length as usize) else { break };
            self.file.read_exact_at(bytes, entry.offset + done)?;
            target.write_all_at(bytes, done)?;
            done += length;
            progress.add(length);
        }
        target.sync()
    }
}

/// Lists the files of an archive.
fn entries(file: &dyn File) -> Result<Vec<Found>, String> {
    let end = file.size().map_err(|error| error.to_string())?;
    let mut entries = Vec::new();
    let mut at = 0;
    while at + BLOCK <= end {
        let mut block = [0; BLOCK as usize];
        file.read_exact_at(&mut block, at).map_err(|error| error.to_string())?;
        if block.iter().all(|byte| *byte == 0) {
            return Ok(entries);
        }
        let problem = |what: &str| format!("{what} at byte {at}; it is no archive of a backup, or damaged");
        let head = Header::from_byte_slice(&block);
        if !is_sound(head) {
            return Err(problem("a block whose checksum is wrong"));
        }
        let path = String::from_utf8(head.path_bytes().into_owned())
            .map_err(|_| problem("a name that is no UTF-8"))?;
        let size = head.entry_size().map_err(|_| problem("a size that cannot be read"))?;
        let offset = at + BLOCK;
        let next = size.checked_next_multiple_of(BLOCK).and_then(|size| offset.checked_add(size));
        at = next
            .filter(|next| *next <= end)
            .ok_or_else(|| problem("a file that ends behind the archive, which was cut"))?;
        match head.entry_type() {
            EntryType::Regular => {
                entries.push(Found { path: path.trim_start_matches("./").to_owned(), offset, size })
            }
            EntryType::Directory => {}
            _ => {
                return Err(format!(
                    "{path} is neither file nor folder (or has a long name); unpack it with tar -xf and restore the folder"
                ));
            }
        }
        if entries.len() > ENTRIES_MAX {
            return Err("it has too many files".to_owned());
        }
    }
    Err("it ends before its end; it was cut".to_owned())
}

/// Whether the checksum of a header block is right.
fn is_sound(head: &Header) -> bool {
    let mut summed = head.clone();
    summed.set_cksum();
    matches!((head.cksum(), summed.cksum()), (Ok(stored), Ok(sum)) if stored == sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backup::{BackedUpFile, BackedUpTable};

    fn write(disk: &Arc<dyn Disk>, path: &str, files: &[(&str, &[u8])]) -> BackupManifest {
        let mut manifest = BackupManifest::new("id".to_owned(), "then".to_owned(), "1");
        let mut archive = ArchiveWriter::begin(disk, Path::new(path), 1_795_000_000).unwrap();
        for (name, bytes) in files {
            let source = Path::new("/source");
            disk.create(source).unwrap().write_all_at(bytes, 0).unwrap();
            let (sha256, bytes) = archive.add(name, source, &mut |_| {}).unwrap();
            disk.remove(source).unwrap();
            let path = CheckedPath::new(FILE, name).unwrap();
            manifest.files.push(BackedUpFile { path, bytes, sha256 });
        }
        manifest.tables.push(BackedUpTable { keyspace: "ks".into(), table: "t".into(), sstables: 1 });
        archive.finish(&manifest).unwrap();
        manifest
    }

    #[test]
    fn what_is_written_is_unpacked_and_is_what_the_manifest_says() {
        let host = helenus_host::memory::host();
        let long = format!("{}/{}/da-1-bti-Data.db", "k".repeat(48), "t".repeat(48));
        let written =
            write(&host.disk, "/b.tar", &[("schema.cql", b"abc"), ("ks/t/da-1", &[7; 1_500]), (&long, b"")]);
        let archive = Archive::open(&*host.disk, Path::new("/b.tar")).unwrap();
        assert_eq!(archive.manifest, written);
        let progress = ImportProgress::default();
        let to = Path::new("/unpacked");
        archive.unpack(&*host.disk, to, (None, None), &progress).unwrap();
        assert_eq!(written.check(&*host.disk, to, (None, None), &progress).unwrap(), Vec::<String>::new());
        // Unpacks one table again, over the existing files.
        archive.unpack(&*host.disk, to, (Some("ks"), Some("t")), &progress).unwrap();
        let again = ArchiveWriter::begin(&host.disk, Path::new("/b.tar"), 0).err().unwrap();
        assert!(again.to_string().contains("is there already"), "{again}");
    }

    #[test]
    fn a_damaged_or_cut_archive_is_refused() {
        let host = helenus_host::memory::host();
        write(&host.disk, "/b.tar", &[("schema.cql", b"abc")]);
        let file = host.disk.open_write(Path::new("/b.tar")).unwrap();
        let refused = |what: &str| {
            let error = Archive::open(&*host.disk, Path::new("/b.tar")).err().unwrap_or_default();
            assert!(error.contains(what), "{error}");
        };
        file.write_all_at(b"x", 3).unwrap();
        refused("a block whose checksum is wrong at byte 0");
        file.write_all_at(b"e", 3).unwrap();
        file.set_size(1_024).unwrap();
        refused("it was cut");
        file.write_all_at(&[0; 1_024], 1_024).unwrap();
        refused("there is no backup.json in it");
    }

    #[test]
    fn sizes_beyond_eight_gigabytes_are_read_as_they_were_written() {
        for bytes in [0, 511, (1 << 33) - 1, 1 << 33, 1 << 40] {
            let head = head("a", bytes, 0).unwrap();
            assert!(is_sound(&head));
            assert_eq!(head.entry_size().unwrap(), bytes);
        }
    }
}
