//! Puts the rows of a partition in order that came after a row which they must precede.
//!
//! Rows are sorted in pieces that fit in memory. If there are several, each is written as an SSTable of its own, and the
//! pieces are merged at the end, `PIECES_MAX` at once. So each row is written once for each power of `PIECES_MAX`, and
//! memory and the number of files are bounded, however many rows there are and whatever their order. Rows of one
//! position are merged, as reads do. Source of the rule: `SortedTableScrubber`, which keeps all such rows of a partition
//! in memory.

use crate::block::ReadContext;
use crate::buffer::BufferPool;
use crate::data::KeyRange;
use crate::error::{Error, Result};
use crate::names::Descriptor;
use crate::table::{OpenOptions, SsTable, remove_files};
use crate::writer::{SsTableWriter, WriterOptions};
use helenus_host::Disk;
use helenus_model::deletion::DeletionTime;
use helenus_model::merge::Merge;
use helenus_model::reconcile::merge_rows;
use helenus_model::row::{RowBuf, RowView};
use helenus_model::token::KeyHash;
use helenus_model::unfiltered::{Source, Unfiltered};
use std::path::Path;
use std::sync::Arc;

/// The number of pieces that are merged at once.
const PIECES_MAX: usize = 32;

/// Where pieces are written.
pub(super) struct Pieces<'a> {
    pub(super) disk: &'a Arc<dyn Disk>,
    pub(super) folder: &'a Path,
    pub(super) options: &'a WriterOptions,
    /// Makes the descriptor of each piece.
    pub(super) next: &'a mut dyn FnMut() -> Result<Descriptor>,
}

/// The rows of one partition.
#[derive(Default)]
pub(super) struct RowSorter {
    key: Vec<u8>,
    /// Bytes of rows that are sorted at once.
    memory_bytes_max: usize,
    rows: Vec<RowBuf>,
    memory_bytes: usize,
    /// The pieces on disk, each with the number of merges that it went through.
    pieces: Vec<(Descriptor, u32)>,
    /// Number of times after 2038 that were replaced when pieces were written.
    pub(super) times_capped: u64,
}

impl RowSorter {
    /// Begins with the partition of this key.
    pub(super) fn new(key: &[u8], memory_bytes_max: usize) -> RowSorter {
        RowSorter { key: key.to_vec(), memory_bytes_max, ..RowSorter::default() }
    }

    /// Adds a row.
    pub(super) fn add(&mut self, row: RowView<'_>, to: &mut Pieces<'_>) -> Result<()> {
        let mut kept = RowBuf::default();
        kept.copy_from(row);
        self.memory_bytes += kept.memory_bytes() + size_of::<RowBuf>();
        self.rows.push(kept);
        if self.memory_bytes >= self.memory_bytes_max { self.write_piece(to) } else { Ok(()) }
    }

    /// Calls `each` with the rows in order.
    pub(super) fn finish(
        &mut self,
        to: &mut Pieces<'_>,
        each: &mut dyn FnMut(RowView<'_>) -> Result<()>,
    ) -> Result<()> {
        if self.pieces.is_empty() {
            self.sort(to);
            return self.rows.drain(..).try_for_each(|row| each(row.view()));
        }
        self.write_piece(to)?;
        while self.pieces.len() > PIECES_MAX {
            self.merge_first(PIECES_MAX, to)?;
        }
        let last = std::mem::take(&mut self.pieces);
        let merged = merge(&last, to, each);
        self.pieces = last;
        merged?;
        self.remove_pieces(&**to.disk, to.folder)
    }

    /// Removes the pieces on disk.
    pub(super) fn remove_pieces(&mut self, disk: &dyn Disk, folder: &Path) -> Result<()> {
        self.pieces.drain(..).try_for_each(|(piece, _)| remove_files(disk, folder, &piece))
    }

    fn sort(&mut self, to: &Pieces<'_>) {
        self.memory_bytes = 0;
        self.rows.sort_by(|a, b| a.key.cmp(&b.key));
        let mut merged = RowBuf::default();
        let table = &to.options.table;
        self.rows.dedup_by(|row, before| {
            let is_same = row.key == before.key;
            if is_same {
                merge_rows(table, before.view(), row.view(), DeletionTime::LIVE, &mut merged);
                before.copy_from(merged.view());
            }
            is_same
        });
        self.rows.retain(|row| !row.view().is_empty());
    }

    fn write_piece(&mut self, to: &mut Pieces<'_>) -> Result<()> {
        if self.rows.is_empty() {
            return Ok(());
        }
        self.sort(to);
        let descriptor = (to.next)()?;
        let mut writer = self.begin_piece(descriptor, to)?;
        let written = self.rows.drain(..).try_for_each(|row| writer.add(Unfiltered::Row(row.view())));
        self.end_piece(writer, written)?;
        self.pieces.push((descriptor, 0));
        // Many pieces of one level become one of the next.
        while let Some((_, level)) = self.pieces.last().copied()
            && self.pieces.iter().rev().take_while(|(_, other)| *other == level).count() >= PIECES_MAX
        {
            let kept = self.pieces.len() - PIECES_MAX;
            self.pieces.rotate_left(kept);
            self.merge_first(PIECES_MAX, to)?;
        }
        Ok(())
    }

    /// Merges the first `count` pieces into one, which becomes the last.
    fn merge_first(&mut self, count: usize, to: &mut Pieces<'_>) -> Result<()> {
        let descriptor = (to.next)()?;
        let mut writer = self.begin_piece(descriptor, to)?;
        let rest = self.pieces.split_off(count.min(self.pieces.len()));
        let first = std::mem::replace(&mut self.pieces, rest);
        let merged = merge(&first, to, &mut |row| writer.add(Unfiltered::Row(row)));
        let level = first.iter().map(|(_, level)| level + 1).max().unwrap_or_default();
        let ended = self.end_piece(writer, merged);
        let removed = first.iter().try_for_each(|(piece, _)| remove_files(&**to.disk, to.folder, piece));
        ended?;
        self.pieces.push((descriptor, level));
        removed
    }

    fn begin_piece(&self, descriptor: Descriptor, to: &Pieces<'_>) -> Result<SsTableWriter> {
        let options = WriterOptions { estimated_keys: 1, ..to.options.clone() };
        let mut writer = SsTableWriter::create(to.disk.clone(), to.folder, descriptor, options)?;
        match writer.begin_partition(&self.key, &KeyHash::of(&self.key), DeletionTime::LIVE, None) {
            Ok(()) => Ok(writer),
            Err(error) => Err(abort(writer, error)),
        }
    }

    fn end_piece(&mut self, mut writer: SsTableWriter, rows: Result<()>) -> Result<()> {
        match rows.and_then(|()| writer.end_partition()) {
            Ok(()) => {
                self.times_capped += writer.finish()?.times_capped;
                Ok(())
            }
            Err(error) => Err(abort(writer, error)),
        }
    }
}

fn abort(writer: SsTableWriter, error: Error) -> Error {
    // An error of `abort` is ignored, because the first error is more useful.
    let _ = writer.abort();
    error
}

fn merge(
    pieces: &[(Descriptor, u32)],
    to: &Pieces<'_>,
    each: &mut dyn FnMut(RowView<'_>) -> Result<()>,
) -> Result<()> {
    let mut cx = ReadContext { may_block: true, fill_cache: false, ..ReadContext::default() };
    let table = &to.options.table;
    let mut sources = Vec::new();
    for (piece, _) in pieces {
        let options = OpenOptions { schema: table.clone(), buffers: BufferPool::none() };
        let piece = SsTable::open(&**to.disk, to.folder, *piece, options)?;
        let mut scan = piece.scan(&KeyRange::all(), &mut cx)?;
        if scan.next_partition(&mut cx)? {
            sources.push(scan);
        }
    }
    let mut merged = Merge::new(table.clone(), false, DeletionTime::LIVE, sources);
    while merged.advance(&mut cx)? {
        if let Unfiltered::Row(row) = merged.current() {
            each(row)?;
        }
    }
    Ok(())
}
