//! A disk that only reads another one and keeps all changes in memory: what `--dry-run` and `shell --sstables` open a database on.
//!
//! A file that would be changed is copied into memory first. Files of data are never changed, so this concerns the commit
//! log and small files alone. A second name of a file below is a name in memory, and its bytes are read where they are.

use helenus_host::{Disk, File, Host};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The same machine with a disk whose changes are lost at the end.
pub fn without_writing(host: &Host) -> Host {
    overlaid(host, BTreeSet::new())
}

/// The same without what is in a folder.
pub fn without_writing_or_folder(host: &Host, folder: &Path) -> Host {
    overlaid(host, BTreeSet::from([folder.to_owned()]))
}

fn overlaid(host: &Host, removed: BTreeSet<PathBuf>) -> Host {
    let above = helenus_host::memory::host().disk;
    let base = Arc::clone(&host.disk);
    let overlay = Overlay { base, above, removed: Mutex::new(removed), links: Mutex::default() };
    Host { disk: Arc::new(overlay), ..host.clone() }
}

struct Overlay {
    base: Arc<dyn Disk>,
    above: Arc<dyn Disk>,
    /// Paths of `base` that no longer exist, or that `above` replaces.
    removed: Mutex<BTreeSet<PathBuf>>,
    /// Second names of files of `base`, with their names there.
    links: Mutex<BTreeMap<PathBuf, PathBuf>>,
}

impl Overlay {
    fn is_in_base(&self, path: &Path) -> bool {
        let removed = self.removed.lock();
        !path.ancestors().any(|above| removed.contains(above)) && self.base.exists(path)
    }

    /// The name in `base` of a file that is not in memory.
    fn in_base(&self, path: &Path) -> Option<PathBuf> {
        if let Some(target) = self.links.lock().get(path) {
            return Some(target.clone());
        }
        let is_file = !self.above.exists(path) && self.is_in_base(path) && !self.base.is_dir(path);
        is_file.then(|| path.to_owned())
    }

    /// Gives the links below a folder, or the one of this name, their names after a rename.
    fn move_links(&self, from: &Path, to: &Path) {
        let mut links = self.links.lock();
        let moved: Vec<PathBuf> = links.keys().filter(|path| path.starts_with(from)).cloned().collect();
        for path in moved {
            if let (Some(target), Ok(rest)) = (links.remove(&path), path.strip_prefix(from)) {
                let name = if rest.as_os_str().is_empty() { to.to_owned() } else { to.join(rest) };
                links.insert(name, target);
            }
        }
    }

    fn missing(path: &Path) -> io::Error {
        io::Error::new(io::ErrorKind::NotFound, format!("{}: no such file", path.display()))
    }

    /// Creates the folder of a path in memory, if the folder exists.
    fn make_parent(&self, path: &Path) -> io::Result<()> {
        match path.parent() {
            Some(parent) if self.is_dir(parent) => self.above.create_dir_all(parent),
            _ => Err(Self::missing(path)),
        }
    }

    /// Copies a file of `base` into memory, if it is not there yet.
    fn take(&self, path: &Path) -> io::Result<()> {
        if self.above.exists(path) {
            return Ok(());
        }
        let target = self.in_base(path).ok_or_else(|| Self::missing(path))?;
        let file = self.base.open(&target)?;
        let size = usize::try_from(file.size()?).map_err(io::Error::other)?;
        let mut bytes = vec![0; size];
        file.read_exact_at(&mut bytes, 0)?;
        self.make_parent(path)?;
        self.above.create(path)?.write_all_at(&bytes, 0)?;
        self.links.lock().remove(path);
        Ok(())
    }

    fn forget(&self, path: &Path) {
        self.removed.lock().insert(path.to_owned());
    }
}

impl Disk for Overlay {
    fn open(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        match self.in_base(path) {
            Some(target) => self.base.open(&target),
            None if self.above.exists(path) => self.above.open(path),
            None => Err(Self::missing(path)),
        }
    }

    fn open_own(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        match self.in_base(path) {
            Some(target) => self.base.open_own(&target),
            None => self.open(path),
        }
    }

    fn open_write(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.take(path)?;
        self.above.open_write(path)
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        if self.is_in_base(path) || self.links.lock().contains_key(path) {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("{} exists", path.display())));
        }
        self.make_parent(path)?;
        self.above.create(path)
    }

    fn lock(&self, path: &Path, holder: &str) -> io::Result<Box<dyn Send + Sync>> {
        self.make_parent(path)?;
        self.above.lock(path, holder)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        if self.links.lock().contains_key(from) {
            self.make_parent(to)?;
            if self.above.exists(to) {
                self.above.remove(to)?;
            }
            self.move_links(from, to);
            // What `to` was below does not come back when the link goes.
            self.forget(to);
            return Ok(());
        }
        self.take(from)?;
        self.make_parent(to)?;
        self.above.rename(from, to)?;
        self.links.lock().remove(to);
        self.move_links(from, to);
        self.forget(from);
        Ok(())
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        if self.exists(to) {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("{} exists", to.display())));
        }
        let target = self.in_base(from);
        self.make_parent(to)?;
        match target {
            Some(target) => {
                self.links.lock().insert(to.to_owned(), target);
                Ok(())
            }
            None => self.above.hard_link(from, to),
        }
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        if self.above.exists(path) {
            self.above.remove(path)?;
        } else if self.links.lock().remove(path).is_none() && !self.is_in_base(path) {
            return Err(Self::missing(path));
        }
        self.forget(path);
        Ok(())
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        if !self.list(path)?.is_empty() {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        if self.above.exists(path) {
            self.above.remove_dir(path)?;
        }
        self.forget(path);
        Ok(())
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.above.create_dir_all(path)
    }

    fn free_bytes(&self, _path: &Path) -> io::Result<u64> {
        self.above.free_bytes(Path::new("/"))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        let mut found = BTreeSet::new();
        if self.above.is_dir(dir) {
            found.extend(self.above.list(dir)?);
        }
        if self.is_in_base(dir) {
            found.extend(self.base.list(dir)?.into_iter().filter(|path| self.is_in_base(path)));
        } else if !self.above.is_dir(dir) {
            return Err(Self::missing(dir));
        }
        found.extend(self.links.lock().keys().filter(|path| path.parent() == Some(dir)).cloned());
        Ok(found.into_iter().collect())
    }

    fn exists(&self, path: &Path) -> bool {
        self.above.exists(path) || self.links.lock().contains_key(path) || self.is_in_base(path)
    }

    fn is_dir(&self, path: &Path) -> bool {
        self.above.is_dir(path) || self.is_in_base(path) && self.base.is_dir(path)
    }

    fn is_link(&self, path: &Path) -> bool {
        !self.above.exists(path) && self.is_in_base(path) && self.base.is_link(path)
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_seen_and_the_disk_below_stays_as_it_was() {
        let below = helenus_host::memory::host();
        let at = |name: &str| Path::new("/d").join(name);
        below.disk.create_dir_all(Path::new("/d/sub")).unwrap();
        for name in ["a", "b", "sub/c"] {
            below.disk.create(&at(name)).unwrap().write_all_at(name.as_bytes(), 0).unwrap();
        }
        let disk = without_writing(&below).disk;
        disk.open_write(&at("a")).unwrap().write_all_at(b"changed", 0).unwrap();
        disk.rename(&at("b"), &at("moved")).unwrap();
        disk.remove(&at("sub/c")).unwrap();
        disk.remove_dir(&at("sub")).unwrap();
        disk.create_dir_all(&at("new/folder")).unwrap();
        disk.create(&at("new/folder/file")).unwrap();
        assert_eq!(disk.list(Path::new("/d")).unwrap(), [at("a"), at("moved"), at("new")]);
        assert_eq!(disk.open(&at("a")).unwrap().size().unwrap(), 7);
        assert!(
            disk.open(&at("b")).is_err() && disk.create(&at("a")).is_err() && disk.list(&at("sub")).is_err()
        );
        assert_eq!(below.disk.list(Path::new("/d")).unwrap(), [at("a"), at("b"), at("sub")]);
        assert_eq!(below.disk.open(&at("a")).unwrap().size().unwrap(), 1);
    }

    #[test]
    fn a_second_name_reads_the_file_below_and_moves_with_its_folder() {
        let below = helenus_host::memory::host();
        let at = |name: &str| Path::new("/d").join(name);
        below.disk.create_dir_all(Path::new("/d")).unwrap();
        below.disk.create(&at("file")).unwrap().write_all_at(b"bytes", 0).unwrap();
        let disk = without_writing(&below).disk;
        disk.create_dir_all(Path::new("/m/one/sub")).unwrap();
        let link = Path::new("/m/one/sub/link");
        assert!(disk.link_if_own(&at("file"), link).unwrap());
        assert!(disk.hard_link(&at("file"), link).is_err() && disk.create(link).is_err());
        disk.hard_link(link, Path::new("/m/one/other")).unwrap();
        disk.rename(Path::new("/m/one"), Path::new("/m/two")).unwrap();
        let moved = Path::new("/m/two/sub/link");
        assert!(!disk.exists(link) && disk.exists(moved));
        assert_eq!(disk.list(Path::new("/m/two/sub")).unwrap(), [moved]);
        below.disk.create(&at("hidden")).unwrap().write_all_at(b"old", 0).unwrap();
        disk.rename(moved, &at("hidden")).unwrap();
        disk.rename(&at("hidden"), Path::new("/m/two/last")).unwrap();
        assert!(!disk.exists(&at("hidden")), "what the link has replaced does not come back");
        assert_eq!(disk.open(Path::new("/m/two/last")).unwrap().size().unwrap(), 5);
        disk.open_write(Path::new("/m/two/last")).unwrap().set_size(0).unwrap();
        disk.remove(Path::new("/m/two/last")).unwrap();
        assert!(disk.remove_dir(Path::new("/m/two")).is_err());
        disk.remove(Path::new("/m/two/other")).unwrap();
        assert!(disk.list(Path::new("/m/two")).unwrap() == [Path::new("/m/two/sub")]);
        assert_eq!(below.disk.open(&at("file")).unwrap().size().unwrap(), 5);
    }
}
