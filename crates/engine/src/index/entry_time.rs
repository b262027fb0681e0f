//! Chooses the timestamp and the expiry of an entry, so that nothing older in the hidden table hides it.
//!
//! An entry normally has the timestamp and the expiry of its cell. That is not enough for a value that is written with
//! an old timestamp: tables and hidden tables are compacted, and purged, apart. The deletion that hid the old timestamps
//! in the table may be gone, while the hidden table still has the removal of an earlier entry, or an expired entry with
//! a later timestamp. So an entry that does not come after all of these is written one microsecond after them. It does
//! not expire then: an entry that does could hide a lasting one of a value with a later timestamp than its own.
//!
//! Such an entry may outlast its value. Overwriting the value does not remove it either, because its timestamp is
//! unknown there: the first search that finds it does.
//!
//! No file is read. In memtables the place of the entry is looked up. An SSTable counts with the greatest timestamp of
//! its removals and expiring entries (`SsTable::hiding_us_max`), if it may have the term. The timestamps of lasting
//! entries do not count: one write with a timestamp far in the future must not make all later entries lasting.
//! Nearly every write comes after all that, and looks at
//! nothing but the statistics of memtables and SSTables.
//!
//! **Writes at the same time.** What another write adds to the hidden table at this moment may be overlooked: both
//! are within the gate, so the value that the other write adds to the table is in the same memtable as this one, and
//! hides this one for good if it is the later one. Removals by searches are announced before they are decided
//! (`PendingRemovals`).

use super::entries::{Entry, EntryPlace, IndexedRow, unindexable};
use crate::error::Result;
use crate::memtable::{CursorMemory, Memtable, MemtableCursor, PartitionRef, Selected};
use crate::table::{AttachedIndex, View};
use arc_swap::Guard;
use helenus_model::byte_comparable::{clustering_key, decorated_key};
use helenus_model::deletion::Liveness;
use helenus_model::filter::ClusteringFilter;
use helenus_model::row::RowBuf;
use helenus_model::schema::Table;
use helenus_model::token::{KeyHash, Token};
use helenus_model::unfiltered::{Source, Unfiltered};
use helenus_sstable::block::ReadContext;
use std::sync::Arc;

/// What an index has removed, or will let expire, at the moment of a write. Must be made within the gate.
pub(super) struct EntryTimes<'a> {
    index: &'a AttachedIndex,
    announced_us: i64,
    view: Guard<Arc<View>>,
}

impl<'a> EntryTimes<'a> {
    pub(super) fn new(index: &'a AttachedIndex) -> EntryTimes<'a> {
        // In this order (`PendingRemovals::timestamp_us`).
        let announced_us = index.state.removals.timestamp_us();
        EntryTimes { index, announced_us, view: index.store.view_briefly() }
    }

    /// The row marker of the entry of a value that is being written.
    pub(super) fn liveness(&self, at: IndexedRow<'_>, entry: &Entry<'_>) -> Result<Liveness> {
        let wanted = entry.liveness;
        let hiding_us = self.hiding_us(at, entry)?;
        if wanted.timestamp_us == i64::MAX {
            // Nothing could be written after it.
            return Ok(Liveness::at(wanted.timestamp_us));
        }
        // What has the greatest of all timestamps hides nothing: entries with it do not expire and are not removed.
        match hiding_us.checked_add(1) {
            Some(least_us) if least_us > wanted.timestamp_us => Ok(Liveness::at(least_us)),
            _ => Ok(wanted),
        }
    }

    /// The greatest timestamp at the entry's place that may hide it; `i64::MIN` if there is none.
    fn hiding_us(&self, at: IndexedRow<'_>, entry: &Entry<'_>) -> Result<i64> {
        let wanted_us = entry.liveness.timestamp_us;
        let mut hiding_us = self.announced_us;
        let is_hiding = |memtable: &&Arc<Memtable>| memtable.may_have_tombstones_from(wanted_us);
        let mut memtables = self.view.memtables.iter().filter(is_hiding).peekable();
        // The first one has the greatest timestamp.
        let reaches =
            self.view.sstables.first().is_some_and(|first| first.stats().timestamp_us_max >= wanted_us);
        if memtables.peek().is_none() && !reaches {
            return Ok(hiding_us);
        }
        let shape = &self.index.shape;
        let key = shape.key_of(&entry.term);
        let hash = KeyHash::of(&key);
        let mut name = Vec::new();
        for memtable in memtables {
            let Some(partition) = memtable.partition_of_key(hash.token, &key) else { continue };
            if name.is_empty() {
                name = self.name_of(at, entry)?;
            }
            let row = memtable_row(memtable, partition, (&shape.table, &name))?;
            let RowBuf { liveness, deletion, .. } = row;
            let expiring_us = if liveness.ttl_s == 0 { i64::MIN } else { liveness.timestamp_us };
            hiding_us = hiding_us.max(deletion.timestamp_us).max(expiring_us);
        }
        let mut decorated = Vec::new();
        decorated_key(hash.token, &key, &mut decorated);
        for sstable in &self.view.sstables {
            let greatest_us = sstable.hiding_us_max();
            if greatest_us >= wanted_us && sstable.covers(&decorated) && sstable.may_contain(&hash) {
                hiding_us = hiding_us.max(greatest_us);
            }
        }
        Ok(hiding_us)
    }

    /// The byte-comparable clustering of an entry in the hidden table.
    fn name_of(&self, IndexedRow { key, row }: IndexedRow<'_>, entry: &Entry<'_>) -> Result<Vec<u8>> {
        let shape = &self.index.shape;
        let (mut position, mut name) = (Vec::new(), Vec::new());
        decorated_key(Token::of_key(key), key, &mut position);
        let clustering = (0..shape.base.clustering.len()).map(|index| row.clustering(index));
        let place = EntryPlace { term: entry.found_by(), position: &position, clustering };
        clustering_key(place.values(shape), &shape.table.clustering, &mut name)
            .map_err(|error| unindexable(shape, &error))?;
        Ok(name)
    }
}

/// A row of a memtable, by its byte-comparable clustering; empty if there is none.
pub(super) fn memtable_row(
    memtable: &Arc<Memtable>,
    partition: PartitionRef<'_>,
    (table, name): (&Arc<Table>, &[u8]),
) -> Result<RowBuf> {
    let mut found = RowBuf::default();
    let filter = Arc::new(ClusteringFilter::Names(vec![name.to_vec()]));
    let sequence = partition.content().sequence();
    let selected = Selected { sequence, table, filter: &filter, reversed: false };
    let memory: Box<CursorMemory> = Box::default();
    let mut cursor = MemtableCursor::new(memtable, partition, &selected, memory);
    let mut cx = ReadContext::default();
    while cursor.advance(&mut cx)? {
        if let Unfiltered::Row(row) = <MemtableCursor as Source<ReadContext>>::current(&cursor) {
            found.copy_from(row);
        }
    }
    Ok(found)
}
