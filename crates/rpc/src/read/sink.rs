//! The row sink of RPC reads: writes rows as columns into the answer, counts them, and applies the call's limits.
//!
//! The declared columns of a static family come from the static row, but belong between the other columns in the order
//! of names (`ThriftResultsMerger`). They wait until a row after them arrives.

use super::column::{Found, put_batch, put_column, put_named_column, put_row};
use crate::family::{Family, Shape};
use crate::predicate::Wanted;
use helenus_cql::CqlError;
use helenus_cql::backend::AnswerMemory;
use helenus_engine::Result as EngineResult;
use helenus_engine::account;
use helenus_engine::read::{BatchSink, RowOutcome, RowSink};
use helenus_model::byte_comparable::clustering_key;
use helenus_model::cell::Cell;
use helenus_model::row::RowView;
use helenus_model::row_batch::RowBatch;
use helenus_wire::thrift::{Type, put_binary, put_field, put_i32, put_list};
use std::ops::Range;

/// A row of this many bytes or more reserves memory before it is written.
const LARGE_ROW_BYTES: usize = 64 << 10;
/// An answer of this many bytes or more reserves memory before each row.
const LONG_ANSWER_BYTES: usize = 1 << 20;

/// The encoding around the columns of each row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Envelope {
    /// Nothing, for a single row: the caller has written the list header.
    Columns,
    /// The key and a list: an entry of a map.
    Entry,
    /// A `KeySlice`: an element of a list.
    KeySlice,
    /// The key and the number of columns: an entry of a map.
    Count,
    /// Nothing is written; columns are only counted.
    Silent,
}

/// Writes the columns of rows into an answer.
pub(crate) struct ColumnSink<'a> {
    family: &'a Family,
    wanted: &'a Wanted,
    now_s: i64,
    envelope: Envelope,
    out: &'a mut Vec<u8>,
    /// Maximum bytes of `out` before another row is written.
    pub(crate) bytes_max: usize,
    /// Whether the read ended because `out` exceeded `bytes_max`.
    pub(crate) is_too_long: bool,
    /// What of `out` counts for the client's role.
    pub(crate) memory: AnswerMemory,
    /// Why the role may have no more.
    pub(crate) refusal: Option<CqlError>,
    /// Number of columns of the current row so far.
    pub(crate) given: u64,
    /// Number of rows so far.
    pub(crate) rows: u64,
    /// Keys of the rows so far, if the caller needs them.
    pub(crate) keys: Option<Vec<Vec<u8>>>,
    /// The offset in `out` of the number of columns.
    count_at: usize,
    /// Declared columns that wait for their position, the next one last.
    waiting: Vec<Waiting>,
    /// The values of the waiting columns.
    values: Vec<u8>,
    position: Vec<u8>,
}

struct Waiting {
    declared: usize,
    cell: Cell,
    value: Range<usize>,
}

impl<'a> ColumnSink<'a> {
    pub(crate) fn new(
        family: &'a Family,
        wanted: &'a Wanted,
        now_s: i64,
        envelope: Envelope,
        out: &'a mut Vec<u8>,
    ) -> ColumnSink<'a> {
        ColumnSink {
            family,
            wanted,
            now_s,
            envelope,
            out,
            bytes_max: usize::MAX,
            is_too_long: false,
            memory: AnswerMemory::default(),
            refusal: None,
            given: 0,
            rows: 0,
            keys: None,
            count_at: 0,
            waiting: Vec::new(),
            values: Vec::new(),
            position: Vec::new(),
        }
    }

    /// Ends the read if the answer has as many bytes as it may have.
    #[inline]
    fn check_room(&mut self) -> EngineResult<()> {
        if self.out.len() > self.bytes_max {
            self.is_too_long = true;
            return Err(helenus_engine::Error::Cancelled);
        }
        self.count_for_role().map_err(|refusal| {
            self.refusal = Some(refusal);
            helenus_engine::Error::Cancelled
        })
    }

    /// Counts the bytes so far for the client's role.
    ///
    /// # Errors
    /// Its answers would have more than they may have.
    #[inline]
    pub(crate) fn count_for_role(&mut self) -> std::result::Result<(), CqlError> {
        self.memory.grow_to(self.out.len())
    }

    /// Writes a row that does not exist in the engine.
    pub(crate) fn put_empty(&mut self, key: &[u8]) {
        self.begin(key);
        self.end();
    }

    fn begin(&mut self, key: &[u8]) {
        self.given = 0;
        self.waiting.clear();
        self.values.clear();
        match self.envelope {
            Envelope::Columns | Envelope::Silent => {}
            Envelope::Entry => {
                put_binary(key, self.out);
                put_list(Type::Struct, 0, self.out);
            }
            Envelope::KeySlice => {
                put_field(Type::String, 1, self.out);
                put_binary(key, self.out);
                put_field(Type::List, 2, self.out);
                put_list(Type::Struct, 0, self.out);
            }
            Envelope::Count => {
                put_binary(key, self.out);
                put_i32(0, self.out);
            }
        }
        self.count_at = self.out.len().saturating_sub(4);
    }

    fn end(&mut self) {
        self.rows += 1;
        if !matches!(self.envelope, Envelope::Columns | Envelope::Silent) {
            let count = self.given as u32;
            self.out[self.count_at..self.count_at + 4].copy_from_slice(&count.to_be_bytes());
        }
        if self.envelope == Envelope::KeySlice {
            self.out.push(Type::Stop as u8);
        }
    }

    fn writes(&self) -> bool {
        !matches!(self.envelope, Envelope::Count | Envelope::Silent)
    }

    fn is_full(&self) -> bool {
        self.given >= self.wanted.limit
    }

    /// Takes the wanted declared columns from the static row.
    fn await_declared(&mut self, row: RowView<'_>) {
        // Pushed in reverse order, so that the next one can be popped.
        let mut wait = |declared: usize| {
            let Some(known) = self.family.declared.get(declared) else { return };
            let Some(cell) = row.cells_of(known.column).first().filter(|cell| cell.is_live(self.now_s))
            else {
                return;
            };
            let at = self.values.len();
            self.values.extend_from_slice(row.value(cell));
            self.waiting.push(Waiting { declared, cell: *cell, value: at..self.values.len() });
        };
        if self.wanted.reversed {
            self.wanted.declared.iter().copied().for_each(&mut wait);
        } else {
            self.wanted.declared.iter().rev().copied().for_each(&mut wait);
        }
    }

    /// Writes the waiting columns before a position, or all of them. Returns the waiting column at that position, if
    /// any.
    fn give_waiting(&mut self, before: Option<&[u8]>) -> Option<Waiting> {
        while let Some(next) = self.waiting.last().filter(|_| !self.is_full()) {
            let family = self.family;
            let known = family.declared.get(next.declared)?;
            if let Some(position) = before {
                if known.position == position {
                    return self.waiting.pop();
                }
                let is_before = if self.wanted.reversed {
                    &known.position[..] > position
                } else {
                    &known.position[..] < position
                };
                if !is_before {
                    return None;
                }
            }
            let next = self.waiting.pop()?;
            if self.writes() {
                let found = Found::new(&next.cell, &self.values[next.value]);
                put_named_column(family.counts, &known.name, &found, self.out);
            }
            self.given += 1;
        }
        None
    }

    /// Writes a row of a dynamic, composite or static family, which is one column.
    #[inline]
    fn column(&mut self, row: RowView<'_>) -> RowOutcome {
        let family = self.family;
        let cell = row.cells_of(family.value).first().filter(|cell| cell.is_live(self.now_s));
        let Some(cell) = cell else { return RowOutcome::Skipped };
        let mut found = Found::new(cell, row.value(cell));
        let twin;
        if !self.waiting.is_empty() {
            let mut position = std::mem::take(&mut self.position);
            position.clear();
            let values = (0..family.table.clustering.len()).map(|index| row.clustering(index));
            // Cannot fail, because the values come from a stored row.
            let _encodes = clustering_key(values, &family.table.clustering, &mut position);
            twin = self.give_waiting(Some(&position));
            self.position = position;
            if let Some(twin) = &twin {
                let value = &self.values[twin.value.clone()];
                if (twin.cell.timestamp_us, value) > (found.timestamp_us, found.value) {
                    found = Found { ttl_s: twin.cell.ttl_s, timestamp_us: twin.cell.timestamp_us, value };
                }
            }
            if self.given >= self.wanted.limit {
                return RowOutcome::EndPartition;
            }
        }
        if !matches!(self.envelope, Envelope::Count | Envelope::Silent) {
            put_row(family, row, &found, self.out);
        }
        self.given += 1;
        RowOutcome::Counted
    }

    /// Writes a row of a super family, which is a super column.
    fn super_column(&mut self, row: RowView<'_>) -> RowOutcome {
        let family = self.family;
        let mut columns: Vec<(&[u8], Found<'_>)> = Vec::new();
        for cell in row.cells_of(family.value).iter().filter(|cell| cell.is_live(self.now_s)) {
            let name = row.path(cell);
            if self.wanted.wants_within(name, || position(family, name)) {
                columns.push((name, Found::new(cell, row.value(cell))));
            }
        }
        for known in &family.declared {
            let Some(cell) = row.cells_of(known.column).first().filter(|cell| cell.is_live(self.now_s))
            else {
                continue;
            };
            if !self.wanted.wants_within(&known.name, || known.position.clone()) {
                continue;
            }
            let found = Found::new(cell, row.value(cell));
            let place = columns.binary_search_by(|(name, _)| position(family, name).cmp(&known.position));
            match place {
                Ok(place) if columns[place].1.timestamp_us < found.timestamp_us => columns[place].1 = found,
                Ok(_) => {}
                Err(place) => columns.insert(place, (&known.name, found)),
            }
        }
        if columns.is_empty() {
            return RowOutcome::Skipped;
        }
        if self.wanted.reversed {
            columns.reverse();
        }
        if self.wanted.within.is_some() {
            for (name, found) in columns {
                if self.is_full() {
                    return RowOutcome::EndPartition;
                }
                if self.writes() {
                    put_named_column(family.counts, name, &found, self.out);
                }
                self.given += 1;
            }
            return RowOutcome::Counted;
        }
        if self.writes() {
            let name = row.clustering(0).unwrap_or_default();
            put_field(Type::Struct, if family.counts { 4 } else { 2 }, self.out);
            put_field(Type::String, 1, self.out);
            put_binary(name, self.out);
            put_field(Type::List, 2, self.out);
            put_list(Type::Struct, columns.len(), self.out);
            for (name, found) in columns {
                put_column(family.counts, |out| put_binary(name, out), &found, self.out);
            }
            self.out.extend_from_slice(&[Type::Stop as u8; 2]);
        }
        self.given += 1;
        RowOutcome::Counted
    }
}

impl ColumnSink<'_> {
    /// Reserves memory for a large row, or in a long answer for the next small one, so that the buffer does not grow by
    /// doubling.
    #[inline]
    fn make_room(&mut self, row: RowView<'_>) -> EngineResult<()> {
        if row.data.len() < LARGE_ROW_BYTES && self.out.len() < LONG_ANSWER_BYTES {
            return Ok(());
        }
        if self.writes() {
            account::reserve(self.out, row.value_bytes() + LARGE_ROW_BYTES)?;
        }
        Ok(())
    }
}

fn position(family: &Family, name: &[u8]) -> Vec<u8> {
    let mut position = Vec::new();
    let _encodes = family.comparator.put_position(name, &mut position);
    position
}

impl RowSink for ColumnSink<'_> {
    fn partition(&mut self, key: &[u8], static_row: Option<RowView<'_>>) -> EngineResult<()> {
        self.begin(key);
        if let Some(keys) = &mut self.keys {
            keys.push(key.to_vec());
        }
        if let Some(row) = static_row {
            self.await_declared(row);
        }
        Ok(())
    }

    #[inline]
    fn row(&mut self, row: RowView<'_>) -> EngineResult<RowOutcome> {
        self.check_room()?;
        if self.is_full() {
            return Ok(RowOutcome::EndPartition);
        }
        self.make_room(row)?;
        let taken = match self.family.shape {
            Shape::Super => self.super_column(row),
            _ => self.column(row),
        };
        Ok(match (taken, self.envelope) {
            // In a read over several rows, the engine's limit counts rows, which `partition_end` reports.
            (RowOutcome::Counted, _) if self.is_full() && self.envelope != Envelope::Columns => {
                RowOutcome::EndPartition
            }
            (RowOutcome::Counted, Envelope::KeySlice) => RowOutcome::Skipped,
            (taken, _) => taken,
        })
    }

    fn batches(&mut self) -> Option<&mut dyn BatchSink> {
        // In a row batch the engine counts, so each row of the table must be a column of the answer, without declared
        // columns between them.
        let counts = !matches!(self.envelope, Envelope::KeySlice) && self.family.shape != Shape::Super;
        (counts && self.wanted.declared.is_empty() && !self.family.counts).then_some(self)
    }

    fn partition_end(&mut self, _rows: u64) -> EngineResult<RowOutcome> {
        self.give_waiting(None);
        self.end();
        Ok(if self.envelope == Envelope::KeySlice { RowOutcome::Counted } else { RowOutcome::Skipped })
    }
}

impl BatchSink for ColumnSink<'_> {
    fn batch(&mut self, batch: &RowBatch<'_>) -> EngineResult<bool> {
        self.check_room()?;
        let Some(value) = batch.value_index_of(self.family.value, 0) else { return Ok(false) };
        if self.writes() {
            put_batch(self.family, batch, value, self.out);
        }
        self.given += batch.len() as u64;
        Ok(true)
    }
}
