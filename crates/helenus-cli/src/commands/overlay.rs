//! A disk that only reads another one and keeps all changes in memory: what `--dry-run` opens a database on.
//!
//! A file that would be changed is copied into memory first. Files of data are never changed, so this concerns the commit
//! log and small files alone.

use helenus_host::{Disk, File, Host};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The same machine with a disk whose changes are lost at the end.
pub fn without_writing(host: &Host) -> Host {
    let above = helenus_host::memory::host().disk;
    let overlay = Overlay { base: Arc::clone(&host.disk), above, removed: Mutex::default() };
    Host { disk: Arc::new(overlay), ..host.clone() }
}

struct Overlay {
    base: Arc<dyn Disk>,
    above: Arc<dyn Disk>,
    /// Paths of `base` that no longer exist, or that `above` replaces.
    removed: Mutex<BTreeSet<PathBuf>>,
}

impl Overlay {
    fn is_in_base(&self, path: &Path) -> bool {
        let removed = self.removed.lock();
        !path.ancestors().any(|above| removed.contains(above)) && self.base.exists(path)
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
        if !self.is_in_base(path) || self.base.is_dir(path) {
            return Err(Self::missing(path));
        }
        let file = self.base.open(path)?;
        let size = usize::try_from(file.size()?).map_err(io::Error::other)?;
        let mut bytes = vec![0; size];
        file.read_exact_at(&mut bytes, 0)?;
        self.make_parent(path)?;
        self.above.create(path)?.write_all_at(&bytes, 0)
    }

    fn forget(&self, path: &Path) {
        self.removed.lock().insert(path.to_owned());
    }
}

impl Disk for Overlay {
    fn open(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        match self.above.exists(path) {
            true => self.above.open(path),
            false if self.is_in_base(path) => self.base.open(path),
            false => Err(Self::missing(path)),
        }
    }

    fn open_own(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        match !self.above.exists(path) && self.is_in_base(path) {
            true => self.base.open_own(path),
            false => self.open(path),
        }
    }

    fn open_write(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.take(path)?;
        self.above.open_write(path)
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        if self.is_in_base(path) {
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
        self.take(from)?;
        self.make_parent(to)?;
        self.above.rename(from, to)?;
        self.forget(from);
        Ok(())
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.take(from)?;
        self.make_parent(to)?;
        self.above.hard_link(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        if self.above.exists(path) {
            self.above.remove(path)?;
        } else if !self.is_in_base(path) {
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
        Ok(found.into_iter().collect())
    }

    fn exists(&self, path: &Path) -> bool {
        self.above.exists(path) || self.is_in_base(path)
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
}
