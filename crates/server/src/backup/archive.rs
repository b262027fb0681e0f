//! A backup as one file: a tar archive, as `tar` of every system reads it (POSIX's ustar; GNU's sizes beyond 8 GiB).
//!
//! Files follow each other, each behind a block that names it, the manifest last. What a person packed with `tar -cf` from a
//! backup's directory is read too: then everything lies below one folder. Links, long names in blocks of their own and the
//! like are refused: nothing here writes them.

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

/// Of the archive: names, contents and ends are padded to it.
const BLOCK: u64 = 512;
/// Bytes copied at a time.
const PIECE_BYTES: u64 = 1 << 20;
/// Most files of an archive that is read: a bound on memory.
const ENTRIES_MAX: usize = 1 << 20;
/// Longest manifest that is read.
const MANIFEST_BYTES_MAX: u64 = 1 << 30;

/// Writes an archive, under another name until it is whole.
pub struct ArchiveWriter {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    file: Arc<dyn File>,
    at: u64,
    mtime_s: u64,
}

impl ArchiveWriter {
    /// Begins one. What an earlier run left unfinished is replaced.
    ///
    /// # Errors
    /// Something of this name is there; failures of the disk.
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

    /// Adds a file; `read` is told of its bytes as they are copied. The digest and size of what was copied.
    ///
    /// # Errors
    /// A name that an archive cannot have; failures of the disk.
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

    /// Adds the manifest and makes the archive whole, durably, under its own name.
    ///
    /// # Errors
    /// Failures of the disk.
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

/// The block before a file.
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

/// A file of an archive, as it names it.
struct Found {
    path: String,
    offset: u64,
    size: u64,
}

/// A file of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    path: CheckedPath,
    offset: u64,
    size: u64,
}

/// An archive that is read.
pub(super) struct Archive {
    file: Arc<dyn File>,
    path: PathBuf,
    entries: Vec<Entry>,
    pub manifest: BackupManifest,
}

impl Archive {
    /// Finds the files of an archive, and reads its manifest.
    ///
    /// # Errors
    /// What is wrong with it, in a sentence.
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

    /// Writes these files of it, and the manifest, into a folder. Files that an earlier run wrote are written again.
    ///
    /// # Errors
    /// What is wrong with the archive; failures of the disk.
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
        // What the manifest does not know is unpacked, so that the check names it.
        let is_wanted = |entry: &&Entry| asked.contains(&entry.path) || !known.contains(&entry.path);
        let wanted: Vec<&Entry> = self.entries.iter().filter(is_wanted).collect();
        progress.begin(wanted.iter().map(|entry| entry.size).sum());
        for entry in wanted {
            progress.doing(format!("unpack {}", entry.path));
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

/// The files of an archive.
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

/// Whether a block's checksum is that of its bytes.
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
        // One table, again, over what is there.
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
