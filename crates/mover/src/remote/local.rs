//! Reads the rows of the database here as the cluster's are read: live cells, in the order of the ring and of the clustering.

use super::portions::RowsOrError;
use super::row::SeenRow;
use crate::error::MoveError;
use crate::source::{RowName, SourceError};
use helenus_engine::read::{KeyRange, Partitions, ReadCommand, RowOutcome, RowSink, UnfilteredSink};
use helenus_engine::{Database, Error, ReadRequest};
use helenus_model::deletion::DeletionTime;
use helenus_model::filter::{ClusteringFilter, Limits};
use helenus_model::partitions::PartitionKey;
use helenus_model::row::RowView;
use helenus_model::schema::Table;
use helenus_model::unfiltered::Unfiltered;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Rows and bytes that are handed over at once.
const CHUNK: (usize, usize) = (256, 256 << 10);

/// Reads a range into a channel, until the channel is closed. It waits for the disk.
///
/// # Errors
/// The table cannot be read; a row that CQL cannot name.
pub(crate) fn scan_local(
    database: &Database,
    table: &Arc<Table>,
    range: &KeyRange,
    out: &mpsc::Sender<RowsOrError>,
) -> Result<(), MoveError> {
    let partition = Arc::new(PartitionKey::new(Vec::new()));
    let mut scan = Scan { database, table, partition, rows: Vec::new(), bytes: 0, out, failed: None };
    let read = database.scan_unfiltered(table, range, &mut scan);
    match (scan.failed.take(), read) {
        (Some(error), _) => Err(error),
        (None, Err(Error::Cancelled)) => Err(MoveError::Stopped),
        (None, read) => {
            read?;
            scan.flush().map_err(|_| MoveError::Stopped)
        }
    }
}

struct Scan<'s> {
    database: &'s Database,
    table: &'s Arc<Table>,
    partition: Arc<PartitionKey>,
    rows: Vec<SeenRow>,
    bytes: usize,
    out: &'s mpsc::Sender<RowsOrError>,
    failed: Option<MoveError>,
}

impl Scan<'_> {
    fn take(&mut self, row: RowView<'_>, is_static: bool) -> Result<(), Error> {
        let seen = SeenRow::of_local(self.table, &self.partition, row, (is_static, self.database.now_s()));
        let seen = seen.map_err(|error| {
            self.failed = Some(row_error(self.table, error));
            Error::Cancelled
        })?;
        if let Some(row) = seen {
            self.bytes += row.bytes();
            self.rows.push(row);
        }
        if self.rows.len() >= CHUNK.0 || self.bytes >= CHUNK.1 { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.bytes = 0;
        if self.rows.is_empty() {
            return Ok(());
        }
        self.out.blocking_send(Ok(std::mem::take(&mut self.rows))).map_err(|_| Error::Cancelled)
    }
}

impl UnfilteredSink for Scan<'_> {
    fn partition(
        &mut self,
        key: &[u8],
        _deletion: DeletionTime,
        static_row: Option<RowView<'_>>,
    ) -> helenus_engine::Result<()> {
        self.partition = Arc::new(PartitionKey::new(key.to_vec()));
        static_row.map_or(Ok(()), |row| self.take(row, true))
    }

    fn element(&mut self, element: Unfiltered<'_>) -> helenus_engine::Result<()> {
        match element {
            Unfiltered::Row(row) => self.take(row, false),
            Unfiltered::Marker(_) => Ok(()),
        }
    }

    fn partition_end(&mut self) -> helenus_engine::Result<()> {
        Ok(())
    }
}

fn row_error(table: &Table, error: SourceError) -> MoveError {
    MoveError::Row { table: format!("{}.{}", table.keyspace, table.name), error }
}

/// Reads one row, or a static row; `None` if it is not there. It waits for the disk.
///
/// # Errors
/// The table cannot be read.
pub(crate) fn read_local(
    database: &Database,
    table: &Arc<Table>,
    name: &RowName,
) -> Result<Option<SeenRow>, MoveError> {
    let is_static = name.clustering.is_none();
    let names = if is_static { Vec::new() } else { vec![name.order(table)] };
    let now_s = database.now_s();
    let partition = Arc::new(PartitionKey::new(name.key.clone()));
    let command = ReadCommand {
        table: Arc::clone(table),
        partitions: Partitions::Keys(vec![PartitionKey::clone(&partition)]),
        filter: Arc::new(ClusteringFilter::Names(names)),
        reversed: false,
        statics: is_static,
        columns: None,
        limits: Limits::NONE,
        now_s,
        resume: None,
        page_rows: None,
    };
    let mut sink = One { table, partition, of: (is_static, now_s), found: Ok(None) };
    let request = ReadRequest { may_block: true, ..ReadRequest::default() };
    database.read(&command, &*database.view(table)?, request, &mut sink, None)?;
    sink.found.map_err(|error| row_error(table, error))
}

struct One<'o> {
    table: &'o Table,
    partition: Arc<PartitionKey>,
    of: (bool, i64),
    found: Result<Option<SeenRow>, SourceError>,
}

impl RowSink for One<'_> {
    fn partition(&mut self, _key: &[u8], static_row: Option<RowView<'_>>) -> helenus_engine::Result<()> {
        if let Some(row) = static_row.filter(|_| self.of.0) {
            self.found = SeenRow::of_local(self.table, &self.partition, row, self.of);
        }
        Ok(())
    }

    fn row(&mut self, row: RowView<'_>) -> helenus_engine::Result<RowOutcome> {
        if !self.of.0 {
            self.found = SeenRow::of_local(self.table, &self.partition, row, self.of);
        }
        Ok(RowOutcome::Counted)
    }

    fn partition_end(&mut self, _rows: u64) -> helenus_engine::Result<RowOutcome> {
        Ok(RowOutcome::Skipped)
    }
}
