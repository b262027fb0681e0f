//! Implements `Disk` in memory.

use super::file::MemoryFile;
use super::inode::InodeInUse;
use super::tree::Tree;
use super::watch::{Call, Watch};
use crate::error::{between, held, on};
use crate::random::Sequence;
use crate::{Disk, File};
use parking_lot::RwLock;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A disk in memory.
pub(crate) struct MemoryDisk {
    pub(crate) shared: Arc<Shared>,
}

/// State shared by the disk and its open files.
pub(crate) struct Shared {
    pub(crate) tree: RwLock<Tree>,
    /// Counts calls, injects faults and takes crash images; absent when durability is not tracked.
    pub(crate) watch: Option<Arc<dyn Watch>>,
}

impl MemoryDisk {
    /// An empty disk on which all data is as durable as the process.
    pub(crate) fn untracked() -> MemoryDisk {
        MemoryDisk { shared: Arc::new(Shared { tree: RwLock::new(Tree::new(false, u64::MAX)), watch: None }) }
    }

    fn file(&self, path: &Path, held: Arc<InodeInUse>, writable: bool) -> Arc<dyn File> {
        Arc::new(MemoryFile { shared: Arc::clone(&self.shared), held, path: path.to_path_buf(), writable })
    }

    fn open_as(&self, op: &'static str, path: &Path, writable: bool) -> io::Result<Arc<dyn File>> {
        let held = self.shared.call(Call::Open, path).and_then(|()| self.shared.tree.read().find_file(path));
        Ok(self.file(path, held.map_err(|e| on(op, path, e))?, writable))
    }

    fn change<T>(
        &self,
        call: Call,
        path: &Path,
        change: impl FnOnce(&mut Tree) -> io::Result<T>,
    ) -> io::Result<T> {
        self.shared.call(call, path)?;
        change(&mut self.shared.tree.write())
    }
}

impl Shared {
    /// Counts a call; returns the error of a fault that is set for it.
    pub(crate) fn call(&self, call: Call, path: &Path) -> io::Result<()> {
        let Some(watch) = &self.watch else { return Ok(()) };
        if call.is_change() {
            watch.before_change(&self.tree, call, path);
        }
        watch.call(call, path)
    }

    /// A call that makes data durable: takes crash images before and after it, and runs `done`, or `failed` if a fault
    /// strikes.
    pub(crate) fn make_durable(
        &self,
        call: Call,
        path: &Path,
        done: impl FnOnce(),
        failed: impl FnOnce(&Sequence),
    ) -> io::Result<()> {
        let Some(watch) = &self.watch else { return Ok(()) };
        let number = watch.before_sync(&self.tree, path);
        let result = watch.call(call, path);
        if result.is_ok() {
            done();
        } else {
            failed(watch.chance());
        }
        watch.after_sync(&self.tree, path, number);
        result
    }
}

impl Disk for MemoryDisk {
    fn open(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.open_as("open", path, false)
    }

    fn open_write(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.open_as("open for writing", path, true)
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let held = self.change(Call::Create, path, |tree| tree.create(path));
        Ok(self.file(path, held.map_err(|e| on("create", path, e))?, true))
    }

    fn lock(&self, path: &Path, holder: &str) -> io::Result<Box<dyn Send + Sync>> {
        let file = self.change(Call::Lock, path, |tree| match tree.find_file(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => tree.create(path),
            found => found,
        });
        let file = file.map_err(|e| on("lock", path, e))?;
        if file.locked.swap(true, Ordering::AcqRel) {
            let mut text = vec![0; usize::try_from(file.inode.size()).unwrap_or(0)];
            file.inode.read(&mut text, 0);
            return Err(held(path, String::from_utf8_lossy(&text).into_owned()));
        }
        let locked = Locked(file);
        let written = locked.0.set_size(0).and_then(|()| locked.0.write(holder.as_bytes(), 0));
        match written {
            // The lock is held all the same, as on a real disk.
            Err(error) if error.kind() == io::ErrorKind::StorageFull => {}
            written => written.map_err(|e| on("write the lock file", path, e))?,
        }
        Ok(Box::new(locked))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let done = self.change(Call::Rename, from, |tree| tree.rename(from, to));
        done.map_err(|e| between("rename", from, to, e))
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let done = self.change(Call::Link, from, |tree| tree.hard_link(from, to));
        done.map_err(|e| between("link", from, to, e))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.change(Call::Remove, path, |tree| tree.remove(path)).map_err(|e| on("remove", path, e))
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.change(Call::RemoveDir, path, |tree| tree.remove_dir(path))
            .map_err(|e| on("remove folder", path, e))
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        let done = self.change(Call::CreateDir, path, |tree| tree.create_dir_all(path));
        done.map_err(|e| on("create folder", path, e))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        let names = self.shared.call(Call::List, dir).and_then(|()| self.shared.tree.read().list(dir));
        Ok(names.map_err(|e| on("list", dir, e))?.into_iter().map(|name| dir.join(name)).collect())
    }

    fn exists(&self, path: &Path) -> bool {
        self.shared.tree.read().find(path).is_ok()
    }

    fn is_dir(&self, path: &Path) -> bool {
        self.shared.tree.read().find_dir(path).is_ok()
    }

    fn free_bytes(&self, path: &Path) -> io::Result<u64> {
        let tree = self.shared.tree.read();
        tree.find(path).map_err(|e| on("ask for the free space of", path, e))?;
        Ok(tree.space.free())
    }

    fn file_bytes(&self, path: &Path) -> io::Result<u64> {
        let found = self.shared.tree.read().find_file(path);
        Ok(found.map_err(|e| on("look at", path, e))?.inode.size())
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let found = self.shared.tree.read().find_dir(dir);
        let done = found.and_then(|id| {
            self.shared.make_durable(Call::SyncDir, dir, || self.shared.tree.write().settle(id), |_| {})
        });
        done.map_err(|e| on("sync folder", dir, e))
    }
}

/// Holds the lock on a file until it is dropped.
struct Locked(Arc<InodeInUse>);

impl Drop for Locked {
    fn drop(&mut self) {
        self.0.locked.store(false, Ordering::Release);
    }
}
