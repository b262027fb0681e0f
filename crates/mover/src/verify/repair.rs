//! Sends again what this server holds of rows of one partition: cells, deletions of the cells, rows, ranges and the partition, lists.
//!
//! Counters are made equal as by the tail. Every other write has its own timestamp, so what is newer at the target stays there, and what has no deletion here too. A list that
//! differs is replaced behind all that the target has of it, unless the target's is newer; elements that are newer than what the
//! target has keep their timestamps.

use super::job::Job;
use crate::batches::{ListName, lists_of};
use crate::counters::{self, CounterRow};
use crate::error::MoveError;
use crate::remote::SeenRow;
use crate::source::{ListPlace, ListState, OpenRange, RowName, RowWrites, SourceError, list_writes};
use crate::target::Batch;
use helenus_engine::Error;
use helenus_engine::read::{KeyRange, UnfilteredSink};
use helenus_model::byte_comparable::clustering_key;
use helenus_model::deletion::DeletionTime;
use helenus_model::partitions::PartitionKey;
use helenus_model::row::RowView;
use helenus_model::unfiltered::Unfiltered;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Sends the rows of these names again; all are of one partition.
///
/// # Errors
/// The partition cannot be read or sent.
pub(super) async fn repair(job: &Arc<Job>, names: &[RowName]) -> Result<(), MoveError> {
    let Some(first) = names.first() else { return Ok(()) };
    if job.of().is_counter() {
        for name in names {
            let row = CounterRow { table: &job.target, name, in_doubt: true };
            counters::make_equal(&job.context, &row).await?;
        }
        return Ok(());
    }
    let key = PartitionKey::new(first.key.clone());
    let (of_read, wanted) = (Arc::clone(job), names.to_vec());
    let held = job.context.threads.run(move || held(&of_read, key, &wanted)).await?;
    let target = &job.context.target;
    for batch in held.batches {
        let turn = target.pace.turn(batch.rows).await;
        target.send(&batch).await?;
        drop(turn);
    }
    for (name, state) in held.lists {
        list(job, &name, &state).await?;
    }
    Ok(())
}

/// What is held of the rows.
struct Held {
    batches: Vec<Batch>,
    lists: Vec<(ListName, ListState)>,
}

fn held(job: &Job, key: PartitionKey, names: &[RowName]) -> Result<Held, MoveError> {
    let table = job.of();
    let row_error = |error| MoveError::Row { table: format!("{}.{}", table.keyspace, table.name), error };
    let mut wanted = BTreeSet::new();
    for name in names.iter().filter(|name| name.clustering.is_some()) {
        wanted.insert(name.order(table));
    }
    let mut end = key.decorated.clone();
    end.push(0);
    let range = KeyRange { start: key.decorated, end };
    let mut reader = Reader {
        job,
        wanted,
        wants_static: names.iter().any(|name| name.clustering.is_none()),
        rows: RowWrites::new(job.target.as_there()),
        open: (OpenRange::default(), false),
        key: key.bytes.clone(),
        batch: Batch::new(&job.target, &key.bytes),
        held: Held { batches: Vec::new(), lists: Vec::new() },
        failed: None,
    };
    let read = job.context.database().scan_unfiltered(table, &range, &mut reader);
    match (reader.failed.take(), read) {
        (Some(error), _) => return Err(row_error(error)),
        (None, Ok(()) | Err(Error::Cancelled)) => {}
        (None, Err(error)) => return Err(error.into()),
    }
    reader.flush();
    Ok(reader.held)
}

struct Reader<'r> {
    job: &'r Job,
    /// The ordered encodings of the rows.
    wanted: BTreeSet<Vec<u8>>,
    wants_static: bool,
    rows: RowWrites,
    /// Range tombstones, and whether one is open.
    open: (OpenRange, bool),
    key: Vec<u8>,
    batch: Batch,
    held: Held,
    failed: Option<SourceError>,
}

impl Reader<'_> {
    fn flush(&mut self) {
        if !self.batch.writes.is_empty() {
            let next = self.batch.clone_head();
            self.held.batches.push(std::mem::replace(&mut self.batch, next));
        }
    }

    fn row(&mut self, row: RowView<'_>, is_static: bool) -> Result<(), SourceError> {
        let (from, now_s) = (self.batch.writes.len(), self.job.context.database().now_s());
        match is_static {
            true => self.rows.static_row(&self.key, row, now_s, &mut self.batch.writes)?,
            false => self.rows.row(&self.key, row, now_s, &mut self.batch.writes)?,
        }
        self.held.lists.extend(lists_of(self.job.of(), &self.key, row, (is_static, now_s))?);
        self.appended(from);
        Ok(())
    }

    fn appended(&mut self, from: usize) {
        self.batch.count(from);
        self.batch.rows += 1;
        if self.batch.is_full() {
            self.flush();
        }
    }

    fn fail(&mut self, error: SourceError) -> Error {
        self.failed = Some(error);
        Error::Cancelled
    }
}

impl UnfilteredSink for Reader<'_> {
    fn partition(
        &mut self,
        key: &[u8],
        deletion: DeletionTime,
        static_row: Option<RowView<'_>>,
    ) -> helenus_engine::Result<()> {
        self.rows.partition_deletion(key, deletion, &mut self.batch.writes);
        self.appended(0);
        match static_row.filter(|_| self.wants_static) {
            Some(row) => self.row(row, true).map_err(|error| self.fail(error)),
            None => Ok(()),
        }
    }

    fn element(&mut self, element: Unfiltered<'_>) -> helenus_engine::Result<()> {
        match element {
            Unfiltered::Row(row) => {
                let table = self.job.of();
                let values = (0..table.clustering.len()).map(|index| row.clustering(index));
                let mut order = Vec::new();
                if clustering_key(values, &table.clustering, &mut order).is_err() {
                    return Ok(());
                }
                if self.wanted.contains(&order) {
                    return self.row(row, false).map_err(|error| self.fail(error));
                }
                // Nothing behind the last wanted row matters.
                let is_behind = self.wanted.last().is_none_or(|last| *last < order);
                if is_behind && !self.open.1 { Err(Error::Cancelled) } else { Ok(()) }
            }
            Unfiltered::Marker(marker) => {
                let from = self.batch.writes.len();
                let table = Arc::clone(self.job.target.as_there());
                self.open.1 = !marker.marker.open.is_live();
                let written = self.open.0.marker((&table, &self.key), marker, &mut self.batch.writes);
                written.map_err(|error| self.fail(error))?;
                self.appended(from);
                Ok(())
            }
        }
    }

    fn partition_end(&mut self) -> helenus_engine::Result<()> {
        Ok(())
    }
}

/// Sends a list if it differs there.
async fn list(job: &Arc<Job>, name: &ListName, state: &ListState) -> Result<(), MoveError> {
    let there = job.remote.read_row(&job.table, &name.row).await?;
    let (values, newest_us) = there.as_ref().map(|row| elements(row, name)).unwrap_or_default();
    let here: Vec<_> =
        state.elements.iter().map(|of| (&of.value[..], of.timestamp_us, of.expires_s)).collect();
    let is_same = here.len() == values.len()
        && here.iter().zip(&values).all(|(here, there)| {
            let slack_s = job.tolerance().slack_s.unsigned_abs();
            (here.0, here.1) == (there.0, there.1) && here.2.abs_diff(there.2) <= slack_s
        });
    if is_same || newest_us.is_some_and(|newest_us| newest_us > state.newest_us) {
        return Ok(());
    }
    let mut batch = Batch::new(&job.target, &name.row.key);
    let place = ListPlace { table: job.of(), name: &name.row, column: name.column };
    let now_s = job.context.database().now_s();
    let written = list_writes(place, state, newest_us, now_s, &mut batch.writes);
    written.map_err(|error| MoveError::Row { table: job.of().name.to_string(), error })?;
    batch.count(0);
    batch.rows = 1;
    if batch.writes.is_empty() { Ok(()) } else { job.context.target.send(&batch).await }
}

/// An element: value, timestamp, expiry.
type Element<'e> = (&'e [u8], i64, i64);

/// The elements of a list there, and the greatest of their timestamps.
fn elements<'r>(row: &'r SeenRow, name: &ListName) -> (Vec<Element<'r>>, Option<i64>) {
    let cells = row.cells.iter().filter(|cell| cell.column == name.column);
    let elements: Vec<_> = cells
        .map(|cell| {
            let times = cell.times.map_or((i64::MIN, 0), |times| (times.timestamp_us, times.expires_s));
            (&cell.value[..], times.0, times.1)
        })
        .collect();
    let newest_us = elements.iter().map(|element| element.1).max();
    (elements, newest_us)
}
