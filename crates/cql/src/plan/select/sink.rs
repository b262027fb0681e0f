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
use crate::error::{CqlError, Result};
use helenus_engine::Ticket;
use helenus_engine::account;
use helenus_engine::read::{BatchSink, RowOutcome, RowSink, TombstoneLimit};
use helenus_model::row::{RowBuf, RowView};
use helenus_model::row_batch::RowBatch;
use helenus_model::types::write_json;

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
    /// Reserves the memory for writing a large row, before it is written.
    #[cold]
    fn room_for(&mut self, row: RowView<'_>) -> helenus_engine::Result<()> {
        let bytes = row.value_bytes();
        match &self.target {
            Target::Answer => self.out.make_room(bytes + self.partition.key.len())?,
            // Kept rows are in a buffer that grows by doubling.
            Target::Kept(kept, _) => account::grow(2 * (bytes + kept.bytes()))?,
            _ => account::grow(bytes)?,
        }
        if !matches!(self.target, Target::Folding(_)) && self.direct.is_none() {
            // Collections are assembled in a buffer that grows by doubling; function results and JSON are texts.
            account::grow(2 * bytes)?;
        }
        Ok(())
    }

    /// Refuses an unpaged answer that would take too much of the server's memory.
    #[inline]
    fn check_length(&mut self) -> Result<()> {
        let Some(most) = self.bytes_max else { return Ok(()) };
        let bytes = match &self.target {
            Target::Kept(kept, _) => kept.bytes(),
            _ => self.out.bytes(),
        };
        if bytes > most {
            return Err(too_long(most));
        }
        // Makes a long answer grow by a fixed amount. Small rows alone would make it double.
        if bytes > PAGE_BYTES && matches!(self.target, Target::Answer) {
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
                kept.begin_row(sort, &at, &mut self.scratch);
                write(self.selection, &at, &self.computing, kept, &mut self.scratch)
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

#[cold]
fn too_long(most: usize) -> CqlError {
    CqlError::Invalid(format!(
        "The answer is longer than {} MiB, the most that is given without pages: ask for it with a page size",
        most >> 20
    ))
}

/// Writes a row: each column, or all columns as one JSON text.
pub(super) fn write(
    selection: &Selection,
    row: &RowAt<'_>,
    computing: &Computing<'_>,
    out: &mut dyn RowsOut,
    scratch: &mut Vec<u8>,
) -> Result<()> {
    if let Some(json) = &selection.json {
        let mut text = String::from("{");
        for (index, (selected, (name, ty))) in selection.columns.iter().zip(&json.0).enumerate() {
            text.push_str(if index == 0 { "" } else { ", " });
            text.push_str(name);
            let value = row.selected(selected, computing, scratch)?;
            let bytes = value.as_deref().map_or(0, <[u8]>::len);
            computing.calls.work.value_steps(bytes)?;
            if bytes >= LARGE_ROW_BYTES {
                account::grow(2 * (text.len() + 2 * bytes))?;
            }
            write_json(ty, value.as_deref(), &mut text);
        }
        text.push('}');
        out.cell(Some(text.as_bytes()));
        out.end_row();
        return Ok(());
    }
    for selected in &selection.columns {
        let made;
        let value = match selected {
            Selected::Leaf(RowValue::Column(source)) => row.value(source, scratch),
            other => {
                made = row.selected(other, computing, scratch)?;
                made.as_deref()
            }
        };
        let bytes = value.map_or(0, <[u8]>::len);
        if bytes >= PASSED_BYTES {
            computing.calls.work.value_steps(bytes)?;
            // A column may be selected several times.
            out.make_room(bytes)?;
        }
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
        if let Some(row) = static_row {
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
        if row.data.len() >= LARGE_ROW_BYTES {
            self.room_for(row)?;
        }
        if let Some(direct) = self.direct {
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
        if batch.data.len() >= LARGE_ROW_BYTES {
            self.out.make_room(batch.values.iter().map(|value| value.value.len as usize).sum())?;
        }
        let at = self.partition.row_at(None, (self.key_columns, self.now_s));
        direct.write_batch(batch, &at, self.out);
        self.check_length().map_err(|error| self.end_with(error))?;
        Ok(true)
    }
}
