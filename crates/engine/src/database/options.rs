//! Options of a database. The binary fills them from its own options; nothing here reads a file.

use super::progress::OpenProgress;
use super::timeouts::ReadTimeouts;
use crate::commitlog::SyncMode;
use crate::compaction::CompactionSettings;
use crate::journal::JournalSlot;
use std::path::PathBuf;
use std::sync::Arc;

/// How a database is opened.
#[derive(Clone, Debug)]
pub struct DatabaseOptions {
    /// The directory of data, commit log and lock.
    pub dir: PathBuf,
    /// When writes are acknowledged; `None`: no commit log, for databases that nothing needs to survive.
    pub sync: Option<SyncMode>,
    /// Size of a full-grown segment of the log, bytes.
    pub segment_bytes: u32,
    /// Lose a damaged record and the rest of its segment instead of refusing to open.
    pub skip_damaged_log: bool,
    /// Largest mutation, bytes.
    pub mutation_bytes_max: usize,
    /// Memory for memtables and cache.
    pub memory: MemoryShares,
    /// Compaction: how many at a time, how fast, and what is purged.
    pub compaction: CompactionSettings,
    /// How long reads may take that bring no deadline of their own.
    pub timeouts: ReadTimeouts,
    /// Where opening says how far it is.
    pub progress: Arc<OpenProgress>,
    /// Who is told what happens, if anybody.
    pub journal: JournalSlot,
}

/// Parts of the memory limit that the engine keeps.
#[derive(Clone, Copy, Debug)]
pub struct MemoryShares {
    /// Memtables of all tables, bytes; a flush begins at half of it, writers are slowed at all of it.
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

/// Default size of the log's segments.
pub const SEGMENT_BYTES_DEFAULT: u32 = 32 << 20;
/// Default `max_mutation_size`: half a segment, as in Cassandra.
pub const MUTATION_BYTES_MAX_DEFAULT: usize = 16 << 20;

impl DatabaseOptions {
    /// A database in `dir` with the defaults: group sync, 2 GiB of memory.
    pub fn new(dir: impl Into<PathBuf>) -> DatabaseOptions {
        const MEMORY_LIMIT: u64 = 2 << 30;
        DatabaseOptions {
            dir: dir.into(),
            sync: Some(SyncMode::Group),
            segment_bytes: SEGMENT_BYTES_DEFAULT,
            skip_damaged_log: false,
            mutation_bytes_max: MUTATION_BYTES_MAX_DEFAULT,
            memory: MemoryShares::of_limit(MEMORY_LIMIT),
            compaction: CompactionSettings::default(),
            timeouts: ReadTimeouts::default(),
            progress: Arc::default(),
            journal: JournalSlot::default(),
        }
    }
}
