//! Makes the local rows of a range equal to the cluster's: for the way back from a cluster that was written to.
//!
//! Cells that are newer there are written here with their timestamps and TTLs. What is not there any more is deleted here, at its own
//! timestamp, which is enough and hides nothing that is newer. A list that differs is replaced behind all that is here, because its
//! elements have other ids here. A cell that is newer here stays, and is counted.

use super::compare::{CellDifference, Difference, Tolerance, compare, has_no_values};
use super::local_writer::LocalWriter;
use super::merge::{Merge, Pair};
use super::range::TokenRange;
use super::read::{Remote, RemoteTable};
use super::row::{SeenCell, SeenRow};
use super::writes::{Place, cell_deletions, cell_writes, marker_of, marker_write, new_row, row_deletion};
use crate::error::MoveError;
use crate::forms;
use crate::source::{SourceError, StatementKind, Values, Write};
use crate::threads::Threads;
use helenus_cluster::{Cluster, Written};
use helenus_cql::LocalBackend;
use helenus_model::cell::ColumnId;
use helenus_model::schema::Table;
use helenus_model::types::CqlType;
use helenus_wire::native::Consistency;
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::sync::watch;

/// Writes that are run at once, and their bytes, about.
const CHUNK: (usize, usize) = (512, 1 << 20);

/// A table of both sides.
#[derive(Clone)]
pub(crate) struct Sides {
    pub(crate) backend: Arc<LocalBackend>,
    pub(crate) table: Arc<Table>,
    pub(crate) threads: Arc<Threads>,
    remote: Arc<Remote>,
    of_remote: Arc<RemoteTable>,
}

impl Sides {
    /// The table here and at the cluster, which is read until `stop` is true.
    pub(crate) fn new(
        backend: &Arc<LocalBackend>,
        (cluster, threads): (&Cluster, &Arc<Threads>),
        (table, as_there): (&Arc<Table>, &Arc<Table>),
        stop: watch::Receiver<bool>,
    ) -> Sides {
        let remote = Remote::new(cluster, backend.database(), Consistency::LocalQuorum, stop);
        Sides {
            backend: Arc::clone(backend),
            table: Arc::clone(table),
            threads: Arc::clone(threads),
            remote: Arc::new(remote),
            of_remote: Arc::new(RemoteTable::new(table, as_there, cluster)),
        }
    }

    /// Reads a range of both.
    ///
    /// # Errors
    /// There is no thread that could read here.
    pub(crate) fn merge(&self, range: TokenRange) -> Result<Merge, MoveError> {
        Merge::of_range((self.backend.database(), &self.threads), &self.remote, &self.of_remote, range)
    }

    /// Whether a row is here alone because the cluster hides it, or may: what it cannot show is not known to be gone.
    pub(crate) fn hides(&self, (here, there): &Pair) -> bool {
        let is_here_alone = there.is_none() && here.as_ref().is_some_and(|row| row.clustering.is_some());
        is_here_alone && self.of_remote.texts.hides_rows()
    }
}

/// What was brought back.
#[derive(Debug, Default)]
pub(crate) struct BroughtBack {
    /// Rows that were compared.
    pub(crate) rows: u64,
    /// Rows that were changed or deleted here.
    pub(crate) changed: u64,
    /// Rows that differ still, because their cells here are newer.
    pub(crate) kept: u64,
    /// The partitions to look at once more: of rows that differ still, and of counters that were changed.
    pub(crate) again: Written,
}

impl BroughtBack {
    /// Notes the partition of a row.
    pub(crate) fn look_again(&mut self, table: &Table, (here, there): &Pair) {
        if let Some(row) = here.as_ref().or(there.as_ref()) {
            self.again.add((&table.keyspace, &table.name), Some(row.partition.hash.token.0));
        }
    }

    /// Adds another range.
    pub(crate) fn add(&mut self, other: BroughtBack) {
        self.again.add_all(other.again);
        self.rows += other.rows;
        self.changed += other.changed;
        self.kept += other.kept;
    }
}

/// Makes the local rows of a range of tokens equal to the cluster's. Clients may write neither side meanwhile. Tables
/// of counters have their own way (`counters_back`). `is_trial`: the writes are checked, and nothing is written.
///
/// # Errors
/// A side cannot be read; the local database refuses a write; `stop` became true.
pub(crate) async fn bring_back(
    sides: &Sides,
    range: TokenRange,
    is_trial: bool,
) -> Result<BroughtBack, MoveError> {
    let Sides { backend, table, .. } = sides;
    let database = backend.database();
    let opened = forms::opened(table);
    let mut merge = sides.merge(range)?;
    let mut done = BroughtBack::default();
    let (mut writes, mut bytes) = (Vec::new(), 0);
    loop {
        let pair = merge.next().await?;
        let is_end = pair.is_none();
        if let Some(pair) = pair.filter(|pair| !sides.hides(pair)) {
            done.rows += 1;
            let times = (database.wall_us(), database.now_s());
            let before = writes.len();
            let row = row_writes(&opened, &pair, times, &mut writes);
            let kept = row.map_err(|error| MoveError::Row {
                table: format!("{}.{}", table.keyspace, table.name),
                error,
            })?;
            let is_changed = writes.len() > before;
            bytes += writes.iter().skip(before).map(Write::bytes).sum::<usize>();
            done.changed += u64::from(is_changed);
            done.kept += u64::from(kept);
            if kept {
                done.look_again(table, &pair);
            }
        }
        if writes.len() >= CHUNK.0 || bytes >= CHUNK.1 || is_end {
            let writes = std::mem::take(&mut writes);
            bytes = 0;
            let (backend, table) = (Arc::clone(backend), Arc::clone(table));
            let run = sides.threads.run(move || {
                let mut writer = LocalWriter::new(&backend, &table).trial(is_trial);
                writer.run(&writes)?;
                writer.finish()
            });
            run.await?;
        }
        if is_end {
            return Ok(done);
        }
    }
}

/// Appends the writes that make a row here the one there. Returns whether something newer here stays.
pub(super) fn row_writes(
    table: &Table,
    (here, there): &Pair,
    (read_us, now_s): (i64, i64),
    out: &mut Vec<Write>,
) -> Result<bool, SourceError> {
    let exactly = Tolerance { now_s, slack_s: 1 };
    match (here, there) {
        (None, None) => {}
        (None, Some(there)) => new_row(table, there, (read_us, now_s), out)?,
        (Some(here), None) => gone(table, here, out)?,
        (Some(here), Some(there)) => {
            let name = here.name();
            let place = Place { table, name: &name };
            let is_shown = |cell: &SeenCell| has_no_values(table, cell.column);
            let only_marked =
                there.cells.is_empty() && !here.cells.is_empty() && !here.cells.iter().any(is_shown);
            if only_marked && here.marker.is_none() {
                marker_write(place, marker_of(there, read_us), now_s, out)?;
            }
            if let Some(Difference::Cells(cells)) = compare(table, Some(here), Some(there), exactly) {
                return changed(place, Both { here, there }, &cells, (read_us, now_s), out);
            }
        }
    }
    Ok(false)
}

/// Deletes a row that is not there any more.
fn gone(table: &Table, here: &SeenRow, out: &mut Vec<Write>) -> Result<(), SourceError> {
    let name = here.name();
    let place = Place { table, name: &name };
    if name.clustering.is_some() {
        return here.newest_us().map_or(Ok(()), |newest_us| row_deletion(place, newest_us, out));
    }
    cell_deletions(place, &here.cells, out)?;
    let lists: BTreeSet<ColumnId> = here.cells.iter().map(|cell| cell.column).collect();
    lists.into_iter().filter(|column| is_list(table, *column)).try_for_each(|column| {
        let newest_us = newest_of(here, column);
        newest_us.map_or(Ok(()), |newest_us| list_deletion(place, column, newest_us, out))
    })
}

/// A row of both sides.
#[derive(Clone, Copy)]
struct Both<'r> {
    here: &'r SeenRow,
    there: &'r SeenRow,
}

fn changed(
    place: Place<'_>,
    rows: Both<'_>,
    differences: &[CellDifference],
    times: (i64, i64),
    out: &mut Vec<Write>,
) -> Result<bool, SourceError> {
    let Both { here, there } = rows;
    let mut kept = false;
    let (mut wanted, mut unwanted): (Vec<SeenCell>, Vec<SeenCell>) = (Vec::new(), Vec::new());
    let mut lists = BTreeSet::new();
    for CellDifference { here, there, .. } in differences {
        let Some(column) = here.as_ref().or(there.as_ref()).map(|cell| cell.column) else { continue };
        if is_list(place.table, column) {
            lists.insert(column);
            continue;
        }
        match (here, there) {
            (Some(here), Some(there)) if is_newer(here, there) => kept = true,
            (_, Some(there)) => wanted.push(there.clone()),
            (Some(here), None) => unwanted.push(here.clone()),
            (None, None) => {}
        }
    }
    cell_deletions(place, &unwanted, out)?;
    cell_writes(place, &wanted, None, times, out)?;
    for column in lists {
        let of = |row: &SeenRow| -> Vec<SeenCell> {
            row.cells.iter().filter(|cell| cell.column == column).cloned().collect()
        };
        let (present, list) = (of(here), of(there));
        match newest_of(here, column) {
            Some(newest_us) if list.is_empty() => list_deletion(place, column, newest_us, out)?,
            // What is there is what is here and more.
            Some(_) if list.starts_with(&present) => {
                let added = list.get(present.len()..).unwrap_or_default();
                cell_writes(place, added, None, times, out)?;
            }
            newest_us => cell_writes(place, &list, newest_us, times, out)?,
        }
    }
    Ok(kept)
}

fn is_newer(here: &SeenCell, there: &SeenCell) -> bool {
    here.times.zip(there.times).is_some_and(|(here, there)| here.timestamp_us > there.timestamp_us)
}

fn is_list(table: &Table, column: ColumnId) -> bool {
    table.column_by_id(column).is_some_and(|column| matches!(column.ty, CqlType::List { frozen: false, .. }))
}

fn newest_of(row: &SeenRow, column: ColumnId) -> Option<i64> {
    let times = row.cells.iter().filter(|cell| cell.column == column).filter_map(|cell| cell.times);
    times.map(|times| times.timestamp_us).max()
}

fn list_deletion(
    place: Place<'_>,
    column: ColumnId,
    timestamp_us: i64,
    out: &mut Vec<Write>,
) -> Result<(), SourceError> {
    let mut values = Values::default();
    values.put(&timestamp_us.to_be_bytes());
    place.name.put(place.table, &mut values)?;
    out.push(Write { kind: StatementKind::DeleteColumn(column), values });
    Ok(())
}
