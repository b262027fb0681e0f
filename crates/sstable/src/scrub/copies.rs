//! Merges the copies of partitions that the data has several times, into one further SSTable.
//!
//! An SSTable has a partition once. The only further copy of a partition is written as it is. Of several, each is written as a
//! small SSTable of its own first; `PIECES_MAX` of them are merged into one, and so on, so that the number of files stays
//! small, and each row is written once for each power of `PIECES_MAX`, however many copies there are.

use super::late::{Late, Part};
use super::output::Output;
use super::run::Run;
use super::source::Extent;
use crate::block::ReadContext;
use crate::buffer::BufferPool;
use crate::data::KeyRange;
use crate::error::Result;
use crate::names::Descriptor;
use crate::table::{OpenOptions, Scan, SsTable, remove_files};
use helenus_model::deletion::DeletionTime;
use helenus_model::merge::Merge;
use helenus_model::reconcile::merge_rows;
use helenus_model::row::RowBuf;
use helenus_model::unfiltered::{Source, Unfiltered};
use std::collections::BTreeMap;

/// The number of copies that are merged at once.
const PIECES_MAX: usize = 32;

/// A small SSTable with one partition, and the number of merges that it went through.
type Piece = (Descriptor, u32);

impl Run<'_, '_> {
    /// Writes copies of partitions, in the order of their tokens, into a further SSTable: those of each key merged.
    pub(super) fn write_copies(&mut self, copies: &[Late]) -> Result<()> {
        let mut output = self.output(1)?;
        let last = std::mem::take(&mut self.last);
        let done = copies
            .chunk_by(|a, b| a.token == b.token)
            .try_for_each(|of_token| self.copies_of_token(of_token, &mut output));
        self.last = last;
        self.finished(output, done)
    }

    /// Mostly all copies with one token are of one key.
    fn copies_of_token(&mut self, copies: &[Late], output: &mut Output) -> Result<()> {
        let mut of_keys: BTreeMap<Vec<u8>, Vec<Late>> = BTreeMap::new();
        for late in copies {
            if self.late_front(late)?.is_some() {
                of_keys.entry(self.front.decorated.clone()).or_default().push(*late);
            }
        }
        for copies in of_keys.values() {
            if let [only] = &copies[..] {
                self.copy(only, output)?;
                continue;
            }
            let mut pieces: Vec<Piece> = Vec::new();
            let before = (self.scrubbed.partitions, self.scrubbed.rows);
            let merged = self.pieces_of(copies, &mut pieces).and_then(|()| {
                while pieces.len() > PIECES_MAX {
                    self.merge_first(PIECES_MAX, &mut pieces)?;
                }
                // What counts is what is left of all copies.
                let (partitions, rows) = self.merge(&pieces, output)?;
                (self.scrubbed.partitions, self.scrubbed.rows) = (before.0 + partitions, before.1 + rows);
                Ok(())
            });
            let removed =
                pieces.iter().try_for_each(|(piece, _)| remove_files(&**self.disk, self.how.folder, piece));
            merged.and(removed)?;
        }
        Ok(())
    }

    /// Writes one copy of a partition.
    fn copy(&mut self, late: &Late, output: &mut Output) -> Result<()> {
        let Some(cut) = self.late_front(late)? else { return Ok(()) };
        let extent = Extent { start: late.start, place: None };
        match late.part {
            Part::Whole => self.partition(&extent, cut, output).map(|_| ()),
            Part::Rows => self.rows_in_order(&extent, cut, output),
        }
    }

    /// Writes each copy of a partition.
    fn pieces_of(&mut self, copies: &[Late], pieces: &mut Vec<Piece>) -> Result<()> {
        for late in copies {
            let mut piece = self.piece()?;
            let done = self.copy(late, &mut piece);
            pieces.extend(self.end_piece(piece, done)?.map(|descriptor| (descriptor, 0)));
            // Many pieces of one level become one of the next.
            while let Some((_, level)) = pieces.last().copied()
                && pieces.iter().rev().take_while(|(_, other)| *other == level).count() >= PIECES_MAX
            {
                let kept = pieces.len() - PIECES_MAX;
                pieces.rotate_left(kept);
                self.merge_first(PIECES_MAX, pieces)?;
            }
        }
        Ok(())
    }

    fn end_piece(&mut self, piece: Output, done: Result<()>) -> Result<Option<Descriptor>> {
        if let Err(error) = done {
            // An error of `abort` is ignored, because the first error is more useful.
            let _ = piece.abort();
            return Err(error);
        }
        let Some(written) = piece.finish(true)? else { return Ok(None) };
        self.scrubbed.times_capped += written.times_capped;
        Ok(Some(written.descriptor))
    }

    /// Merges the first `count` pieces into one, which becomes the last.
    fn merge_first(&mut self, count: usize, pieces: &mut Vec<Piece>) -> Result<()> {
        let first = pieces.get(..count.min(pieces.len())).unwrap_or_default().to_vec();
        let level = first.iter().map(|(_, level)| level + 1).max().unwrap_or_default();
        let mut piece = self.piece()?;
        let done = self.merge(&first, &mut piece).map(|_| ());
        let merged = self.end_piece(piece, done)?;
        pieces.drain(..first.len());
        pieces.extend(merged.map(|descriptor| (descriptor, level)));
        first.iter().try_for_each(|(piece, _)| remove_files(&**self.disk, self.how.folder, piece))
    }

    /// Merges the partition of these pieces into an output. Returns the numbers of partitions and of rows.
    fn merge(&mut self, pieces: &[Piece], output: &mut Output) -> Result<(u64, u64)> {
        let mut cx = ReadContext { may_block: true, fill_cache: false, ..ReadContext::default() };
        let table = self.options.table.clone();
        let (mut deletion, mut static_row, mut merged) =
            (DeletionTime::LIVE, RowBuf::default(), RowBuf::default());
        let mut sources: Vec<Scan> = Vec::new();
        for (piece, _) in pieces {
            let options = OpenOptions { schema: table.clone(), buffers: BufferPool::none() };
            let opened = SsTable::open(&**self.disk, self.how.folder, *piece, options)?;
            let mut scan = opened.scan(&KeyRange::all(), &mut cx)?;
            if scan.next_partition(&mut cx)? {
                deletion = deletion.max(scan.deletion());
                sources.push(scan);
            }
        }
        let Some(first) = sources.first() else { return Ok((0, 0)) };
        let key = first.key().to_vec();
        for row in sources.iter().filter_map(Scan::static_row) {
            merge_rows(&table, static_row.view(), row, deletion, &mut merged);
            std::mem::swap(&mut static_row, &mut merged);
        }
        output.begin(&key, deletion, &static_row)?;
        let mut merge = Merge::new(table, false, deletion, sources);
        let mut rows = 0;
        while merge.advance(&mut cx)? {
            rows += u64::from(matches!(merge.current(), Unfiltered::Row(_)));
            output.add(merge.current())?;
        }
        let (is_there, _) = output.end()?;
        Ok((u64::from(is_there), rows))
    }
}
