//! Counter updates: read the present count of each counter, and write the new one.
//!
//! In a counter mutation, the value of a counter cell is the number to add: eight bytes, in place of a counter
//! context. `Database::count` locks the partitions, reads this server's shard of each counter, and logs the RESULT:
//! the server's global shard with a later clock. The number added is never logged, so a record that is replayed twice
//! counts once. Shards of other servers, which imported files may contain, stay unchanged and are summed by reads.
//!
//! Source: Cassandra's `CounterMutation`.

use super::reading::ReadRequest;
use super::shared::Database;
use crate::commitlog::Ticket;
use crate::error::{Error, Result};
use crate::read::{PartitionKey, Partitions, Probe, ReadCommand, RowOutcome, RowSink};
use helenus_model::byte_comparable::clustering_key;
use helenus_model::cell::{Cell, ColumnId};
use helenus_model::counter_context;
use helenus_model::deletion::Liveness;
use helenus_model::filter::{ClusteringFilter, Limits};
use helenus_model::mutation::{Change, Changes, Mutation, PartitionUpdate};
use helenus_model::packed::{Damaged, unpack};
use helenus_model::row::{RowBuf, RowView};
use helenus_model::schema::Table;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Bytes of a number to add.
const NUMBER_BYTES: usize = 8;

impl Database {
    /// Applies a mutation whose counter cells carry numbers to add. The ticket tells when it may be acknowledged.
    ///
    /// # Errors
    /// Those of a read, `WouldBlock` included, and of `write`. Nothing was applied then.
    pub fn count(
        &self,
        mutation: &Mutation,
        request: ReadRequest<'_>,
        mut probe: Option<&mut Probe>,
    ) -> Result<Ticket> {
        let locked = self.lock_all(mutation, request)?;
        let mut counted = Mutation::default();
        for update in &mutation.updates {
            counted.updates.push(self.counted(update, request, probe.as_deref_mut())?);
        }
        self.write_locked(&counted, &locked)
    }

    fn counted(
        &self,
        update: &PartitionUpdate,
        request: ReadRequest<'_>,
        probe: Option<&mut Probe>,
    ) -> Result<PartitionUpdate> {
        let mut additions = Additions::of(update)?;
        if !additions.all.is_empty() {
            let command = additions.command(update, self.now_s());
            let view = self.view(&update.table)?;
            let mut sink = OwnShards {
                table: &update.table,
                id: *self.shared.host_id.as_bytes(),
                additions: &mut additions,
                key: Vec::new(),
            };
            self.read(&command, &view, request, &mut sink, probe)?;
        }
        // Not from the wall clock, which may stand still or be set back. A shard counted after a deletion must be
        // later than the shards that the deletion hides: otherwise it would not count where both are merged first.
        let now_us = self.next_timestamp_unrefused();
        let changes = additions.written(update, (now_us, *self.shared.host_id.as_bytes()))?;
        Ok(PartitionUpdate { table: update.table.clone(), key: update.key.clone(), changes })
    }
}

/// One counter of a partition: the index of its row (`None`: the static row), its column, and its path in a map of
/// counters (counters of a Thrift super column have one).
type Counter = (Option<usize>, ColumnId, Option<Vec<u8>>);

fn counter(row: Option<usize>, cell: &Cell, data: &[u8]) -> Counter {
    (row, cell.column, cell.path.get(data).map(<[u8]>::to_vec))
}

/// The number to add to one counter, and this server's present shard of it.
#[derive(Default)]
struct Addition {
    by: i64,
    clock: i64,
    count: i64,
    is_written: bool,
}

/// The additions of one partition.
struct Additions {
    /// Ordered clusterings of the rows with additions, ascending.
    rows: Vec<Vec<u8>>,
    all: BTreeMap<Counter, Addition>,
}

impl Additions {
    fn of(update: &PartitionUpdate) -> Result<Additions> {
        let mut rows = Vec::new();
        let mut row = RowBuf::default();
        each_row(update, &mut row, |key, row, _| {
            if let Some(key) = key
                && has_numbers(row)
            {
                rows.push(key.to_vec());
            }
            Ok(())
        })?;
        rows.sort_unstable();
        rows.dedup();
        let mut additions = Additions { rows, all: BTreeMap::new() };
        each_row(update, &mut row, |key, row, _| {
            let index = key.and_then(|key| additions.rows.binary_search_by(|row| row[..].cmp(key)).ok());
            for cell in &row.row.cells {
                let Some(by) = number(row.value(cell)).filter(|_| !cell.is_tombstone()) else { continue };
                let addition = additions.all.entry(counter(index, cell, row.data)).or_default();
                addition.by = addition.by.wrapping_add(by);
            }
            Ok(())
        })?;
        Ok(additions)
    }

    fn command(&self, update: &PartitionUpdate, now_s: i64) -> ReadCommand {
        ReadCommand {
            table: update.table.clone(),
            partitions: Partitions::Keys(vec![PartitionKey::new(update.key.clone())]),
            filter: Arc::new(ClusteringFilter::Names(self.rows.clone())),
            reversed: false,
            statics: self.all.keys().any(|(row, ..)| row.is_none()),
            columns: None,
            limits: Limits::NONE,
            now_s,
            resume: None,
            page_rows: None,
        }
    }

    /// Records this server's shards in a row.
    fn note(&mut self, row: Option<usize>, found: RowView<'_>, id: &[u8; 16]) {
        for cell in found.row.cells.iter().filter(|cell| !cell.is_tombstone()) {
            let Some(addition) = self.all.get_mut(&counter(row, cell, found.data)) else { continue };
            if let Some(shard) = counter_context::shard_of(found.value(cell), id) {
                (addition.clock, addition.count) = (shard.clock, shard.count);
            }
        }
    }

    /// The update with contexts in place of numbers. A counter with several additions is written once.
    fn written(&mut self, update: &PartitionUpdate, (now_us, id): (i64, [u8; 16])) -> Result<Changes> {
        let mut out = Changes::default();
        let mut row = RowBuf::default();
        for change in update.changes.iter() {
            match change? {
                Change::PartitionDeletion(deletion) => out.delete_partition(deletion),
                Change::RangeDeletion { start, end, deletion } => {
                    let (starts, ends): (Vec<_>, Vec<_>) = (start.values().collect(), end.values().collect());
                    out.delete_range((&starts, start.before), (&ends, end.before), deletion);
                }
                Change::StaticRow(packed) => {
                    unpack(packed, 0, &mut row)?;
                    let view = RowView { row: &row, data: packed };
                    out.static_row(&row.complex_deletions, |writer| {
                        self.write_cells(None, view, (now_us, id), writer);
                    });
                }
                Change::Row(packed) => {
                    unpack(packed, update.table.clustering.len(), &mut row)?;
                    let view = RowView { row: &row, data: packed };
                    let key = row_key(&update.table, view)?;
                    let index = self.rows.binary_search(&key).ok();
                    let values = (0..row.clustering.len()).map(|index| view.clustering(index));
                    debug_assert!(row.liveness == Liveness::NONE, "rows of counters have no marker");
                    out.row(values, (row.liveness, row.deletion), &row.complex_deletions, |writer| {
                        self.write_cells(index, view, (now_us, id), writer);
                    });
                }
            }
        }
        Ok(out)
    }

    fn write_cells(
        &mut self,
        row: Option<usize>,
        from: RowView<'_>,
        (now_us, id): (i64, [u8; 16]),
        writer: &mut helenus_model::packed::RowWriter<'_>,
    ) {
        for cell in &from.row.cells {
            let addition = match number(from.value(cell)).filter(|_| !cell.is_tombstone()) {
                Some(_) => self.all.get_mut(&counter(row, cell, from.data)),
                None => None,
            };
            match addition {
                None => writer.cell(cell, cell.path.get(from.data), from.value(cell)),
                Some(addition) if addition.is_written => {}
                Some(addition) => {
                    addition.is_written = true;
                    let clock = now_us.max(addition.clock.saturating_add(1));
                    let count = addition.count.wrapping_add(addition.by);
                    let path = cell.path.get(from.data);
                    writer.cell(cell, path, &counter_context::global(id, clock, count));
                }
            }
        }
    }
}

fn number(value: &[u8]) -> Option<i64> {
    <[u8; NUMBER_BYTES]>::try_from(value).ok().map(i64::from_be_bytes)
}

fn has_numbers(row: RowView<'_>) -> bool {
    row.row.cells.iter().any(|cell| number(row.value(cell)).is_some())
}

/// Calls for each row of an update, with its ordered clustering (`None`: the static row).
fn each_row(
    update: &PartitionUpdate,
    row: &mut RowBuf,
    mut each: impl FnMut(Option<&[u8]>, RowView<'_>, &Table) -> Result<()>,
) -> Result<()> {
    for change in update.changes.iter() {
        match change? {
            Change::StaticRow(packed) => {
                unpack(packed, 0, row)?;
                each(None, RowView { row, data: packed }, &update.table)?;
            }
            Change::Row(packed) => {
                unpack(packed, update.table.clustering.len(), row)?;
                let view = RowView { row, data: packed };
                each(Some(&row_key(&update.table, view)?), view, &update.table)?;
            }
            Change::PartitionDeletion(_) | Change::RangeDeletion { .. } => {}
        }
    }
    Ok(())
}

/// The ordered clustering of a row.
pub(super) fn row_key(table: &Table, row: RowView<'_>) -> Result<Vec<u8>> {
    let mut key = Vec::new();
    let values = (0..table.clustering.len()).map(|index| row.clustering(index));
    clustering_key(values, &table.clustering, &mut key).map_err(|_| Error::from(Damaged { offset: 0 }))?;
    Ok(key)
}

/// Collects this server's shards from the rows that are read.
struct OwnShards<'a> {
    table: &'a Table,
    id: [u8; 16],
    additions: &'a mut Additions,
    key: Vec<u8>,
}

impl RowSink for OwnShards<'_> {
    fn partition(&mut self, _key: &[u8], static_row: Option<RowView<'_>>) -> Result<()> {
        if let Some(row) = static_row {
            self.additions.note(None, row, &self.id);
        }
        Ok(())
    }

    fn row(&mut self, row: RowView<'_>) -> Result<RowOutcome> {
        self.key.clear();
        let values = (0..self.table.clustering.len()).map(|index| row.clustering(index));
        clustering_key(values, &self.table.clustering, &mut self.key)
            .map_err(|_| Error::from(Damaged { offset: 0 }))?;
        if let Ok(index) = self.additions.rows.binary_search(&self.key) {
            self.additions.note(Some(index), row, &self.id);
        }
        Ok(RowOutcome::Counted)
    }

    fn hold_until(&mut self, _ticket: Ticket) -> Option<Ticket> {
        // The resulting write is logged after the writes that were read, so its ticket covers them.
        None
    }

    fn partition_end(&mut self, _rows: u64) -> Result<RowOutcome> {
        Ok(RowOutcome::Skipped)
    }
}
