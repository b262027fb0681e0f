//! Makes rows of the engine's form out of the rows of an answer, for the sinks of `rpc`.

use helenus_cql::CqlError;
use helenus_model::cell::{Cell, Span};
use helenus_model::counter_context;
use helenus_model::deletion::NO_EXPIRY;
use helenus_model::row::RowBuf;
use helenus_model::schema::{Column, Table};

/// The cells that one row of an answer has left.
pub(crate) struct Cells<'r, 'a> {
    cells: std::slice::Iter<'r, Option<&'a [u8]>>,
    is_counter: bool,
    now_s: i64,
}

impl<'r, 'a> Cells<'r, 'a> {
    pub(crate) fn new(table: &Table, cells: &'r [Option<&'a [u8]>], now_s: i64) -> Cells<'r, 'a> {
        Cells { cells: cells.iter(), is_counter: table.is_counter(), now_s }
    }

    /// The serialised key of the partition.
    ///
    /// # Errors
    /// The answer has fewer cells.
    pub(crate) fn key(&mut self, table: &Table) -> Result<Vec<u8>, CqlError> {
        let count = table.partition_key.len();
        let values: Option<Vec<&[u8]>> = (0..count).map(|_| self.cells.next().copied().flatten()).collect();
        let values = values.ok_or_else(damaged)?;
        if let [only] = values[..] {
            return Ok(only.to_vec());
        }
        let mut key = Vec::new();
        for value in values {
            // A component of a key has at most 65,535 bytes.
            key.extend_from_slice(&(value.len() as u16).to_be_bytes());
            key.extend_from_slice(value);
            key.push(0);
        }
        Ok(key)
    }

    /// Appends clustering values.
    pub(crate) fn clustering(&mut self, table: &Table, row: &mut RowBuf) {
        for _ in &table.clustering {
            let span = match self.cells.next().copied().flatten() {
                Some(value) => row.push_bytes(value),
                None => Span::NULL,
            };
            row.clustering.push(span);
        }
    }

    /// Appends the cells of these columns that have values. Their numbers must ascend.
    ///
    /// # Errors
    /// The answer is damaged.
    pub(crate) fn columns<'c>(
        &mut self,
        columns: impl Iterator<Item = &'c Column>,
        row: &mut RowBuf,
    ) -> Result<(), CqlError> {
        for column in columns {
            let value = *self.cells.next().ok_or_else(damaged)?;
            let (timestamp_us, ttl_s) = match self.is_counter {
                true => (0, None),
                false => {
                    let timestamp = self.cells.next().ok_or_else(damaged)?;
                    let ttl = self.cells.next().ok_or_else(damaged)?;
                    let timestamp_us = timestamp.and_then(|bytes| bytes.try_into().ok());
                    let ttl_s = ttl.and_then(|bytes| bytes.try_into().ok()).map(i32::from_be_bytes);
                    (timestamp_us.map_or(0, i64::from_be_bytes), ttl_s)
                }
            };
            let Some(value) = value else { continue };
            let value = match self.is_counter {
                // A cell of a counter is a list of shards, whose sum the sink takes.
                true => {
                    let total = value.try_into().map(i64::from_be_bytes).map_err(|_| damaged())?;
                    row.push_bytes(&counter_context::global([0; 16], 0, total))
                }
                false => row.push_bytes(value),
            };
            row.cells.push(Cell {
                column: column.id,
                ttl_s: ttl_s.unwrap_or_default(),
                timestamp_us,
                local_deletion_s: ttl_s.map_or(NO_EXPIRY, |ttl_s| self.now_s + i64::from(ttl_s.max(1))),
                path: Span::NULL,
                value,
            });
        }
        row.cells.sort_by_key(|cell| cell.column);
        Ok(())
    }
}

pub(crate) fn damaged() -> CqlError {
    CqlError::Server("an answer of the cluster has other columns than were asked for".to_owned())
}
