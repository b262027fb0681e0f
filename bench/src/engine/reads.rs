//! Reads in storage terms, and the sink that copies their cells as an answer's encoding would.

use crate::content::{COLUMNS, key, name, value, wide_value};
use crate::tables::wide_key;
use anyhow::{Result, ensure};
use helenus_engine::read::{
    BatchSink, KeyRange, PartitionKey, Partitions, ReadCommand, ReadEnd, RowOutcome, RowSink,
};
use helenus_engine::{Database, ReadRequest};
use helenus_model::byte_comparable;
use helenus_model::filter::{AFTER_ALL, BEFORE_ALL, ClusteringFilter, Limits, Slice};
use helenus_model::row::RowView;
use helenus_model::row_batch::RowBatch;
use helenus_model::schema::Table;
use std::sync::Arc;

/// Seconds at which rows are judged: after all were written.
const NOW_S: i64 = 1_700_000_001;

/// Takes rows as the cells of an answer: length and bytes each.
#[derive(Default)]
pub struct Answer {
    /// The cells.
    pub bytes: Vec<u8>,
    /// Rows taken.
    pub rows: u64,
    /// Forget the cells at this size: a scan's answer leaves in pieces.
    pub piece: usize,
}

/// Appends a cell.
pub fn put(bytes: &mut Vec<u8>, value: &[u8]) {
    bytes.extend_from_slice(&(value.len() as u32).to_be_bytes());
    bytes.extend_from_slice(value);
}

impl RowSink for Answer {
    fn partition(&mut self, _key: &[u8], _static_row: Option<RowView<'_>>) -> helenus_engine::Result<()> {
        Ok(())
    }

    fn row(&mut self, row: RowView<'_>) -> helenus_engine::Result<RowOutcome> {
        self.cut();
        if let Some(value) = row.clustering(0) {
            put(&mut self.bytes, value);
        }
        for cell in row.row.cells.iter().filter(|cell| cell.is_live(NOW_S)) {
            put(&mut self.bytes, row.value(cell));
        }
        self.rows += 1;
        Ok(RowOutcome::Counted)
    }

    fn batches(&mut self) -> Option<&mut dyn BatchSink> {
        Some(self)
    }

    fn partition_end(&mut self, _rows: u64) -> helenus_engine::Result<RowOutcome> {
        Ok(RowOutcome::Skipped)
    }
}

impl BatchSink for Answer {
    fn batch(&mut self, run: &RowBatch<'_>) -> helenus_engine::Result<bool> {
        self.cut();
        for row in run.rows() {
            row.iter().for_each(|value| put(&mut self.bytes, run.bytes(value)));
        }
        self.rows += run.len() as u64;
        Ok(true)
    }
}

impl Answer {
    /// Takes a cell.
    pub fn put(&mut self, value: &[u8]) {
        put(&mut self.bytes, value);
    }

    /// Forgets the cells when there are enough for a piece.
    pub fn cut(&mut self) {
        if self.piece != 0 && self.bytes.len() > self.piece {
            self.bytes.clear();
        }
    }

    /// Empty again, with its memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.rows = 0;
    }

    /// Compares with the five values of a single row.
    pub fn check_single(&self, row: u64, expected: &mut Vec<u8>) -> Result<()> {
        expected.clear();
        (0..COLUMNS).for_each(|column| put(expected, &value(row, column)));
        ensure!(self.rows == 1 && self.bytes == *expected, "row {row}: {} rows, or other values", self.rows);
        Ok(())
    }

    /// Compares with rows of the wide partition.
    pub fn check_wide(
        &self,
        width: u64,
        rows: impl Iterator<Item = u64>,
        expected: &mut Vec<u8>,
    ) -> Result<()> {
        expected.clear();
        let mut count = 0;
        for row in rows {
            put(expected, &name(row));
            put(expected, &wide_value(width, row));
            count += 1;
        }
        ensure!(
            self.rows == count && self.bytes == *expected,
            "{} rows for {count}, or other values",
            self.rows
        );
        Ok(())
    }
}

/// Where in the storage order a slice begins, and which way it goes.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Name of the first row.
    pub first: u64,
    /// Against the storage order.
    pub reversed: bool,
}

fn command(table: &Arc<Table>, key: Vec<u8>, filter: ClusteringFilter, limit: u64) -> ReadCommand {
    ReadCommand {
        table: table.clone(),
        partitions: Partitions::Keys(vec![PartitionKey::new(key)]),
        filter: Arc::new(filter),
        reversed: false,
        statics: false,
        columns: None,
        limits: Limits { rows: limit, ..Limits::NONE },
        now_s: NOW_S,
        resume: None,
        page_rows: Some(5_000),
    }
}

/// A row by its key.
pub fn single(table: &Arc<Table>, row: u64) -> ReadCommand {
    command(table, key(row).to_vec(), ClusteringFilter::Slices(vec![Slice::all()]), u64::MAX)
}

/// A slice of `limit` rows.
pub fn slice(table: &Arc<Table>, width: u64, place: Place, limit: u64) -> Result<ReadCommand> {
    let mut bound = Vec::with_capacity(16);
    let name = name(place.first);
    byte_comparable::clustering_bound([Some(&name[..])], &table.clustering, !place.reversed, &mut bound)?;
    let slice = match place.reversed {
        false => Slice { start: bound, end: AFTER_ALL.to_vec() },
        true => Slice { start: BEFORE_ALL.to_vec(), end: bound },
    };
    let mut command = command(table, wide_key(width), ClusteringFilter::Slices(vec![slice]), limit);
    command.reversed = place.reversed;
    Ok(command)
}

/// Rows by name, in storage order.
pub fn names(table: &Arc<Table>, width: u64, rows: impl Iterator<Item = u64>) -> Result<ReadCommand> {
    let mut keys = Vec::with_capacity(100);
    for row in rows {
        let mut key = Vec::with_capacity(16);
        byte_comparable::clustering_key([Some(&name(row)[..])], &table.clustering, &mut key)?;
        keys.push(key);
    }
    Ok(command(table, wide_key(width), ClusteringFilter::Names(keys), u64::MAX))
}

/// Every row of a table.
pub fn scan(table: &Arc<Table>) -> ReadCommand {
    let all = ClusteringFilter::Slices(vec![Slice::all()]);
    let mut command = command(table, Vec::new(), all, u64::MAX);
    command.partitions = Partitions::Range(KeyRange::all());
    command.page_rows = None;
    command
}

/// Runs a read that must end in one page.
#[inline]
pub fn run(database: &Database, command: &ReadCommand, answer: &mut Answer) -> Result<()> {
    answer.clear();
    let view = database.view(&command.table)?;
    let request = ReadRequest { may_block: true, ..ReadRequest::default() };
    let end = database.read(command, &view, request, answer, None)?;
    ensure!(end == ReadEnd::Complete || answer.rows == command.limits.rows, "the page ended early: {end:?}");
    Ok(())
}
