//! Files and folders as the storage engine needs them.
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
    /// The same for a file of ours with a well-known name, which must not be a symbolic link: somebody else may have put one there.
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
    /// Renames, replacing the target.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// A second name for the same file.
    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Removes an empty folder.
    fn remove_dir(&self, path: &Path) -> io::Result<()>;
    /// Creates a folder and those above it, for their owner alone. Those that are there stay as they are.
    fn create_dir_all(&self, path: &Path) -> io::Result<()>;
    /// Makes a folder that is there its owner's alone: others lose their rights to it, and the answer is `true` if they had any. An
    /// error if others may put files into it and that cannot be ended: a folder of another user, or one that users share.
    fn claim_dir(&self, _path: &Path) -> io::Result<bool> {
        Ok(false)
    }
    /// The entries of a folder, sorted, as full paths.
    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>>;
    /// Whether a file, folder or symbolic link of this name exists.
    fn exists(&self, path: &Path) -> bool;
    /// Whether `path` is a folder.
    fn is_dir(&self, path: &Path) -> bool;
    /// Whether `path` is a symbolic link, wherever it leads. Whoever removes a tree removes links and does not follow them.
    fn is_link(&self, _path: &Path) -> bool {
        false
    }
    /// Makes the names in a folder durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
}

/// An open file. All methods take `&self` and a position: appenders keep their own offset.
pub trait File: Send + Sync {
    /// Length in bytes. `Result` because a real file asks the system.
    fn size(&self) -> io::Result<u64>;
    /// Fills `buf` from `offset`; `UnexpectedEof` if the file ends before.
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()>;
    /// The same without waiting for the device: `Ok(false)` when the bytes are not in memory.
    fn try_read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<bool>;
    /// The same as `read_exact_at`, past the system's page cache where [`is_direct`](crate::is_direct) and the file system
    /// allow it: for bytes that are read once, which need no page there. What is in the page cache is not lost to it.
    fn read_direct_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        self.read_exact_at(buf, offset)
    }
    /// Writes all of `buf` at `offset`, extending the file.
    fn write_all_at(&self, buf: &[u8], offset: u64) -> io::Result<()>;
    /// The same, past the system's page cache where [`is_direct`](crate::is_direct) and the file system allow it: for bytes that nobody reads
    /// soon. They are no more durable for it.
    fn write_direct_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.write_all_at(buf, offset)
    }
    /// Reserves and zero-fills up to `size` bytes and syncs, so that a full disk shows here and not later. Bytes the
    /// file has already are kept; a file of `size` bytes or more is left as it is. On an error the old length is back.
    fn allocate(&self, size: u64) -> io::Result<()>;
    /// Cuts or extends to `size`.
    fn set_size(&self, size: u64) -> io::Result<()>;
    /// Makes bytes and length durable (fdatasync where that suffices).
    fn sync(&self) -> io::Result<()>;
}
