//! Wide rows without CQL: columns of a row by name and by range, in storage order.
//!
//! A wide-row table has one partition key column (the row), one clustering column (the column's name) and one regular
//! column (its value). The calls go straight to the engine's read and write paths.

use crate::error::{Error, Result};
use crate::value::Value;
use helenus_engine::read::{PartitionKey, Partitions, Probe, ReadCommand, RowOutcome, RowSink};
use helenus_engine::{Database as Engine, ReadRequest};
use helenus_model::byte_comparable;
use helenus_model::cell::{Cell, Span};
use helenus_model::deletion::{DeletionTime, Liveness, NO_EXPIRY};
use helenus_model::filter::{AFTER_ALL, BEFORE_ALL, ClusteringFilter, Limits, Slice as Positions};
use helenus_model::mutation::{Changes, Mutation, PartitionUpdate};
use helenus_model::row::RowView;
use helenus_model::schema::{Column, Table};
use std::sync::Arc;

/// A table opened for wide-row calls.
pub struct WideTable {
    engine: Arc<Engine>,
    table: Arc<Table>,
}

/// A range of columns of one row.
#[derive(Clone, Debug, Default)]
pub struct Slice {
    /// The first name, inclusive, in the direction of the read. `None`: from the beginning.
    pub start: Option<Value>,
    /// The last name, inclusive. `None`: to the end.
    pub finish: Option<Value>,
    /// Reads against the table's order; `start` is then the greater name.
    pub reversed: bool,
    /// The maximum number of columns. `None`: all.
    pub count: Option<u64>,
}

impl Slice {
    /// The first `count` columns.
    pub fn first(count: u64) -> Slice {
        Slice { count: Some(count), ..Slice::default() }
    }

    /// The last `count` columns, the last one first.
    pub fn last(count: u64) -> Slice {
        Slice { count: Some(count), reversed: true, ..Slice::default() }
    }
}

impl WideTable {
    pub(crate) fn new(engine: Arc<Engine>, table: Arc<Table>) -> Result<WideTable> {
        let problem = if table.partition_key.len() != 1 {
            Some("its partition key has several columns")
        } else if table.clustering.len() != 1 {
            Some("it has not one clustering column")
        } else if table.regulars.len() != 1 {
            Some("it has not one regular column")
        } else if table.regulars[0].ty.is_multi_cell() || table.is_counter() {
            Some("its regular column is a collection or counter")
        } else {
            None
        };
        match problem {
            None => Ok(WideTable { engine, table }),
            Some(problem) => {
                let (keyspace, table) = (table.keyspace.to_string(), table.name.to_string());
                Err(Error::NotWide { keyspace, table, problem })
            }
        }
    }

    /// Writes columns of a row atomically. A null value deletes its column.
    ///
    /// # Errors
    /// Values of another type; errors of the engine.
    pub fn put(&self, row: &Value, columns: &[(Value, Value)]) -> Result<()> {
        let timestamp_us = self.next_timestamp()?;
        let now_s = self.engine.now_s();
        let value_column = &self.table.regulars[0];
        let mut changes = Changes::default();
        for (name, value) in columns {
            let name = self.name(name)?;
            let value = self.bytes(value_column, value)?;
            let live = (Liveness::at(timestamp_us), DeletionTime::LIVE);
            let local_deletion_s = if value.is_some() { NO_EXPIRY } else { now_s };
            let cell = Cell {
                column: value_column.id,
                ttl_s: 0,
                timestamp_us,
                local_deletion_s,
                path: Span::NULL,
                value: Span::EMPTY,
            };
            changes.row(std::iter::once(Some(&name[..])), live, &[], |row| {
                row.cell(&cell, None, value.as_deref().unwrap_or_default());
            });
        }
        self.write(row, changes)
    }

    /// Reads the columns with these names. Returns those that exist, in the table's order.
    ///
    /// # Errors
    /// Values of another type; a damaged file.
    pub fn get(&self, row: &Value, names: &[Value]) -> Result<Vec<(Value, Value)>> {
        self.read(row, self.names(names)?, None)
    }

    /// Reads the columns of a slice, in the direction of the slice.
    pub fn slice(&self, row: &Value, slice: &Slice) -> Result<Vec<(Value, Value)>> {
        self.read(row, self.range(slice)?, None)
    }

    /// The same reads with a probe: each adds its work to `probe`. The probe reads the clock for each column, so
    /// measure latencies without one.
    pub fn probed<'a>(&'a self, probe: &'a mut Probe) -> ProbedTable<'a> {
        ProbedTable { table: self, probe }
    }

    /// The number of columns in a slice.
    pub fn count(&self, row: &Value, slice: &Slice) -> Result<u64> {
        self.slice(row, slice).map(|columns| columns.len() as u64)
    }

    /// Deletes columns by name.
    pub fn delete(&self, row: &Value, names: &[Value]) -> Result<()> {
        let deletion = self.deletion()?;
        let mut changes = Changes::default();
        for name in names {
            let name = self.name(name)?;
            changes.row(std::iter::once(Some(&name[..])), (Liveness::NONE, deletion), &[], |_| {});
        }
        self.write(row, changes)
    }

    /// Deletes a whole row.
    ///
    /// # Errors
    /// As `put`.
    pub fn delete_row(&self, row: &Value) -> Result<()> {
        let mut changes = Changes::default();
        changes.delete_partition(self.deletion()?);
        self.write(row, changes)
    }

    fn deletion(&self) -> Result<DeletionTime> {
        Ok(DeletionTime { timestamp_us: self.next_timestamp()?, local_s: self.engine.now_s() })
    }

    fn next_timestamp(&self) -> Result<i64> {
        self.engine.next_timestamp().map_err(Error::of_write)
    }

    fn write(&self, row: &Value, changes: Changes) -> Result<()> {
        let key = self.row_key(row)?;
        let update = PartitionUpdate { table: self.table.clone(), key, changes };
        let ticket = self.engine.write(&Mutation { updates: vec![update] }).map_err(Error::of_write)?;
        ticket.wait().map_err(Error::of_write)
    }

    fn names(&self, names: &[Value]) -> Result<Question> {
        let mut keys = Vec::with_capacity(names.len());
        for name in names {
            keys.push(self.position(&self.name(name)?));
        }
        keys.sort();
        keys.dedup();
        Ok(Question { filter: ClusteringFilter::Names(keys), reversed: false, count: None })
    }

    fn range(&self, slice: &Slice) -> Result<Question> {
        let (low, high) =
            if slice.reversed { (&slice.finish, &slice.start) } else { (&slice.start, &slice.finish) };
        let bound = |value: &Option<Value>, before: bool, open: &[u8]| match value {
            None => Ok(open.to_vec()),
            Some(value) => self.bound(&self.name(value)?, before),
        };
        let positions =
            Positions { start: bound(low, true, BEFORE_ALL)?, end: bound(high, false, AFTER_ALL)? };
        let positions = if positions.is_empty() { Vec::new() } else { vec![positions] };
        let filter = ClusteringFilter::Slices(positions);
        Ok(Question { filter, reversed: slice.reversed, count: slice.count })
    }

    fn read(
        &self,
        row: &Value,
        question: Question,
        probe: Option<&mut Probe>,
    ) -> Result<Vec<(Value, Value)>> {
        let Question { filter, reversed, count } = question;
        if matches!(&filter, ClusteringFilter::Slices(slices) if slices.is_empty()) {
            return Ok(Vec::new());
        }
        let command = ReadCommand {
            table: self.table.clone(),
            partitions: Partitions::Keys(vec![PartitionKey::new(self.row_key(row)?)]),
            filter: Arc::new(filter),
            reversed,
            statics: false,
            columns: None,
            limits: count.map_or(Limits::NONE, |rows| Limits { rows, ..Limits::NONE }),
            now_s: self.engine.now_s(),
            resume: None,
            page_rows: None,
        };
        let mut columns = Columns { table: &self.table, now_s: command.now_s, found: Vec::new() };
        let view = self.engine.view(&self.table).map_err(Error::of_read)?;
        let request = ReadRequest { may_block: true, ..ReadRequest::default() };
        self.engine.read(&command, &view, request, &mut columns, probe).map_err(Error::of_read)?;
        Ok(columns.found)
    }

    fn row_key(&self, row: &Value) -> Result<Vec<u8>> {
        let column = &self.table.partition_key[0];
        self.bytes(column, row)?.ok_or_else(|| self.wrong_type(column, "null"))
    }

    fn name(&self, name: &Value) -> Result<Vec<u8>> {
        let column = &self.table.clustering[0];
        self.bytes(column, name)?.ok_or_else(|| self.wrong_type(column, "null"))
    }

    fn position(&self, name: &[u8]) -> Vec<u8> {
        let mut key = Vec::with_capacity(name.len() + 4);
        let encoded =
            byte_comparable::clustering_key(std::iter::once(Some(name)), &self.table.clustering, &mut key);
        assert!(encoded.is_ok(), "a name that its type accepted has an ordered form");
        key
    }

    fn bound(&self, name: &[u8], before: bool) -> Result<Vec<u8>> {
        let mut key = Vec::with_capacity(name.len() + 4);
        let clustering = &self.table.clustering;
        byte_comparable::clustering_bound(std::iter::once(Some(name)), clustering, before, &mut key)
            .map_err(|_| self.wrong_type(&clustering[0], "value of this form"))?;
        Ok(key)
    }

    fn bytes(&self, column: &Column, value: &Value) -> Result<Option<Vec<u8>>> {
        value.to_bytes(&column.ty).map_err(|value| self.wrong_type(column, value))
    }

    fn wrong_type(&self, column: &Column, value: &'static str) -> Error {
        Error::WrongType {
            keyspace: self.table.keyspace.to_string(),
            table: self.table.name.to_string(),
            column: column.name.to_string(),
            ty: column.ty.to_string(),
            value,
        }
    }
}

/// The columns to read, in terms of the storage engine.
struct Question {
    filter: ClusteringFilter,
    reversed: bool,
    count: Option<u64>,
}

/// A wide table whose reads are counted (`WideTable::probed`).
pub struct ProbedTable<'a> {
    table: &'a WideTable,
    probe: &'a mut Probe,
}

impl ProbedTable<'_> {
    /// As `WideTable::get`.
    ///
    /// # Errors
    /// As there.
    pub fn get(&mut self, row: &Value, names: &[Value]) -> Result<Vec<(Value, Value)>> {
        self.table.read(row, self.table.names(names)?, Some(&mut *self.probe))
    }

    /// As `WideTable::slice`.
    ///
    /// # Errors
    /// As there.
    pub fn slice(&mut self, row: &Value, slice: &Slice) -> Result<Vec<(Value, Value)>> {
        self.table.read(row, self.table.range(slice)?, Some(&mut *self.probe))
    }
}

/// Collects name and value of each row.
struct Columns<'a> {
    table: &'a Table,
    now_s: i64,
    found: Vec<(Value, Value)>,
}

impl RowSink for Columns<'_> {
    fn partition(&mut self, _key: &[u8], _static_row: Option<RowView<'_>>) -> helenus_engine::Result<()> {
        Ok(())
    }

    fn row(&mut self, row: RowView<'_>) -> helenus_engine::Result<RowOutcome> {
        let name = row
            .clustering(0)
            .map_or(Value::Null, |name| Value::from_bytes(&self.table.clustering[0].ty, name));
        let column = &self.table.regulars[0];
        let cell = row.cells_of(column.id).first().filter(|cell| cell.is_live(self.now_s));
        let value = cell.map_or(Value::Null, |cell| Value::from_bytes(&column.ty, row.value(cell)));
        self.found.push((name, value));
        Ok(RowOutcome::Counted)
    }

    fn partition_end(&mut self, _rows: u64) -> helenus_engine::Result<RowOutcome> {
        Ok(RowOutcome::Skipped)
    }
}
