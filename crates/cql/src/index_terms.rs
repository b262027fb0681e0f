//! Counts the work of index terms: the ordered form of a value that an index stores or is asked for.
//!
//! It has the decimal digits of numbers, and the text that an index's options make of a text, so it costs more than the bytes of
//! the value tell. Searches, filters and writes report it to the `RequestBudget` before the term is computed.

use crate::budget::{RequestBudget, room_for};
use crate::cost;
use crate::error::{CqlError, Result};
use helenus_model::mutation::{Change, Mutation, PartitionUpdate};
use helenus_model::packed::unpack;
use helenus_model::row::{RowBuf, RowView};
use helenus_model::schema::{Column, ColumnKind};
use helenus_model::types::{CqlType, key_values};
use std::cell::Cell;

/// The memory of an index's term while it is computed, for each byte of its value: the decimal digits, one a byte, or the
/// two texts of an analyzer of which the later is made from the earlier.
const TERM_BYTES_A_BYTE: usize = 6;

/// The bytes of a text that an analyzer transforms in one step.
const ANALYZED_BYTES_A_STEP: usize = 16;

/// The longest text that is searched where an analyzer transforms it: nothing interrupts that for about a tenth of a second. The
/// texts that it can equal have at most 64 KiB, and no text becomes 32 times shorter.
const ANALYZED_BYTES_MAX: usize = 2 << 20;

/// The most steps of all terms of one write: a quarter of a second.
const WRITE_STEPS_MAX: usize = 250_000;

impl RequestBudget<'_> {
    /// Counts the steps of an index's term of a value, and asks for the memory of its digits and its transformed text.
    ///
    /// # Errors
    /// As `operation`, and as `room_for`.
    #[inline]
    pub fn term(&self, ty: &CqlType, value: &[u8]) -> Result<()> {
        self.value_steps(value.len())?;
        self.digits(ty, value)?;
        if value.len() <= cost::SHORT_BYTES { Ok(()) } else { room_for(TERM_BYTES_A_BYTE * value.len()) }
    }

    /// Counts the steps of transforming a text as an index's options say, and asks for the memory.
    ///
    /// # Errors
    /// As `step`, and as `room_for`.
    pub(crate) fn analysis(&self, text: &[u8]) -> Result<()> {
        self.steps(1 + text.len() / ANALYZED_BYTES_A_STEP)?;
        if text.len() <= cost::SHORT_BYTES { Ok(()) } else { room_for(TERM_BYTES_A_BYTE * text.len()) }
    }

    /// The same for a text that is searched.
    ///
    /// # Errors
    /// As `analysis`; it is too long.
    pub(crate) fn analysis_of_searched(&self, text: &[u8]) -> Result<()> {
        if text.len() > ANALYZED_BYTES_MAX {
            return Err(CqlError::Invalid(
                "Index expression values may not be larger than 2M where the index changes texts".to_owned(),
            ));
        }
        self.analysis(text)
    }

    /// Counts the steps of the terms that a write computes of the indexed values that it writes, and of those that they
    /// replace.
    ///
    /// # Errors
    /// As `term`; together they would take too long, and nothing interrupts a write that is being applied.
    pub fn terms_of(&self, mutation: &Mutation) -> Result<()> {
        let terms = TermsOfWrite { work: self, steps: Cell::new(0) };
        mutation.updates.iter().try_for_each(|update| match update.table.indexes.is_empty() {
            true => Ok(()),
            false => terms.of_partition(update),
        })
    }
}

/// The terms of one write.
struct TermsOfWrite<'w> {
    work: &'w RequestBudget<'w>,
    /// Their steps by now.
    steps: Cell<usize>,
}

impl TermsOfWrite<'_> {
    fn of_partition(&self, update: &PartitionUpdate) -> Result<()> {
        let table = &update.table;
        let (mut row, mut on_key) = (RowBuf::default(), false);
        for change in update.changes.iter() {
            let (bytes, clusterings) = match change {
                Ok(Change::Row(bytes)) => (bytes, table.clustering.len()),
                Ok(Change::StaticRow(bytes)) => (bytes, 0),
                // Deletions of many rows have no terms; damage is the write's to report.
                Ok(Change::PartitionDeletion(_) | Change::RangeDeletion { .. }) | Err(_) => continue,
            };
            if unpack(bytes, clusterings, &mut row).is_err() {
                continue;
            }
            let row = RowView { row: &row, data: bytes };
            for column in table.indexes.values().filter_map(|index| index.column(table)) {
                match column.kind {
                    // The same value for each row.
                    ColumnKind::PartitionKey => on_key = true,
                    ColumnKind::Clustering => {
                        self.long_term(&column.ty, row.clustering(column.position).unwrap_or_default())?;
                    }
                    ColumnKind::Static | ColumnKind::Regular => self.of_cells(column, row)?,
                }
            }
            if on_key {
                let values = key_values(table.partition_key.len(), &update.key);
                let mut parts = table.partition_key.iter().zip(values);
                parts.try_for_each(|(column, value)| self.long_term(&column.ty, value))?;
            }
        }
        Ok(())
    }

    /// As `term`; those of short values are part of what a write costs.
    fn long_term(&self, ty: &CqlType, value: &[u8]) -> Result<()> {
        if value.len() <= cost::SHORT_BYTES {
            return Ok(());
        }
        self.work.term(ty, value)?;
        let steps = self.steps.get().saturating_add(cost::text(ty, value));
        self.steps.set(steps);
        if steps > WRITE_STEPS_MAX {
            return Err(CqlError::Invalid(
                "The indexes of this write would take too long with numbers of so many digits: write fewer at once, or round them"
                    .to_owned(),
            ));
        }
        Ok(())
    }

    fn of_cells(&self, column: &Column, row: RowView<'_>) -> Result<()> {
        // A cell that is replaced has a term too, of about as long a value.
        let twice = |ty: &CqlType, value: &[u8]| {
            self.long_term(ty, value)?;
            self.long_term(ty, value)
        };
        for cell in row.cells_of(column.id) {
            let (path, value) = (row.path(cell), row.value(cell));
            match &column.ty {
                CqlType::Set { element, frozen: false } => twice(element, path)?,
                CqlType::List { element, frozen: false } => twice(element, value)?,
                CqlType::Map { key, value: of_value, frozen: false } => {
                    twice(key, path)?;
                    twice(of_value, value)?;
                }
                ty => twice(ty, value)?,
            }
        }
        Ok(())
    }
}
