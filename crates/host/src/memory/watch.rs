//! The watcher of a disk in memory: `sim` implements it to count calls, make them fail and copy the disk around a sync.

use super::tree::Tree;
use crate::random::Sequence;
use parking_lot::RwLock;
use std::io;
use std::path::Path;

/// A kind of call. Queries of a size or of a name's existence are not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// `open`, `open_write`.
    Open,
    /// `create`.
    Create,
    /// `read_exact_at`, and `try_read_exact_at` when it reads.
    Read,
    /// `write_all_at`. A failing call writes a random prefix of its bytes.
    Write,
    /// `allocate`.
    Allocate,
    /// `set_size`.
    SetSize,
    /// `File::sync`. A failing call makes some unsynced 4 KiB blocks durable and loses the others: these still read as
    /// written, but no later sync makes them durable unless they are written again.
    Sync,
    /// `sync_dir`. A failing call makes nothing durable; a later one may.
    SyncDir,
    /// `rename`; its path is the old name.
    Rename,
    /// `hard_link`; its path is the present name.
    Link,
    /// `remove`.
    Remove,
    /// `remove_dir`.
    RemoveDir,
    /// `create_dir_all`.
    CreateDir,
    /// `list`.
    List,
    /// `lock`.
    Lock,
}

impl Call {
    /// Number of kinds.
    pub(crate) const KINDS: usize = Call::Lock as usize + 1;

    /// Whether a call changes names, lengths or bytes. Syncs do not: they change what a power cut leaves.
    pub(crate) fn is_change(self) -> bool {
        match self {
            Call::Create
            | Call::Write
            | Call::Allocate
            | Call::SetSize
            | Call::Rename
            | Call::Link
            | Call::Remove
            | Call::RemoveDir
            | Call::CreateDir
            | Call::Lock => true,
            Call::Open | Call::Read | Call::Sync | Call::SyncDir | Call::List => false,
        }
    }
}

/// Is shown each call of a disk that tracks durability, and decides its fate.
pub(crate) trait Watch: Send + Sync {
    /// Counts a call; returns the error of a fault that is set for it.
    fn call(&self, call: Call, path: &Path) -> io::Result<()>;

    /// Is called before each call that changes the disk, whether it will fail or not. The caller holds no lock.
    fn before_change(&self, tree: &RwLock<Tree>, call: Call, path: &Path);

    /// Decides what a failing call does to the data.
    fn chance(&self) -> &Sequence;

    /// Whether a read that must not wait finds nothing in memory.
    fn cold_read(&self) -> bool;

    /// Is called before a file or folder is synced. Returns the number of the sync.
    fn before_sync(&self, tree: &RwLock<Tree>, path: &Path) -> u64;

    /// Is called after the sync, failed or not, with the number that `before_sync` returned.
    fn after_sync(&self, tree: &RwLock<Tree>, path: &Path, number: u64);
}
