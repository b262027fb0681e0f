//! Writes the rows that a scrub keeps. A partition is begun once it has content, and range tombstones are closed before
//! each loss.

use crate::error::Result;
use crate::names::Descriptor;
use crate::writer::{SsTableWriter, WriterOptions, Written};
use helenus_host::Disk;
use helenus_model::byte_comparable::clustering_bound;
use helenus_model::deletion::DeletionTime;
use helenus_model::range_tombstone::MarkerBuf;
use helenus_model::row::{RowBuf, RowView};
use helenus_model::schema::Table;
use helenus_model::token::KeyHash;
use helenus_model::unfiltered::Unfiltered;
use std::path::PathBuf;
use std::sync::Arc;

/// One new SSTable. No file is created as long as there is nothing to write.
pub(super) struct Output {
    disk: Arc<dyn Disk>,
    folder: PathBuf,
    descriptor: Descriptor,
    options: WriterOptions,
    writer: Option<SsTableWriter>,
    partition: Partition,
}

/// The current partition.
#[derive(Default)]
struct Partition {
    key: Vec<u8>,
    deletion: Option<DeletionTime>,
    static_row: RowBuf,
    is_begun: bool,
    /// The last marker, which is not written before the next element is known.
    pending: Option<MarkerBuf>,
    /// The range deletion that is open after the last element written.
    open: Option<DeletionTime>,
    /// The range deletion that is open after a loss, and must be opened before the next element.
    reopen: Option<DeletionTime>,
    /// A marker right after the last row written, to close a range deletion there. It is kept while one is open.
    behind: MarkerBuf,
    /// Ordered clustering position of the last element written.
    last: Vec<u8>,
}

impl Output {
    pub(super) fn new(
        disk: Arc<dyn Disk>,
        folder: PathBuf,
        descriptor: Descriptor,
        options: WriterOptions,
    ) -> Output {
        Output { disk, folder, descriptor, options, writer: None, partition: Partition::default() }
    }

    /// Begins a partition, which must be after the one before.
    pub(super) fn begin(&mut self, key: &[u8], deletion: DeletionTime, static_row: &RowBuf) -> Result<()> {
        let partition = &mut self.partition;
        partition.key.clear();
        partition.key.extend_from_slice(key);
        partition.deletion = Some(deletion);
        partition.static_row.copy_from(static_row.view());
        partition.last.clear();
        (partition.is_begun, partition.pending, partition.open, partition.reopen) = (false, None, None, None);
        if deletion.is_live() && static_row.view().is_empty() {
            Ok(())
        } else {
            self.ensure_begun().map(|_| ())
        }
    }

    /// Adds an element (row or marker), which must be after the one before. Returns whether a part of a range tombstone
    /// was lost, because the marker closes one that is not open.
    pub(super) fn add(&mut self, element: Unfiltered<'_>) -> Result<bool> {
        match element {
            Unfiltered::Row(row) => {
                self.reopen_before(row);
                self.write_pending()?;
                self.write(element)?;
                if self.partition.open.is_some() {
                    set_bound(&mut self.partition.behind, row, false, &self.options.table);
                }
                Ok(false)
            }
            Unfiltered::Marker(marker) => {
                let mut marker_now = MarkerBuf::default();
                marker_now.copy_from(marker);
                let is_right = some(marker.marker.close) == self.open_ahead();
                if !is_right {
                    self.close()?;
                }
                if !is_right || self.partition.reopen.take().is_some() {
                    marker_now.close = DeletionTime::LIVE;
                }
                self.write_pending()?;
                let is_lost = marker_now.key <= self.partition.last;
                if !is_lost && marker_now.kind().is_some() {
                    self.partition.pending = Some(marker_now);
                }
                Ok(!is_right || is_lost)
            }
        }
    }

    /// Reports a loss after the last element, and the range deletion that is open where the elements continue.
    pub(super) fn gap(&mut self, open: Option<DeletionTime>) -> Result<()> {
        if self.open_ahead() != open {
            self.close()?;
            self.partition.reopen = open;
        }
        Ok(())
    }

    /// Ends the partition, and closes a range tombstone that is still open. Returns whether anything of the partition
    /// was written, and whether a range tombstone was open.
    pub(super) fn end(&mut self) -> Result<(bool, bool)> {
        let was_open = self.open_ahead().is_some();
        self.partition.reopen = None;
        if was_open {
            self.close()?;
        }
        self.write_pending()?;
        let is_begun = std::mem::take(&mut self.partition.is_begun);
        if let Some(writer) = self.writer.as_mut().filter(|_| is_begun) {
            writer.end_partition()?;
        }
        Ok((is_begun, was_open))
    }

    /// Finishes the SSTable; `None` if nothing was written. If something was lost, the SSTable must be repaired again, as
    /// in Cassandra's `SortedTableScrubber`.
    pub(super) fn finish(self, is_whole: bool) -> Result<Option<Written>> {
        let Some(mut writer) = self.writer else { return Ok(None) };
        if !is_whole {
            writer.forget_repair();
        }
        writer.finish().map(Some)
    }

    /// Removes the files.
    pub(super) fn abort(self) -> Result<()> {
        self.writer.map_or(Ok(()), SsTableWriter::abort)
    }

    /// The range deletion that is open after the last element added or, if there was a loss, after the loss.
    fn open_ahead(&self) -> Option<DeletionTime> {
        let Partition { pending, open, reopen, .. } = &self.partition;
        reopen.or_else(|| pending.as_ref().map_or(*open, |marker| some(marker.open)))
    }

    /// Closes the open range deletion as early as possible: at the marker that opened it, or after the last row
    /// written.
    fn close(&mut self) -> Result<()> {
        if self.partition.reopen.take().is_some() {
            return Ok(());
        }
        if let Some(pending) = &mut self.partition.pending {
            pending.open = DeletionTime::LIVE;
            if pending.kind().is_none() {
                self.partition.pending = None;
            }
            return self.write_pending();
        }
        if let Some(open) = self.partition.open {
            let mut marker = std::mem::take(&mut self.partition.behind);
            (marker.close, marker.open) = (open, DeletionTime::LIVE);
            self.write(Unfiltered::Marker(marker.view()))?;
            self.partition.open = None;
        }
        Ok(())
    }

    /// Opens a range deletion before a row if `reopen` requires it.
    fn reopen_before(&mut self, row: RowView<'_>) {
        let Some(open) = self.partition.reopen.take() else { return };
        let mut marker = MarkerBuf::default();
        set_bound(&mut marker, row, true, &self.options.table);
        marker.open = open;
        // If a range was closed at the same position, none is opened there again, so less may be deleted but never
        // more.
        if marker.key > self.partition.last {
            self.partition.pending = Some(marker);
        }
    }

    fn write_pending(&mut self) -> Result<()> {
        let Some(pending) = self.partition.pending.take() else { return Ok(()) };
        self.write(Unfiltered::Marker(pending.view()))?;
        self.partition.open = some(pending.open);
        Ok(())
    }

    fn write(&mut self, element: Unfiltered<'_>) -> Result<()> {
        self.ensure_begun()?.add(element)?;
        self.partition.last.clear();
        self.partition.last.extend_from_slice(element.key());
        Ok(())
    }

    fn ensure_begun(&mut self) -> Result<&mut SsTableWriter> {
        let writer = match self.writer.take() {
            Some(writer) => writer,
            None => {
                let options = self.options.clone();
                SsTableWriter::create(self.disk.clone(), &self.folder, self.descriptor, options)?
            }
        };
        let writer = self.writer.insert(writer);
        let partition = &mut self.partition;
        if !partition.is_begun {
            let deletion = partition.deletion.unwrap_or(DeletionTime::LIVE);
            let static_row = Some(partition.static_row.view()).filter(|row| !row.is_empty());
            writer.begin_partition(&partition.key, &KeyHash::of(&partition.key), deletion, static_row)?;
            partition.is_begun = true;
        }
        Ok(writer)
    }
}

fn some(deletion: DeletionTime) -> Option<DeletionTime> {
    Some(deletion).filter(|deletion| !deletion.is_live())
}

/// Sets the clustering position of a marker right before or after a row. It does not close or open anything yet.
fn set_bound(marker: &mut MarkerBuf, row: RowView<'_>, before: bool, table: &Table) {
    let MarkerBuf { key, clustering, data, .. } = marker;
    key.clear();
    clustering.clear();
    data.clear();
    for span in &row.row.clustering {
        let start = data.len();
        data.extend_from_slice(span.bytes(row.data));
        let here = helenus_model::row::span(start, data.len() - start);
        clustering.push(if span.is_null() { helenus_model::cell::Span::NULL } else { here });
    }
    let values = row.row.clustering.iter().map(|span| span.get(row.data));
    // It cannot fail, because the row's values were decoded.
    let _always = clustering_bound(values, &table.clustering, before, key);
    (marker.before, marker.close, marker.open) = (before, DeletionTime::LIVE, DeletionTime::LIVE);
}
