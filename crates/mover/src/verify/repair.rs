//! Sends again what this server holds of rows of one partition: cells, deletions of the cells, rows, ranges and the partition, lists.
//!
//! Counters are made equal as by the tail. Every other write has its own timestamp, so what is newer at the target stays there, and what has no deletion here too. A list that
//! differs is replaced behind all that the target has of it, unless the target's is newer; elements that are newer than what the
//! target has keep their timestamps.

use super::job::Job;
use crate::batches::{ListName, lists_of};
use crate::counters::{self, CounterRow};
use crate::error::MoveError;
use crate::lists;
use crate::remote::{SeenRow, Times};
use crate::source::{
    ListElement, ListPlace, ListState, OpenRange, RowName, RowWrites, SourceError, list_writes,
};
use crate::target::{Batch, SETTLE, of_row};
use helenus_engine::Error;
use helenus_engine::read::{KeyRange, UnfilteredSink};
use helenus_model::byte_comparable::clustering_key;
use helenus_model::deletion::DeletionTime;
use helenus_model::partitions::PartitionKey;
use helenus_model::row::RowView;
use helenus_model::unfiltered::Unfiltered;
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// Batches that the reader may be ahead of the sender. Each has some 16 KiB, or all of a large row: so a partition of any size, with any
/// number of range tombstones, is held by no more.
const AHEAD: usize = 4;

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
    // A TRUNCATE waits, because what was read here before it would come back there.
    let mut sharing = job.context.locks.rows_of(job.of().id).await;
    sharing.in_flight(Some(SETTLE));
    let lists = rows(job, PartitionKey::new(first.key.clone()), names).await?;
    sharing.done();
    for name in &lists {
        list(job, name).await?;
    }
    Ok(())
}

/// Sends what is held of the rows, but lists. Returns the names of those.
async fn rows(job: &Arc<Job>, key: PartitionKey, names: &[RowName]) -> Result<Vec<ListName>, MoveError> {
    let (sender, mut batches) = mpsc::channel(AHEAD);
    let (ended, reading) = oneshot::channel();
    let (of_read, wanted) = (Arc::clone(job), names.to_vec());
    job.context.threads.start(move || {
        let read = held(&of_read, key, &wanted, sender);
        // Whoever does not listen any more needs nothing.
        let _ = ended.send(read);
    })?;
    let target = &job.context.target;
    while let Some(batch) = batches.recv().await {
        target.send(&batch).await?;
    }
    // A reader that dies sends nothing.
    let died = |_| MoveError::Internal("the reader of a partition has gone before its end".to_owned());
    reading.await.map_err(died)?
}

/// Reads what is held of the rows into a channel, until the channel is closed. Returns the names of their lists.
fn held(
    job: &Job,
    key: PartitionKey,
    names: &[RowName],
    out: mpsc::Sender<Batch>,
) -> Result<Vec<ListName>, MoveError> {
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
        out,
        lists: Vec::new(),
        failed: None,
    };
    let read = job.context.database().scan_unfiltered(table, &range, &mut reader);
    match (reader.failed.take(), read) {
        (Some(error), _) => return Err(row_error(error)),
        (None, Ok(()) | Err(Error::Cancelled)) => {}
        (None, Err(error)) => return Err(error.into()),
    }
    // Nobody takes it if the sender has failed.
    let _ = reader.flush();
    Ok(reader.lists)
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
    out: mpsc::Sender<Batch>,
    /// The lists of the rows, which are read once more when their row is locked.
    lists: Vec<ListName>,
    failed: Option<SourceError>,
}

impl Reader<'_> {
    fn flush(&mut self) -> Result<(), Error> {
        if self.batch.writes.is_empty() {
            return Ok(());
        }
        let next = self.batch.clone_head();
        let full = std::mem::replace(&mut self.batch, next);
        self.out.blocking_send(full).map_err(|_| Error::Cancelled)
    }

    fn row(&mut self, row: RowView<'_>, is_static: bool) -> Result<(), Error> {
        let (from, now_s) = (self.batch.writes.len(), self.job.context.database().now_s());
        let written = match is_static {
            true => self.rows.static_row(&self.key, row, now_s, &mut self.batch.writes),
            false => self.rows.row(&self.key, row, now_s, &mut self.batch.writes),
        };
        let lists = written.and_then(|()| lists_of(self.job.of(), &self.key, row, (is_static, now_s)));
        let lists = lists.map_err(|error| self.fail(error))?;
        self.lists.extend(lists.into_iter().map(|(name, _)| name));
        self.appended(from)
    }

    fn appended(&mut self, from: usize) -> Result<(), Error> {
        self.batch.count(from);
        self.batch.rows += 1;
        if self.batch.is_full() { self.flush() } else { Ok(()) }
    }

    /// Ends the reading behind the last wanted row, unless a range tombstone is open that may cover it.
    fn end_behind(&self, position: &[u8]) -> Result<(), Error> {
        let is_behind = self.wanted.last().is_none_or(|last| &last[..] < position);
        if is_behind && !self.open.1 { Err(Error::Cancelled) } else { Ok(()) }
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
        self.appended(0)?;
        static_row.filter(|_| self.wants_static).map_or(Ok(()), |row| self.row(row, true))
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
                    return self.row(row, false);
                }
                self.end_behind(&order)
            }
            Unfiltered::Marker(marker) => {
                let from = self.batch.writes.len();
                let table = Arc::clone(self.job.target.as_there());
                let position = &marker.marker.key;
                let is_behind = self.wanted.last().is_none_or(|last| last < position);
                // A range that begins there concerns no wanted row.
                self.open.1 = !marker.marker.open.is_live() && !is_behind;
                let written = self.open.0.marker((&table, &self.key), marker, &mut self.batch.writes);
                written.map_err(|error| self.fail(error))?;
                match self.wanted.first() {
                    None => Err(Error::Cancelled),
                    // Nor does one that ends there.
                    Some(first) if position < first => {
                        self.batch.writes.truncate(from);
                        Ok(())
                    }
                    Some(_) => {
                        self.appended(from)?;
                        self.end_behind(position)
                    }
                }
            }
        }
    }

    fn partition_end(&mut self) -> helenus_engine::Result<()> {
        Ok(())
    }
}

/// Sends a list as it is here now, if it differs there.
async fn list(job: &Arc<Job>, name: &ListName) -> Result<(), MoveError> {
    let (context, target) = (&job.context, &job.context.target);
    let mut lock = context.lock_row(job.of(), &name.row).await?;
    lock.in_flight(Some(SETTLE));
    let state = lists::present(context, &job.target, name).await?;
    let mut retry = target.retry();
    // The greatest timestamp that an attempt has given.
    let mut sent_us: Option<i64> = None;
    loop {
        let there = job.remote.read_row(&job.table, &name.row).await?;
        let there = there.as_ref().map(|row| elements(row, name, state.newest_us));
        let (values, newest_us) = there.unwrap_or_default();
        if is_same(&state, &values, (job.tolerance().slack_s, sent_us.is_some())) {
            break;
        }
        let floor_us = match sent_us {
            None if newest_us.is_some_and(|newest_us| newest_us > state.newest_us) => break,
            None => newest_us,
            // What an attempt without an answer may write yet is hidden.
            Some(sent_us) => Some(newest_us.map_or(sent_us, |newest_us| newest_us.max(sent_us))),
        };
        let next_us = floor_us.map_or(i64::MIN, |floor_us| floor_us.saturating_add(1));
        sent_us = Some(state.newest_us.max(next_us));
        let mut batch = Batch::new(&job.target, &name.row.key);
        let place = ListPlace { table: job.of(), name: &name.row, column: name.column };
        let now_s = context.database().now_s();
        let written = list_writes(place, &state, floor_us, now_s, &mut batch.writes);
        written.map_err(|error| MoveError::Row { table: job.of().name.to_string(), error })?;
        batch.count(0);
        batch.rows = 1;
        if batch.writes.is_empty() {
            break;
        }
        match target.try_send(&batch).await {
            Ok(()) => break,
            Err(error) => {
                let waited = retry.after(error).await;
                waited.map_err(|error| of_row(error, job.of(), &name.row))?;
            }
        }
    }
    lock.done();
    Ok(())
}

/// Whether the elements there are those of a list here. `may_be_later`: they may have later timestamps, because an attempt has replaced
/// the list.
fn is_same(state: &ListState, there: &[Element<'_>], (slack_s, may_be_later): (i64, bool)) -> bool {
    let is_same_time = |here: &ListElement, there: Times| {
        let is_time = match may_be_later {
            true => there.timestamp_us >= here.timestamp_us,
            false => there.timestamp_us == here.timestamp_us,
        };
        is_time && here.expires_s.abs_diff(there.expires_s) <= slack_s.unsigned_abs()
    };
    let is_same_element = |(here, there): (&ListElement, &Element<'_>)| {
        here.value == there.0 && there.1.is_none_or(|times| is_same_time(here, times))
    };
    state.elements.len() == there.len() && state.elements.iter().zip(there).all(is_same_element)
}

/// An element: value and times, which a target before 5.0 does not tell.
type Element<'e> = (&'e [u8], Option<Times>);

/// The elements of a list there, and the greatest of their timestamps: of those that are not told, that of the list here.
fn elements<'r>(row: &'r SeenRow, name: &ListName, here_us: i64) -> (Vec<Element<'r>>, Option<i64>) {
    let cells = row.cells.iter().filter(|cell| cell.column == name.column);
    let elements: Vec<Element<'_>> = cells.map(|cell| (&cell.value[..], cell.times)).collect();
    let newest_us = elements.iter().map(|of| of.1.map_or(here_us, |times| times.timestamp_us)).max();
    (elements, newest_us)
}

#[cfg(test)]
mod tests;
