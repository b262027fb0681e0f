//! Options of a database. The binary fills them from its own options; this module reads no file.

use super::timeouts::ReadTimeouts;
use crate::changes::RowImages;
use crate::commitlog::{KeptLimits, SyncMode};
use crate::compaction::CompactionSettings;
use crate::journal::JournalSlot;
use crate::open_progress::OpenProgress;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

/// Options of opening a database.
#[derive(Clone, Debug)]
pub struct DatabaseOptions {
    /// The directory of data, commit log and lock.
    pub dir: PathBuf,
    /// Names of files that the owner keeps in the directory, such as the configuration: they make it no directory of others.
    pub beside: Vec<OsString>,
    /// When writes are acknowledged; `None`: no commit log, for databases that need not survive.
    pub sync: Option<SyncMode>,
    /// Size of a full-size log segment, bytes.
    pub segment_bytes: u32,
    /// Lose a damaged record and the rest of its segment instead of refusing to open.
    pub skip_damaged_log: bool,
    /// Largest mutation, bytes.
    pub mutation_bytes_max: usize,
    /// How much of the log is kept for consumers of changes.
    pub kept_log: KeptLimits,
    /// Watched tables whose changes are recorded with the row before them.
    pub row_images: RowImages,
    /// Memory for memtables and cache.
    pub memory: MemoryShares,
    /// Compaction: how many at a time, how fast, and what is purged.
    pub compaction: CompactionSettings,
    /// Timeouts of reads that have no deadline of their own.
    pub timeouts: ReadTimeouts,
    /// Receives the progress of opening.
    pub progress: Arc<OpenProgress>,
    /// Receives events.
    pub journal: JournalSlot,
}

/// The parts of the memory limit that the engine uses.
#[derive(Clone, Copy, Debug)]
pub struct MemoryShares {
    /// Memtables of all tables, bytes. A flush begins at half of it; writers are slowed at all of it.
    pub memtables: usize,
    /// The block cache, bytes.
    pub cache: u64,
}

impl MemoryShares {
    /// The shares of a limit in bytes: a quarter for memtables, a quarter for the cache; the rest is for requests,
    /// answers and compaction.
    pub fn of_limit(limit: u64) -> MemoryShares {
        MemoryShares { memtables: (limit / 4) as usize, cache: limit / 4 }
    }
}

/// Default size of log segments.
pub const SEGMENT_BYTES_DEFAULT: u32 = 32 << 20;
/// Default `max_mutation_size`: half a segment, as in Cassandra.
pub const MUTATION_BYTES_MAX_DEFAULT: usize = 16 << 20;

impl DatabaseOptions {
    /// A database in `dir` with the defaults: group sync, 2 GiB of memory.
    pub fn new(dir: impl Into<PathBuf>) -> DatabaseOptions {
        const MEMORY_LIMIT: u64 = 2 << 30;
        DatabaseOptions {
            dir: dir.into(),
            beside: Vec::new(),
            sync: Some(SyncMode::Group),
            segment_bytes: SEGMENT_BYTES_DEFAULT,
            skip_damaged_log: false,
            mutation_bytes_max: MUTATION_BYTES_MAX_DEFAULT,
            kept_log: KeptLimits::default(),
            row_images: RowImages::default(),
            memory: MemoryShares::of_limit(MEMORY_LIMIT),
            compaction: CompactionSettings::default(),
            timeouts: ReadTimeouts::default(),
            progress: Arc::default(),
            journal: JournalSlot::default(),
        }
    }
}
