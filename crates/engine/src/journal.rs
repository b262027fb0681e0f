//! What a database tells whoever keeps a log of it: things that happen seldom and that a person may want to know.
//!
//! The engine prints nothing. Whoever opens a database may give a `Journal` in its options; without one nothing is told.
//! Called on the thread where it happens, sometimes with locks held: an implementation returns at once and calls nothing of
//! the database.

use crate::clock_watch::ClockJump;
use crate::error::Error;
use crate::schema::SchemaChange;
use helenus_model::schema::Table;
use std::sync::Arc;

/// Takes what a database tells.
pub trait Journal: Send + Sync {
    /// Something happened.
    fn note(&self, event: &Event<'_>);
}

/// Something that happened.
#[derive(Debug)]
pub enum Event<'a> {
    /// A memtable is on disk.
    Flushed {
        /// Of this table.
        table: &'a Table,
        /// Bytes of the files that were written.
        bytes: u64,
        /// How long it took, nanoseconds.
        took_ns: u64,
    },
    /// A memtable could not be written; it stays in memory and is tried again.
    FlushFailed {
        /// Of this table.
        table: &'a Table,
        /// Why.
        error: &'a Error,
    },
    /// SSTables were replaced by others.
    Compacted {
        /// Of this table.
        table: &'a Table,
        /// `compaction`, `tombstones` or `major`.
        kind: &'static str,
        /// SSTables before.
        sstables_before: u64,
        /// Bytes of their files.
        bytes_before: u64,
        /// SSTables that took their place.
        sstables_after: u64,
        /// Bytes of their files.
        bytes_after: u64,
        /// How long it took, nanoseconds.
        took_ns: u64,
    },
    /// A compaction failed; its table is tried again later.
    CompactionFailed {
        /// The table, if it had come to one.
        table: Option<&'a Table>,
        /// Why.
        error: &'a Error,
    },
    /// The schema changed.
    SchemaChanged(&'a SchemaChange),
    /// A table was emptied.
    Truncated(&'a Table),
    /// SSTables of others were taken in.
    Imported {
        /// Into this table.
        table: &'a Table,
        /// How many.
        sstables: u64,
    },
    /// A read found a file damaged, or the system did not give it.
    ReadFailed {
        /// Of this table.
        table: &'a Table,
        /// The file, where in it, and what is wrong.
        error: &'a Error,
    },
    /// The commit log failed and takes no more writes until a restart.
    LogFailed {
        /// What failed.
        reason: &'a str,
    },
    /// The wall clock jumped by more than an hour.
    ClockJumped(ClockJump),
    /// The commit log could not get its next segment; writes are refused until it can.
    LogFull {
        /// Why.
        error: &'a Error,
    },
}

/// A journal, if there is one.
#[derive(Clone, Default)]
pub struct JournalSlot(Option<Arc<dyn Journal>>);

impl JournalSlot {
    /// With this journal in it.
    pub fn of(journal: Arc<dyn Journal>) -> JournalSlot {
        JournalSlot(Some(journal))
    }

    /// Tells it.
    pub(crate) fn note(&self, event: &Event<'_>) {
        if let Some(journal) = &self.0 {
            journal.note(event);
        }
    }
}

impl std::fmt::Debug for JournalSlot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "a journal" } else { "no journal" })
    }
}
