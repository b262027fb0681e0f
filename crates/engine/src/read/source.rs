//! Chooses and opens the sources of one partition: the memtables and SSTables that may hold a part of the answer.
//!
//! The view's index by token leaves those SSTables that may have the key; `reason_to_skip` decides for each of them by
//! what is in memory: key range, Bloom filter, clustering range, timestamps. A read of at most one row also moves the opened sources to their first row, which may read blocks, and
//! stops at SSTables that are too old to change the row (`newest_row`). The probe records each skipped SSTable with the
//! reason.

use super::command::{PartitionKey, ReadCommand};
use super::newest_row::{NewestRow, can_stop_early};
use super::probe::{Probe, SkipReason};
use super::scratch::ReadScratch;
use crate::error::Result;
use crate::memtable::{MemtableCursor, RowBuffers, Selected};
use crate::table::View;
use helenus_host::account;
use helenus_model::deletion::DeletionTime;
use helenus_model::filter::ClusteringFilter;
use helenus_model::reconcile::{filter_row, merge_rows};
use helenus_model::row::{RowBuf, RowView};
use helenus_model::row_batch::RowBatch;
use helenus_model::schema::Table;
use helenus_model::unfiltered::{Source, Unfiltered};
use helenus_sstable::block::ReadContext;
use helenus_sstable::stopwatch::Stage;
use helenus_sstable::table::{PartitionReader, Scan, SsTable};
use std::ops::ControlFlow;
use std::sync::Arc;

/// One source of a partition's rows.
pub(super) enum AnySource {
    /// A memtable.
    Memtable(MemtableCursor),
    /// An SSTable, found by key.
    Table(PartitionReader),
    /// An SSTable that is being scanned; borrowed from the range read for one partition.
    Scan(Box<Scan>),
}

impl AnySource {
    /// Sets whether rows carry their byte-comparable keys. They need them only if there are other sources to compare
    /// with.
    pub(super) fn set_keys(&mut self, with_keys: bool) {
        match self {
            AnySource::Memtable(cursor) => cursor.set_keys(with_keys),
            AnySource::Table(reader) => reader.set_keys(with_keys),
            AnySource::Scan(scan) => scan.set_keys(with_keys),
        }
    }
}

impl AnySource {
    /// Passes rows one by one to `each`, as long as the source can read the next element without its general code: a
    /// plain row of an SSTable, or a row of a memtable if no range deletion begins or ends in the rest of the slice.
    /// `each` may stop after any row. If anything else comes next, the caller goes on with `advance`.
    #[inline]
    pub(super) fn plain_rows(
        &mut self,
        cx: &mut ReadContext,
        each: impl FnMut(&RowBuf, &[u8], &mut ReadContext) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        Ok(match self {
            AnySource::Memtable(cursor) => cursor.plain_rows(cx, each),
            AnySource::Table(reader) => reader.plain_rows(cx, each)?,
            AnySource::Scan(scan) => scan.plain_rows(cx, each)?,
        })
    }

    /// Advances over up to `most` rows at once and returns them as a row batch, if they hold nothing but values.
    /// Returns `None` if other rows come next, which `plain_rows` and `advance` handle.
    pub(super) fn batch(&mut self, most: usize, cx: &mut ReadContext) -> Result<Option<RowBatch<'_>>> {
        Ok(match self {
            AnySource::Memtable(_) => None,
            AnySource::Table(reader) => reader.batch(most, cx)?,
            AnySource::Scan(scan) => scan.batch(most, cx)?,
        })
    }
}

impl Source<ReadContext> for AnySource {
    type Error = helenus_sstable::Error;

    #[inline]
    fn advance(&mut self, cx: &mut ReadContext) -> std::result::Result<bool, helenus_sstable::Error> {
        match self {
            AnySource::Memtable(cursor) => cursor.advance(cx),
            AnySource::Table(reader) => reader.advance(cx),
            AnySource::Scan(scan) => scan.advance(cx),
        }
    }

    #[inline]
    fn release_bytes(&mut self) -> usize {
        match self {
            AnySource::Memtable(_) => 0,
            AnySource::Table(reader) => reader.release_bytes(),
            AnySource::Scan(scan) => scan.release_bytes(),
        }
    }

    fn reload(
        &mut self,
        expected: usize,
        cx: &mut ReadContext,
    ) -> std::result::Result<(), helenus_sstable::Error> {
        match self {
            AnySource::Memtable(_) => Ok(()),
            AnySource::Table(reader) => reader.reload(expected, cx),
            AnySource::Scan(scan) => scan.reload(expected, cx),
        }
    }

    #[inline]
    fn current(&self) -> Unfiltered<'_> {
        match self {
            AnySource::Memtable(cursor) => <MemtableCursor as Source<ReadContext>>::current(cursor),
            AnySource::Table(reader) => reader.current(),
            AnySource::Scan(scan) => scan.current(),
        }
    }
}

/// The most bytes of a static row's buffers that are kept for the next partition.
const KEPT_BYTES_MAX: usize = 64 << 10;

/// The opened sources of a partition, with its deletion and static row.
pub(super) struct PartitionSources {
    pub(super) sources: Vec<AnySource>,
    pub(super) deletion: DeletionTime,
    /// The merged static row; empty if there is none.
    pub(super) static_row: RowBuf,
    /// One entry for each source that was already advanced to its first element: whether it has one. Later sources have
    /// not begun.
    pub(super) begun: Vec<bool>,
    newest: NewestRow,
}

impl Default for PartitionSources {
    fn default() -> PartitionSources {
        PartitionSources {
            sources: Vec::new(),
            deletion: DeletionTime::LIVE,
            static_row: RowBuf::default(),
            begun: Vec::new(),
            newest: NewestRow::default(),
        }
    }
}

impl PartitionSources {
    /// Clears the state of the last partition. A caller that borrowed scans takes them back first.
    pub(super) fn clear(&mut self) {
        self.sources.clear();
        self.begun.clear();
        self.deletion = DeletionTime::LIVE;
        if self.static_row.memory_bytes() > KEPT_BYTES_MAX {
            self.static_row = RowBuf::default();
        }
        self.static_row.clear();
    }

    /// Merges a source's static row.
    ///
    /// # Errors
    /// There is no memory for it.
    pub(super) fn add_static(&mut self, table: &Table, row: RowView<'_>) -> Result<()> {
        // A buffer that grows by doubling, beside the one that there is.
        account::grow(2 * (row.data.len() + self.static_row.view().data.len()))?;
        let mut merged = RowBuf::default();
        merge_rows(table, self.static_row.view(), row, DeletionTime::LIVE, &mut merged);
        self.static_row = merged;
        Ok(())
    }

    /// Whether data with timestamps up to `older_us` can no longer change the one row that is read, given the sources
    /// opened so far. Advances sources that have not begun to their first element.
    fn hide(
        &mut self,
        (command, filter): (&ReadCommand, &ClusteringFilter),
        older_us: i64,
        cx: &mut ReadContext,
    ) -> Result<bool> {
        if self.sources.is_empty() {
            return Ok(false);
        }
        if self.begun.is_empty() {
            self.newest.restart(command);
        }
        let before = cx.enter(Stage::Merge);
        for source in self.sources.iter_mut().skip(self.begun.len()) {
            let has_element = source.advance(cx)?;
            self.begun.push(has_element);
            // If a range tombstone marker comes first, the row after it is treated as unknown, which is always safe.
            if has_element && let Unfiltered::Row(row) = source.current() {
                self.newest.see(row, command.now_s);
            }
        }
        cx.leave(before);
        Ok(self.newest.hides((command, filter), self.static_row.view(), older_us))
    }

    /// Removes the cells of the static row that the partition deletion covers.
    pub(super) fn hide_static(&mut self) {
        if !self.deletion.is_live() && !self.static_row.view().is_empty() {
            let mut visible = RowBuf::default();
            filter_row(self.static_row.view(), self.deletion, &mut visible);
            self.static_row = visible;
        }
    }
}

/// Opens the sources of one partition into `scratch.found`.
pub(super) fn open(
    command: &ReadCommand,
    filter: &Arc<ClusteringFilter>,
    view: &View,
    key: &PartitionKey,
    (scratch, mut probe): (&mut ReadScratch, Option<&mut Probe>),
) -> Result<()> {
    scratch.found.clear();
    for memtable in &view.memtables {
        let Some(partition) = memtable.partition_of_key(key.hash.token, &key.bytes) else { continue };
        if let Some(probe) = probe.as_deref_mut() {
            probe.memtables += 1;
        }
        add_memtable(scratch, command, filter, (memtable, partition))?;
    }
    let ReadScratch { cx, readers, found, sstables_asked, .. } = scratch;
    let is_one_row = can_stop_early(command, filter);
    let mut positions = view.sstables.at(key.hash.token);
    let mut noted = 0;
    while let Some(position) = positions.next() {
        let Some(table) = view.sstables.get(position) else { continue };
        if is_one_row && found.hide((command, filter), table.stats().timestamp_us_max, cx)? {
            if let Some(probe) = probe.as_deref_mut() {
                let older = std::iter::once(position).chain(positions);
                for table in older.filter_map(|position| view.sstables.get(position)) {
                    probe.note(table, Some(SkipReason::Older));
                    noted += 1;
                }
            }
            break;
        }
        let skip = match reason_to_skip(table, key, filter, found.deletion) {
            Some(reason) => Some(reason),
            None => match readers.find(table, key, command.statics, cx)? {
                None => Some(SkipReason::Absent),
                Some(mut reader) => {
                    found.deletion = found.deletion.max(reader.deletion());
                    if let Some(row) = reader.static_row() {
                        found.add_static(&command.table, row)?;
                    }
                    reader.select(filter.clone(), command.reversed);
                    if let Some(rows) = command.likely_rows() {
                        reader.expect_rows(rows);
                    }
                    found.sources.push(AnySource::Table(reader));
                    *sstables_asked += 1;
                    None
                }
            },
        };
        if let Some(probe) = probe.as_deref_mut() {
            probe.note(table, skip);
            noted += 1;
        }
    }
    if let Some(probe) = probe {
        probe.note_elsewhere(view.sstables.len() - noted);
    }
    found.hide_static();
    Ok(())
}

/// Adds a memtable's partition: cursor, deletion and static row, all at one sequence number.
pub(super) fn add_memtable(
    scratch: &mut ReadScratch,
    command: &ReadCommand,
    filter: &Arc<ClusteringFilter>,
    (memtable, partition): (&Arc<crate::memtable::Memtable>, crate::memtable::PartitionRef<'_>),
) -> Result<()> {
    let found = &mut scratch.found;
    let content = partition.content();
    let sequence = content.sequence();
    scratch.logged = scratch.logged.max(content.logged());
    found.deletion = found.deletion.max(content.deletion(sequence));
    if let Some(row) = content.static_row(sequence).filter(|_| command.statics) {
        let mut buffers = RowBuffers::default();
        found.add_static(&command.table, row.decode((&command.table, 0), &mut buffers)?)?;
    }
    let selected = Selected { sequence, table: &command.table, filter, reversed: command.reversed };
    let memory = scratch.cursors.pop().unwrap_or_default();
    let cursor = MemtableCursor::new(memtable, partition, &selected, memory);
    found.sources.push(AnySource::Memtable(cursor));
    Ok(())
}

/// Why an SSTable can be skipped without reading it, or `None`.
///
/// SSTables come newest first, so a partition deletion found in one hides older ones completely. Only strictly older
/// data is skipped, not data of equal timestamp, as in Cassandra's `SinglePartitionReadCommand`.
pub(super) fn reason_to_skip(
    table: &SsTable,
    key: &PartitionKey,
    filter: &ClusteringFilter,
    deletion: DeletionTime,
) -> Option<SkipReason> {
    if !table.covers(&key.decorated) {
        return Some(SkipReason::KeyRange);
    }
    if table.stats().timestamp_us_max < deletion.timestamp_us {
        return Some(SkipReason::Deleted);
    }
    if !table.may_contain(&key.hash) {
        return Some(SkipReason::BloomFilter);
    }
    let outside = !table.may_have_tombstones()
        && table.schema().statics.is_empty()
        && table.clustering_range().is_some_and(|(first, last)| !touches(filter, first, last));
    outside.then_some(SkipReason::ClusteringRange)
}

fn touches(filter: &ClusteringFilter, first: &[u8], last: &[u8]) -> bool {
    match filter {
        ClusteringFilter::Names(names) => names.iter().any(|name| &name[..] >= first && &name[..] <= last),
        ClusteringFilter::Slices(slices) => {
            slices.iter().any(|s| &s.start[..] <= last && &s.end[..] >= first)
        }
    }
}
