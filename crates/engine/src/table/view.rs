//! A view: the memtables and SSTables of a table at one moment.

use crate::error::{Error, Result};
use crate::log_position::LogPosition;
use crate::memtable::{MemoryAccount, Memtable};
use crate::metrics::TableMetrics;
use helenus_sstable::names::Descriptor;
use helenus_sstable::table::SsTable;
use std::sync::Arc;

/// The sources of a table at one moment. A change replaces the whole view; the holder of a view keeps its files open.
#[derive(Clone)]
pub struct View {
    /// Newest first. The first receives the writes; the others are being flushed.
    pub memtables: Vec<Arc<Memtable>>,
    /// Newest data first: by greatest timestamp.
    pub sstables: Vec<Arc<SsTable>>,
    /// SSTables that could not be opened. Their content is unknown, so reads fail, and nothing may be purged that one
    /// of them could still contain.
    pub unreadable: Vec<Unreadable>,
    /// The table's metrics of reads and writes.
    pub figures: Arc<TableMetrics>,
    /// The log position after the record that truncated the table; `LogPosition::START` if the table was not truncated
    /// since the start of the process.
    pub(crate) emptied_at: LogPosition,
}

/// An SSTable with a damaged component, or of an unsupported version.
#[derive(Clone, Debug)]
pub struct Unreadable {
    /// Its name; `None` if the name itself is of an unknown version.
    pub descriptor: Option<Descriptor>,
    /// The file, the position in it, and the cause.
    pub error: Arc<helenus_sstable::Error>,
}

impl View {
    /// A view of files only, with an empty memtable.
    pub fn new(account: &MemoryAccount, mut sstables: Vec<Arc<SsTable>>) -> View {
        order(&mut sstables);
        let memtables = vec![Arc::new(Memtable::new(account))];
        let (figures, emptied_at) = (Arc::default(), LogPosition::START);
        View { memtables, sstables, unreadable: Vec::new(), figures, emptied_at }
    }

    /// The view with a new empty memtable before the existing ones.
    ///
    /// `last_us` is the last server timestamp that was assigned.
    pub(super) fn with_new_memtable(&self, account: &MemoryAccount, last_us: i64) -> View {
        let mut memtables = vec![Arc::new(Memtable::behind(account, last_us))];
        memtables.extend(self.memtables.iter().cloned());
        View { memtables, ..self.clone() }
    }

    /// The memtable that takes the writes.
    pub fn current(&self) -> &Arc<Memtable> {
        &self.memtables[0]
    }

    /// The view after a flush: without the memtable, with its SSTable.
    pub(super) fn with_flushed(&self, memtable: &Arc<Memtable>, written: Option<Arc<SsTable>>) -> View {
        let memtables: Vec<_> =
            self.memtables.iter().filter(|m| !Arc::ptr_eq(m, memtable)).cloned().collect();
        assert!(memtables.len() + 1 == self.memtables.len(), "a memtable is flushed once");
        let mut sstables = self.sstables.clone();
        sstables.extend(written);
        order(&mut sstables);
        View { memtables, sstables, ..self.clone() }
    }

    /// Fails if an SSTable could not be opened.
    ///
    /// # Errors
    /// `Unreadable`, for the first such SSTable.
    pub fn check_whole(&self) -> Result<()> {
        match self.unreadable.first() {
            None => Ok(()),
            Some(unreadable) => Err(Error::Unreadable(unreadable.error.clone())),
        }
    }

    /// The smallest timestamp of data outside the readable SSTables: the smallest of the memtables, or `i64::MIN` if
    /// there is an unreadable SSTable. `i64::MAX` if there is no such data.
    pub(crate) fn timestamp_us_min_elsewhere(&self) -> i64 {
        if !self.unreadable.is_empty() {
            return i64::MIN;
        }
        let memtables = self.memtables.iter().map(|memtable| memtable.stats().timestamp_us_min);
        memtables.min().unwrap_or(i64::MAX)
    }

    /// The view after a compaction: without the old SSTables, with the new ones.
    pub(super) fn with_replaced(&self, old: &[Arc<SsTable>], new: &[Arc<SsTable>]) -> View {
        let is_old = |table: &Arc<SsTable>| old.iter().any(|old| Arc::ptr_eq(old, table));
        let mut sstables: Vec<_> = self.sstables.iter().filter(|table| !is_old(table)).cloned().collect();
        assert!(sstables.len() + old.len() == self.sstables.len(), "only what is in the view is replaced");
        sstables.extend(new.iter().cloned());
        order(&mut sstables);
        View { sstables, ..self.clone() }
    }
}

fn order(sstables: &mut [Arc<SsTable>]) {
    sstables.sort_by_key(|table| std::cmp::Reverse(table.stats().timestamp_us_max));
}
