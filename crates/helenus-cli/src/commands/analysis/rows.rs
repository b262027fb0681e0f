//! Builds Arrow record batches of the live rows of a table.

use super::column::Column;
use super::types::schema;
use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, Schema};
use helenus_engine::read::{RowOutcome, RowSink};
use helenus_engine::{Error, Result};
use helenus_model::cell::Cell;
use helenus_model::counter_context;
use helenus_model::row::RowView;
use helenus_model::schema::{Column as TableColumn, ColumnKind, Table};
use helenus_model::types::{CqlType, key_values, pack, put_value};
use std::borrow::Cow;
use std::sync::Arc;

/// Number of rows in a batch, which is a row group of Parquet or a message of Arrow.
pub const ROWS_A_BATCH: usize = 64 * 1024;

/// Receives the batches.
pub type Take<'a> = dyn FnMut(RecordBatch) -> std::result::Result<(), String> + 'a;

/// A row sink that turns the rows of a read into batches.
pub struct Batches<'a> {
    table: Arc<Table>,
    columns: Vec<TableColumn>,
    schema: Arc<Schema>,
    builders: Vec<Column>,
    rows: usize,
    now_s: i64,
    key: Vec<u8>,
    /// The live values of the static row, by the column's index in `columns`.
    statics: Vec<Option<Vec<u8>>>,
    has_statics: bool,
    take: &'a mut Take<'a>,
    /// The error of the receiver, if it failed.
    pub failure: Option<String>,
    /// Number of rows handed over.
    pub total: u64,
}

impl<'a> Batches<'a> {
    /// For the rows of `table` that are live at `now_s`.
    pub fn new(table: &Arc<Table>, now_s: i64, take: &'a mut Take<'a>) -> Batches<'a> {
        let columns: Vec<TableColumn> = table.columns_in_select_order().cloned().collect();
        Batches {
            schema: schema(table),
            builders: columns.iter().map(|column| Column::new(&column.ty)).collect(),
            statics: vec![None; columns.len()],
            columns,
            table: table.clone(),
            rows: 0,
            now_s,
            key: Vec::new(),
            has_statics: false,
            take,
            failure: None,
            total: 0,
        }
    }

    /// Hands over the rows that remain.
    ///
    /// # Errors
    /// The receiver's error.
    pub fn finish(&mut self) -> std::result::Result<(), String> {
        if self.rows == 0 {
            return Ok(());
        }
        self.rows = 0;
        let arrays = self.builders.iter_mut().map(Column::finish);
        let arrays = arrays.collect::<std::result::Result<Vec<_>, ArrowError>>();
        let batch = arrays.and_then(|arrays| RecordBatch::try_new(self.schema.clone(), arrays));
        (self.take)(batch.map_err(|error| error.to_string())?)
    }

    fn add(&mut self, row: Option<RowView<'_>>) -> Result<()> {
        let keys = key_values(self.table.partition_key.len(), &self.key);
        for (index, column) in self.columns.iter().enumerate() {
            let builder = &mut self.builders[index];
            match column.kind {
                ColumnKind::PartitionKey => builder.add(keys.get(column.position).copied()),
                ColumnKind::Clustering => builder.add(row.and_then(|row| row.clustering(column.position))),
                ColumnKind::Static => builder.add(self.statics[index].as_deref()),
                ColumnKind::Regular => {
                    let value = row.and_then(|row| value_of(column, row, self.now_s));
                    builder.add(value.as_deref());
                }
            }
        }
        self.rows += 1;
        self.total += 1;
        if self.rows >= ROWS_A_BATCH
            && let Err(problem) = self.finish()
        {
            self.failure = Some(problem);
            // This error ends the read. The caller checks `failure` first.
            return Err(Error::Cancelled);
        }
        Ok(())
    }
}

impl RowSink for Batches<'_> {
    fn partition(&mut self, key: &[u8], static_row: Option<RowView<'_>>) -> Result<()> {
        self.key.clear();
        self.key.extend_from_slice(key);
        self.has_statics = false;
        for (index, column) in self.columns.iter().enumerate() {
            if column.kind == ColumnKind::Static {
                let value = static_row.and_then(|row| value_of(column, row, self.now_s));
                self.statics[index] = value.map(Cow::into_owned);
                self.has_statics |= self.statics[index].is_some();
            }
        }
        Ok(())
    }

    fn row(&mut self, row: RowView<'_>) -> Result<RowOutcome> {
        self.add(Some(row))?;
        Ok(RowOutcome::Counted)
    }

    /// A partition with only live static values is one row, as in SELECT.
    fn partition_end(&mut self, rows: u64) -> Result<RowOutcome> {
        if rows == 0 && self.has_statics {
            self.add(None)?;
            return Ok(RowOutcome::Counted);
        }
        Ok(RowOutcome::Skipped)
    }
}

/// The live value of a column as clients receive it: the cells of a collection as one value, the sum of a counter.
fn value_of<'r>(column: &TableColumn, row: RowView<'r>, now_s: i64) -> Option<Cow<'r, [u8]>> {
    let cells = row.cells_of(column.id);
    if !column.ty.is_multi_cell() && column.ty != CqlType::Counter {
        let cell = cells.first().filter(|cell| cell.is_live(now_s))?;
        return Some(Cow::Borrowed(row.value(cell)));
    }
    let live: Vec<&Cell> = cells.iter().filter(|cell| cell.is_live(now_s)).collect();
    if live.is_empty() {
        return None;
    }
    let mut out = Vec::new();
    match &column.ty {
        CqlType::Counter => {
            out.extend_from_slice(&counter_context::total(row.value(live[0])).to_be_bytes());
        }
        CqlType::List { frozen: false, .. } => {
            pack(live.len(), live.iter().map(|cell| Some(row.value(cell))), &mut out);
        }
        CqlType::Set { frozen: false, .. } => {
            pack(live.len(), live.iter().map(|cell| Some(row.path(cell))), &mut out);
        }
        CqlType::Map { frozen: false, .. } => {
            let entries = live.iter().flat_map(|cell| [Some(row.path(cell)), Some(row.value(cell))]);
            pack(live.len(), entries, &mut out);
        }
        CqlType::Udt(udt) if !udt.frozen => {
            for index in 0..udt.fields.len() {
                let is_it = |cell: &&&Cell| row.path(cell) == (index as u16).to_be_bytes();
                put_value(live.iter().find(is_it).map(|cell| row.value(cell)), &mut out);
            }
        }
        _ => out.extend_from_slice(row.value(live[0])),
    }
    Some(Cow::Owned(out))
}
