//! Gathers the writes of a partition into batches, and reads a range of a table into such batches.

use crate::error::MoveError;
use crate::source::{
    ListState, OpenRange, RowName, RowWrites, SourceError, is_hidden_row, list_columns, list_of_row,
};
use crate::target::{Batch, TableTarget};
use helenus_engine::read::{KeyRange, UnfilteredSink};
use helenus_engine::{Database, Error};
use helenus_model::cell::ColumnId;
use helenus_model::deletion::DeletionTime;
use helenus_model::row::RowView;
use helenus_model::schema::Table;
use helenus_model::unfiltered::Unfiltered;
use std::sync::Arc;
use tokio::sync::mpsc;

/// A list of a row, which is sent by itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ListName {
    pub(crate) row: RowName,
    pub(crate) column: ColumnId,
}

/// Something to send.
pub(crate) enum Parcel {
    Batch(Batch),
    List(Arc<TableTarget>, ListName, ListState),
    Counters(Arc<TableTarget>, RowName),
}

/// Reads a range and gives its parcels to a channel, until the channel is closed.
///
/// # Errors
/// The table cannot be read; a row that CQL cannot write; `Stopped` if nobody takes parcels any more.
pub(crate) fn read_range(
    database: &Database,
    table: &Arc<TableTarget>,
    range: &KeyRange,
    out: &mpsc::Sender<Parcel>,
) -> Result<(), MoveError> {
    let mut reader = Reader {
        target: table,
        rows: RowWrites::new(table.as_there()),
        open: OpenRange::default(),
        database,
        batch: Batch::new(table, &[]),
        key: Vec::new(),
        out,
        failed: None,
    };
    let read = database.scan_unfiltered(table.table(), range, &mut reader);
    match (reader.failed, read) {
        (Some(error), _) => Err(error),
        (None, read) => Ok(read?),
    }
}

struct Reader<'r> {
    target: &'r Arc<TableTarget>,
    rows: RowWrites,
    open: OpenRange,
    database: &'r Database,
    batch: Batch,
    key: Vec<u8>,
    out: &'r mpsc::Sender<Parcel>,
    /// Why the read was ended.
    failed: Option<MoveError>,
}

impl Reader<'_> {
    fn fail(&mut self, error: MoveError) -> Error {
        self.failed = Some(error);
        Error::Cancelled
    }

    fn row_failed(&mut self, error: SourceError) -> Error {
        let table = self.target.table();
        let table = format!("{}.{}", table.keyspace, table.name);
        self.fail(MoveError::Row { table, error })
    }

    fn send(&mut self, parcel: Parcel) -> Result<(), Error> {
        self.out.blocking_send(parcel).map_err(|_| self.fail(MoveError::Stopped))
    }

    /// Counts what was appended to the batch, and sends it if it is full.
    fn appended(&mut self, from: usize) -> Result<(), Error> {
        self.batch.rows += 1;
        self.batch.count(from);
        if self.batch.is_full() { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), Error> {
        if self.batch.writes.is_empty() {
            return Ok(());
        }
        let next = self.batch.clone_head();
        let full = std::mem::replace(&mut self.batch, next);
        self.send(Parcel::Batch(full))
    }

    /// Counters are not sent as they are read: see `counters`.
    fn counters(&mut self, row: RowView<'_>, is_static: bool) -> Result<(), Error> {
        let now_s = self.database.now_s();
        let is_hidden = match is_static {
            true => Ok(false),
            false => is_hidden_row(self.target.as_there(), &self.key, row, now_s),
        };
        if is_hidden.map_err(|error| self.row_failed(error))? {
            return Ok(());
        }
        let name = RowName::of(self.target.table(), &self.key, row, is_static);
        let name = name.map_err(|error| self.row_failed(error))?;
        self.send(Parcel::Counters(Arc::clone(self.target), name))
    }

    fn lists(&mut self, row: RowView<'_>, is_static: bool) -> Result<(), Error> {
        let table = self.target.table().clone();
        if list_columns(&table, is_static).next().is_none() {
            return Ok(());
        }
        let now_s = self.database.now_s();
        for (name, state) in
            lists_of(&table, &self.key, row, (is_static, now_s)).map_err(|error| self.row_failed(error))?
        {
            self.send(Parcel::List(Arc::clone(self.target), name, state))?;
        }
        Ok(())
    }
}

/// The lists of a row.
pub(crate) fn lists_of(
    table: &Table,
    key: &[u8],
    row: RowView<'_>,
    (is_static, now_s): (bool, i64),
) -> Result<Vec<(ListName, ListState)>, SourceError> {
    let mut lists = Vec::new();
    for column in list_columns(table, is_static) {
        if let Some(state) = list_of_row(row, column.id, now_s) {
            let row = RowName::of(table, key, row, is_static)?;
            lists.push((ListName { row, column: column.id }, state));
        }
    }
    Ok(lists)
}

impl UnfilteredSink for Reader<'_> {
    fn partition(
        &mut self,
        key: &[u8],
        deletion: DeletionTime,
        static_row: Option<RowView<'_>>,
    ) -> helenus_engine::Result<()> {
        self.key.clear();
        self.key.extend_from_slice(key);
        self.open.clear();
        self.batch = Batch::new(self.target, key);
        if self.target.table().is_counter() {
            return static_row.map_or(Ok(()), |row| self.counters(row, true));
        }
        if !deletion.is_live() {
            self.rows.partition_deletion(key, deletion, &mut self.batch.writes);
            self.appended(0)?;
        }
        if let Some(row) = static_row {
            let (from, now_s) = (self.batch.writes.len(), self.database.now_s());
            let written = self.rows.static_row(key, row, now_s, &mut self.batch.writes);
            written.map_err(|error| self.row_failed(error))?;
            self.appended(from)?;
            self.lists(row, true)?;
        }
        Ok(())
    }

    fn element(&mut self, element: Unfiltered<'_>) -> helenus_engine::Result<()> {
        if self.target.table().is_counter() {
            return match element {
                Unfiltered::Row(row) => self.counters(row, false),
                Unfiltered::Marker(_) => Ok(()),
            };
        }
        let from = self.batch.writes.len();
        match element {
            Unfiltered::Row(row) => {
                let now_s = self.database.now_s();
                let written = self.rows.row(&self.key, row, now_s, &mut self.batch.writes);
                written.map_err(|error| self.row_failed(error))?;
                self.appended(from)?;
                self.lists(row, false)
            }
            Unfiltered::Marker(marker) => {
                let table = self.target.as_there();
                let written = self.open.marker((table, &self.key), marker, &mut self.batch.writes);
                written.map_err(|error| self.row_failed(error))?;
                self.appended(from)
            }
        }
    }

    fn partition_end(&mut self) -> helenus_engine::Result<()> {
        self.flush()
    }
}
