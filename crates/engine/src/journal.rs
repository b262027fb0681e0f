//! Events for the log of the process: rare ones that a person may want to know.
//!
//! The engine prints nothing. The options of a database may contain a `Journal`; without one, events are dropped. The
//! journal is called on the thread where the event happens, sometimes with locks held: an implementation must return at
//! once and must not call the database.

use crate::clock_watch::ClockJump;
use crate::error::Error;
use crate::schema::SchemaChange;
use helenus_model::schema::Table;
use helenus_sstable::component::Component;
use helenus_sstable::writer::{LargePartition, PartitionLimits, WriterOptions, Written};
use std::path::Path;
use std::sync::Arc;

/// Receives the events of a database.
pub trait Journal: Send + Sync {
    /// An event happened.
    fn note(&self, event: &Event<'_>);

    /// The limits beyond which partitions of new SSTables are events. Asked once for each SSTable.
    fn partition_limits(&self) -> PartitionLimits {
        PartitionLimits::NONE
    }
}

/// An event.
#[derive(Debug)]
pub enum Event<'a> {
    /// A memtable was flushed.
    Flushed {
        /// The table.
        table: &'a Table,
        /// Bytes of the files that were written.
        bytes: u64,
        /// Its duration, nanoseconds.
        took_ns: u64,
    },
    /// A flush or a compaction wrote partitions beyond the journal's limits.
    LargePartitions {
        /// The table.
        table: &'a Table,
        /// The name of its Data.db.
        file: &'a str,
        /// The partitions, at most a hundred.
        partitions: &'a [LargePartition],
    },
    /// A flush failed. The memtable stays in memory, and the flush is tried again.
    FlushFailed {
        /// The table.
        table: &'a Table,
        /// Why.
        error: &'a Error,
    },
    /// A flush or a compaction wrote with the default compression, because that of the table cannot be written.
    OptionsReplaced {
        /// The table.
        table: &'a Table,
        /// Why its own cannot be.
        problem: &'a str,
    },
    /// SSTables were replaced by others.
    Compacted {
        /// The table.
        table: &'a Table,
        /// `compaction`, `tombstones` or `major`.
        kind: &'static str,
        /// SSTables that were read.
        sstables_before: u64,
        /// Bytes of their files.
        bytes_before: u64,
        /// SSTables that were written.
        sstables_after: u64,
        /// Bytes of their files.
        bytes_after: u64,
        /// Its duration, nanoseconds.
        took_ns: u64,
    },
    /// A compaction failed. It is tried again later; further failures of the same kind are no events.
    CompactionFailed {
        /// The table, if one was chosen before the failure.
        table: Option<&'a Table>,
        /// Why.
        error: &'a Error,
        /// Data.db of the SSTables that are left out for a while, because the cause lies in them.
        left_out: &'a [String],
    },
    /// The compactions of a table wait for space on the disk.
    CompactionWaits {
        /// The table.
        table: &'a Table,
        /// The most bytes that the least of them may write.
        wanted: u64,
        /// Bytes that are free.
        free: u64,
        /// Bytes of them that are kept for the commit log, for flushes and for running compactions.
        kept: u64,
    },
    /// A table is compacted again, after failures or a wait for space.
    CompactionGoesOn {
        /// The table.
        table: &'a Table,
    },
    /// Open SSTables keep more in memory than counts on the memory account.
    SsTableMemory {
        /// Bytes of their filters, indexes and chunk offsets.
        bytes: u64,
        /// The most bytes that count, about a quarter of the memory limit.
        counted_max: u64,
    },
    /// The schema changed.
    SchemaChanged(&'a SchemaChange),
    /// A table was truncated.
    Truncated(&'a Table),
    /// SSTables were imported.
    Imported {
        /// The table.
        table: &'a Table,
        /// Their number.
        sstables: u64,
    },
    /// Files are left that could not be removed. The next start removes them, or an earlier attempt.
    LeftBehind {
        /// The folder or file.
        path: &'a Path,
        /// Why.
        error: &'a Error,
    },
    /// A start found an index that may lack entries. It is built anew, and searches through it are refused until then.
    IndexIncomplete {
        /// The table.
        table: &'a Table,
        /// The index.
        index: &'a str,
        /// Why.
        reason: &'a str,
    },
    /// The disk is full, so a start could not write the record of the SSTables that the indexes of a table are complete for. The
    /// record of the run before stays, until the next flush or compaction of the table.
    IndexFilesNotKept {
        /// The table.
        table: &'a Table,
        /// Why.
        error: &'a Error,
    },
    /// The build of an index begins in the background. Searches through it are refused until it is done.
    IndexBuildBegun {
        /// The table.
        table: &'a Table,
        /// The index.
        index: &'a str,
    },
    /// An index that was built in the background is complete.
    IndexBuilt {
        /// The table.
        table: &'a Table,
        /// The index.
        index: &'a str,
        /// Entries that the build made.
        entries: u64,
    },
    /// An import failed half-way. It is tried again until it is done.
    ImportWaits {
        /// A table whose files are still to come.
        table: &'a Table,
        /// Why.
        error: &'a Error,
    },
    /// A read found a damaged file, or the operating system failed to read it.
    ReadFailed {
        /// The table.
        table: &'a Table,
        /// The file, the position in it, and the cause.
        error: &'a Error,
    },
    /// The commit log failed and takes no more writes until a restart.
    LogFailed {
        /// The failure.
        reason: &'a str,
    },
    /// The wall clock jumped by more than an hour.
    ClockJumped(ClockJump),
    /// Segments of the commit log that are no longer needed could not be removed. It is tried again.
    LogNotRemoved {
        /// Why.
        error: &'a Error,
    },
    /// The commit log is longer than it should be, and its oldest segment has stayed for a minute although no flush fails.
    LogStalled {
        /// Its segments.
        segments: usize,
        /// Names of the tables that have writes in the oldest one.
        tables: &'a [String],
    },
    /// The commit log could not get its next segment; writes are refused until it can.
    LogFull {
        /// Why.
        error: &'a Error,
    },
    /// Something that is stored is not understood and has no effect.
    Ignored {
        /// What, why, and what to do.
        text: &'a str,
    },
}

/// A journal, if there is one.
#[derive(Clone, Default)]
pub struct JournalSlot(Option<Arc<dyn Journal>>);

impl JournalSlot {
    /// Uses this journal.
    pub fn of(journal: Arc<dyn Journal>) -> JournalSlot {
        JournalSlot(Some(journal))
    }

    /// The journal's limits of partitions.
    pub(crate) fn partition_limits(&self) -> PartitionLimits {
        self.0.as_ref().map_or(PartitionLimits::NONE, |journal| journal.partition_limits())
    }

    /// Notes whether the options of a table had to be replaced.
    pub(crate) fn note_options(&self, table: &Table, options: &WriterOptions) {
        if let Some(problem) = &options.refused {
            self.note(&Event::OptionsReplaced { table, problem });
        }
    }

    /// Notes the partitions of a new SSTable that are beyond the limits.
    pub(crate) fn note_written(&self, table: &Table, written: &Written) {
        let partitions = &written.large_partitions;
        if !partitions.is_empty() {
            let file = written.descriptor.file_name(Component::Data);
            self.note(&Event::LargePartitions { table, file: &file, partitions });
        }
    }

    /// Passes an event to the journal, if there is one.
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
