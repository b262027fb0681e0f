//! Receives the rows of a read: drops those that the filter rejects, writes the rest into the answer.
//!
//! This code runs for every row of every answer, so it allocates nothing for a row: cells are copied directly from the
//! row's view to the answer, and a value that must be assembled is built in a reused buffer.

use super::direct::DirectColumns;
use super::fold::Folding;
use super::group::{Grouped, Grouping};
use super::nearest::TopK;
use super::row::{Computing, RowAt};
use super::sort::{Sort, SortBuffer};
use crate::analysis::restrictions::BoundFilter;
use crate::analysis::selection::{RowValue, Selected, Selection};
use crate::answer::RowsOut;
use crate::budget::{put_json, room_in_text};
use crate::error::{CqlError, Result};
use crate::request::AnswerMemory;
use helenus_engine::Ticket;
use helenus_engine::account;
use helenus_engine::read::{BatchSink, RowOutcome, RowSink, TombstoneLimit};
use helenus_model::row::{RowBuf, RowView};
use helenus_model::row_batch::RowBatch;

/// The bytes of an answer after which a page ends.
pub(super) const PAGE_BYTES: usize = 1 << 20;
/// The size of a value from which it counts as work.
const PASSED_BYTES: usize = 4 << 10;

/// The bytes at hand from which the memory for writing a row is reserved first.
const LARGE_ROW_BYTES: usize = 64 << 10;

/// Where the rows are sent.
pub(super) enum Target<'a> {
    /// Into the answer.
    Answer,
    /// Kept until they are sorted.
    Kept(SortBuffer, &'a Sort),
    /// Measured by ANN; the nearest are kept.
    Nearest(TopK<'a>),
    /// Aggregated into one row.
    Folding(Folding),
    /// Grouped.
    Grouping(Grouping<'a>),
}

impl Target<'_> {
    /// The bytes of the rows that are kept beside the answer.
    #[inline]
    fn kept_bytes(&self) -> usize {
        match self {
            Target::Answer => 0,
            Target::Kept(kept, _) => kept.bytes(),
            Target::Nearest(nearby) => nearby.kept_bytes(),
            Target::Folding(folding) => folding.kept_bytes(),
            Target::Grouping(grouping) => grouping.kept_bytes(),
        }
    }
}

/// Receives the rows of one execution.
pub(super) struct SelectSink<'a> {
    pub(super) selection: &'a Selection,
    /// Set if rows are copied directly to the answer, without computation.
    pub(super) direct: Option<&'a DirectColumns>,
    pub(super) filter: BoundFilter,
    pub(super) computing: Computing<'a>,
    pub(super) target: Target<'a>,
    /// The answer.
    pub(super) out: &'a mut dyn RowsOut,
    pub(super) key_columns: usize,
    pub(super) now_s: i64,
    /// Whether a partition without rows gives a row of its static columns.
    pub(super) shows_statics_alone: bool,
    pub(super) partition: Partition,
    /// The size at which an answer without paging is refused.
    pub(super) bytes_max: Option<usize>,
    /// The memory of the answer, as far as it counts for the role that asks.
    pub(super) memory: AnswerMemory,
    /// The error that ends the read: of a function, or of an answer that is too long.
    pub(super) failure: Option<CqlError>,
    pub(super) scratch: Vec<u8>,
    /// The number of rows that the reads gave, and of tombstones that they passed.
    pub(super) passed: (u64, u64),
    /// The ticket for which the answer waits, because writes that the reads saw are not yet safe.
    pub(super) ticket: Option<Ticket>,
    /// The number of tombstones that the reads may pass.
    pub(super) tombstone_limit: Option<TombstoneLimit>,
}

/// The current partition; the buffers are reused for the next.
#[derive(Default)]
pub(super) struct Partition {
    pub(super) key: Vec<u8>,
    statics: RowBuf,
    /// The bytes of its key and of its static row, at most.
    bytes: usize,
    has_statics: bool,
    is_refused: bool,
}

impl Partition {
    #[inline]
    fn row_at<'a>(&'a self, row: Option<RowView<'a>>, (key_columns, now_s): (usize, i64)) -> RowAt<'a> {
        let statics = self.has_statics.then(|| self.statics.view());
        RowAt { key: &self.key, key_columns, statics, row, now_s }
    }
}

impl SelectSink<'_> {
    /// Reserves the memory for copying a row directly to the answer, if it may be much: a column may be selected any number
    /// of times.
    #[inline]
    fn room_for(&mut self, row: RowView<'_>, direct: &DirectColumns) -> helenus_engine::Result<()> {
        let bytes = row.data.len() + self.partition.bytes;
        if bytes.saturating_mul(direct.copies()) >= LARGE_ROW_BYTES {
            let at = || self.partition.row_at(Some(row), (self.key_columns, self.now_s));
            let bytes = direct.row_bytes(row, at, self.now_s);
            self.out.make_room(bytes)?;
        }
        Ok(())
    }

    /// Refuses an unpaged answer that would take too much of the server's memory.
    #[inline]
    fn check_length(&mut self) -> Result<()> {
        if !self.memory.counts() && self.bytes_max.is_none() {
            return Ok(());
        }
        let bytes = self.out.bytes().saturating_add(self.target.kept_bytes());
        self.memory.grow_to(bytes)?;
        check_length(bytes, self.bytes_max)?;
        // Makes a long answer grow by a fixed amount. Small rows alone would make it double.
        if self.bytes_max.is_some() && bytes > PAGE_BYTES && matches!(self.target, Target::Answer) {
            self.out.make_room(LARGE_ROW_BYTES)?;
        }
        Ok(())
    }

    fn emit(&mut self, row: Option<RowView<'_>>) -> helenus_engine::Result<RowOutcome> {
        let at = self.partition.row_at(row, (self.key_columns, self.now_s));
        if !self.filter.keeps_all_rows() {
            match self.filter.keeps_row(&at, self.computing.calls.work) {
                Ok(true) => {}
                Ok(false) => return Ok(RowOutcome::Skipped),
                Err(error) => return Err(self.end_with(error)),
            }
        }
        let written = match &mut self.target {
            Target::Answer => write(self.selection, &at, &self.computing, self.out, &mut self.scratch),
            Target::Kept(kept, sort) => {
                let begun = kept.begin_row(sort, &at, &mut self.scratch);
                begun.and_then(|()| write(self.selection, &at, &self.computing, kept, &mut self.scratch))
            }
            Target::Nearest(nearby) => {
                let (selection, computing) = (self.selection, &self.computing);
                let added = nearby.add(&at, &mut self.scratch, |out, scratch| {
                    write(selection, &at, computing, out, scratch)
                });
                match added {
                    Ok(true) => Ok(()),
                    Ok(false) => return Ok(RowOutcome::Skipped),
                    Err(error) => Err(error),
                }
            }
            Target::Folding(folding) => folding.add(self.selection, &at, &self.computing, &mut self.scratch),
            Target::Grouping(grouping) => {
                let out: &mut dyn RowsOut = &mut *self.out;
                match grouping.add(self.selection, &at, &self.computing, (out, &mut self.scratch)) {
                    Ok(Grouped::Added) => Ok(()),
                    Ok(Grouped::EndPartition) => return Ok(RowOutcome::EndPartition),
                    Ok(Grouped::EndPage) => return Ok(RowOutcome::EndRead),
                    Err(error) => Err(error),
                }
            }
        };
        match written.and_then(|()| self.check_length()) {
            Ok(()) => Ok(RowOutcome::Counted),
            Err(error) => Err(self.end_with(error)),
        }
    }

    /// Ends the read with this error as its result.
    fn end_with(&mut self, error: CqlError) -> helenus_engine::Error {
        self.failure = Some(error);
        helenus_engine::Error::Cancelled
    }
}

/// Refuses an answer of more bytes than there may be without pages.
#[inline]
pub(super) fn check_length(bytes: usize, most: Option<usize>) -> Result<()> {
    match most.filter(|most| bytes > *most) {
        Some(most) => Err(too_long(most)),
        None => Ok(()),
    }
}

#[cold]
fn too_long(most: usize) -> CqlError {
    CqlError::Invalid(format!(
        "The answer is longer than {} MiB, the most that is given without pages: ask for it with a page size",
        most >> 20
    ))
}

/// Writes a row: each column, or all columns as one JSON text. It asks for the memory of each cell before it writes it,
/// because a column may be selected any number of times.
pub(super) fn write(
    selection: &Selection,
    row: &RowAt<'_>,
    computing: &Computing<'_>,
    out: &mut dyn RowsOut,
    scratch: &mut Vec<u8>,
) -> Result<()> {
    let work = computing.calls.work;
    if let Some(json) = &selection.json {
        let mut text = String::from("{");
        for (index, (selected, (name, ty))) in selection.columns.iter().zip(&json.0).enumerate() {
            room_in_text(&mut text, name.len() + 4)?;
            text.push_str(if index == 0 { "" } else { ", " });
            text.push_str(name);
            let value = row.selected(selected, computing, scratch)?;
            computing.calls.work.text(ty, value.as_deref().unwrap_or_default())?;
            put_json(ty, value.as_deref(), &mut text)?;
        }
        text.push('}');
        out.make_room(text.len())?;
        out.cell(Some(text.as_bytes()));
        out.end_row();
        return Ok(());
    }
    for selected in &selection.columns {
        let made;
        let value = match selected {
            Selected::Leaf(RowValue::Column(source)) => {
                row.room_for_value(source, scratch)?;
                row.value(source, scratch)
            }
            other => {
                made = row.selected(other, computing, scratch)?;
                made.as_deref()
            }
        };
        let bytes = value.map_or(0, <[u8]>::len);
        if bytes >= PASSED_BYTES {
            work.value_steps(bytes)?;
        }
        out.make_room(bytes)?;
        out.cell(value);
    }
    out.end_row();
    Ok(())
}

impl RowSink for SelectSink<'_> {
    fn partition(&mut self, key: &[u8], static_row: Option<RowView<'_>>) -> helenus_engine::Result<()> {
        let partition = &mut self.partition;
        partition.key.clear();
        partition.key.extend_from_slice(key);
        partition.has_statics = static_row.is_some();
        partition.bytes = key.len() + static_row.map_or(0, |row| row.data.len());
        if let Some(row) = static_row {
            account::grow(row.data.len() + size_of_val(&*row.row.cells))?;
            partition.statics.copy_from(row);
        }
        if !self.filter.keeps_all_partitions() {
            let at = RowAt {
                key: &partition.key,
                key_columns: self.key_columns,
                statics: static_row,
                row: None,
                now_s: self.now_s,
            };
            match self.filter.keeps_partition(&at, self.computing.calls.work) {
                Ok(keeps) => partition.is_refused = !keeps,
                Err(error) => return Err(self.end_with(error)),
            }
        }
        Ok(())
    }

    fn row(&mut self, row: RowView<'_>) -> helenus_engine::Result<RowOutcome> {
        if self.partition.is_refused {
            return Ok(RowOutcome::Skipped);
        }
        if let Some(direct) = self.direct {
            self.room_for(row, direct)?;
            let at = || self.partition.row_at(Some(row), (self.key_columns, self.now_s));
            direct.write(row, at, self.now_s, self.out);
            return match self.check_length() {
                Ok(()) => Ok(RowOutcome::Counted),
                Err(error) => Err(self.end_with(error)),
            };
        }
        self.emit(Some(row))
    }

    #[inline]
    fn batches(&mut self) -> Option<&mut dyn BatchSink> {
        let is_direct = self.direct.is_some_and(DirectColumns::takes_batches);
        if is_direct && !self.partition.is_refused { Some(self) } else { None }
    }

    fn partition_end(&mut self, rows: u64) -> helenus_engine::Result<RowOutcome> {
        let partition = &self.partition;
        if rows > 0 || partition.is_refused || !partition.has_statics || !self.shows_statics_alone {
            return Ok(RowOutcome::Skipped);
        }
        self.emit(None)
    }

    fn passed(&mut self, rows: u64, tombstones: u64) {
        self.passed = (self.passed.0 + rows, self.passed.1 + tombstones);
    }

    fn hold_until(&mut self, ticket: Ticket) -> Option<Ticket> {
        self.ticket = Some(ticket.later_of(self.ticket.take()));
        None
    }

    fn tombstone_limit(&self) -> Option<TombstoneLimit> {
        self.tombstone_limit
    }

    fn is_full(&self) -> bool {
        matches!(self.target, Target::Answer) && self.out.bytes() >= PAGE_BYTES
    }
}

impl BatchSink for SelectSink<'_> {
    fn batch(&mut self, batch: &RowBatch<'_>) -> helenus_engine::Result<bool> {
        let Some(direct) = self.direct else { return Ok(false) };
        let at = self.partition.row_at(None, (self.key_columns, self.now_s));
        let bytes = batch.data.len() + self.partition.bytes.saturating_mul(batch.len());
        if bytes.saturating_mul(direct.copies()) >= LARGE_ROW_BYTES {
            self.out.make_room(direct.batch_bytes(batch, &at))?;
        }
        direct.write_batch(batch, &at, self.out);
        self.check_length().map_err(|error| self.end_with(error))?;
        Ok(true)
    }
}
