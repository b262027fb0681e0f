//! The file system interface of the storage engine.
//!
//! Durability follows POSIX: bytes are durable after `sync`, names (create, rename, link, remove) after
//! `sync_dir` of the folder. Every error names its path: it carries a [`PathError`](crate::PathError).

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file system.
pub trait Disk: Send + Sync {
    /// Opens an existing file for reading.
    fn open(&self, path: &Path) -> io::Result<Arc<dyn File>>;
    /// The same for a file with a well-known name, which must not be a symbolic link: another user may have created
    /// one.
    fn open_own(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.open(path)
    }
    /// Opens an existing file, which is no symbolic link, for reading and writing.
    fn open_write(&self, path: &Path) -> io::Result<Arc<dyn File>>;
    /// Creates a file that must not exist, for reading and writing by its owner alone.
    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>>;
    /// Takes the exclusive lock on `path` (created if absent) and writes `holder` into it. `Err(WouldBlock)` carrying a
    /// [`LockHeld`](crate::LockHeld) with the present holder's text when another process (or another lock of this one)
    /// holds it. Released when the value is dropped; the text stays.
    fn lock(&self, path: &Path, holder: &str) -> io::Result<Box<dyn Send + Sync>>;
    /// The same for a folder, by the file of this name in it. On a real disk the folder itself is locked too, so that the lock
    /// stays when somebody removes the file.
    fn lock_folder(&self, folder: &Path, name: &str, holder: &str) -> io::Result<Box<dyn Send + Sync>> {
        self.lock(&folder.join(name), holder)
    }
    /// From now on, until the value is dropped, nothing is created, renamed or removed in this folder or below it once another
    /// folder, or none, is in its place; `check_place` tells.
    fn keep_place(&self, _folder: &Path) -> io::Result<Box<dyn Send + Sync>> {
        Ok(Box::new(()))
    }
    /// Fails if a folder of `keep_place` that is this path, or above it, is not in its place any more.
    fn check_place(&self, _path: &Path) -> io::Result<()> {
        Ok(())
    }
    /// Renames, replacing the target.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Gives a file a second name.
    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Gives a file of somebody else's making a second name, if this process's user alone can change it, and makes it private.
    /// `false`, and no second name, if another user may own it, write to it or replace it, or if it has other names already, by
    /// which it may be changed: copy it then.
    fn link_if_own(&self, from: &Path, to: &Path) -> io::Result<bool> {
        self.hard_link(from, to).map(|()| true)
    }
    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Removes an empty folder.
    fn remove_dir(&self, path: &Path) -> io::Result<()>;
    /// Creates a folder and its missing parents, accessible to their owner only. Existing ones are not changed.
    fn create_dir_all(&self, path: &Path) -> io::Result<()>;
    /// Makes an existing folder accessible to its owner only; `true` if others had access. An error if others may put
    /// files into it and that cannot be prevented: a folder of another user, or a shared one.
    fn claim_dir(&self, _path: &Path) -> io::Result<bool> {
        Ok(false)
    }
    /// The entries of a folder, sorted, as full paths.
    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>>;
    /// Whether a file, folder or symbolic link of this name exists.
    fn exists(&self, path: &Path) -> bool;
    /// Whether `path` is a folder.
    fn is_dir(&self, path: &Path) -> bool;
    /// Whether `path` is a symbolic link, wherever it leads. Removing a tree removes links and does not follow them.
    fn is_link(&self, _path: &Path) -> bool {
        false
    }
    /// Bytes that this process may still write to the file system of a folder or file; `u64::MAX` without a limit.
    fn free_bytes(&self, path: &Path) -> io::Result<u64>;
    /// Length of a file in bytes. It takes no descriptor.
    fn file_bytes(&self, path: &Path) -> io::Result<u64> {
        self.open(path)?.size()
    }
    /// Makes the names in a folder durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
}

/// An open file. All methods take `&self` and a position: appenders keep their own offset.
pub trait File: Send + Sync {
    /// Length in bytes. A `Result`, because a real file asks the kernel.
    fn size(&self) -> io::Result<u64>;
    /// Fills `buf` from `offset`; `UnexpectedEof` if the file ends before.
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()>;
    /// The same without waiting for the device: `Ok(false)` when the bytes are not in memory.
    fn try_read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<bool>;
    /// The same as `read_exact_at`, bypassing the kernel's page cache if [`is_direct`](crate::is_direct) and the file
    /// system allow it: for bytes that are read once. Newer bytes in the page cache are still seen.
    fn read_direct_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        self.read_exact_at(buf, offset)
    }
    /// Writes all of `buf` at `offset`, extending the file.
    fn write_all_at(&self, buf: &[u8], offset: u64) -> io::Result<()>;
    /// The same, bypassing the kernel's page cache if [`is_direct`](crate::is_direct) and the file system allow it:
    /// for bytes that are not read soon. It does not make them durable.
    fn write_direct_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.write_all_at(buf, offset)
    }
    /// Reserves and zero-fills up to `size` bytes and syncs, so that a full disk is noticed here and not later.
    /// Existing bytes are kept; a file of `size` bytes or more is left as it is. On an error the old length is
    /// restored.
    fn allocate(&self, size: u64) -> io::Result<()>;
    /// Truncates or extends to `size`.
    fn set_size(&self, size: u64) -> io::Result<()>;
    /// Makes bytes and length durable (fdatasync where that suffices).
    fn sync(&self) -> io::Result<()>;
}
