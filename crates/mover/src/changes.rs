//! Reads a page of the feed of changes as parcels.

use crate::batches::{ListName, lists_of};
use crate::error::MoveError;
use crate::source::{OpenRange, RowName, RowWrites, SourceError, Write};
use crate::target::{Batch, TableTarget};
use helenus_engine::changes::{ChangeKind, ChangePosition, SchemaEvent};
use helenus_engine::{Database, Error};
use helenus_model::row::RowView;
use helenus_model::schema::Table;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Changes of a page at most, and bytes of their writes.
const PAGE: (u64, usize) = (5_000, 4 << 20);

/// A page of changes.
pub(crate) struct Page {
    /// The writes, by partition.
    pub(crate) batches: Vec<Batch>,
    /// Lists that were changed, with the greatest timestamp of the changes.
    pub(crate) lists: BTreeMap<ListName, i64>,
    /// Rows of counters that were changed.
    pub(crate) counters: BTreeSet<RowName>,
    pub(crate) changes: u64,
    /// The timestamp of the first change, microseconds.
    pub(crate) first_us: Option<i64>,
    /// What follows the changes of the page.
    pub(crate) then: Then,
    /// Behind the page.
    pub(crate) next: ChangePosition,
}

/// What follows the changes of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// More changes.
    More,
    /// Nothing yet.
    End,
    /// The table is truncated.
    Truncate,
    /// Counters of a range or partition are deleted, at the time of the target.
    DeleteCounters(Vec<Write>),
    /// Rows came in that are no changes: the table is to be read anew.
    ReadAnew,
    /// The table cannot be followed further.
    Stop(String),
}

/// Reads the page behind a position.
///
/// # Errors
/// The changes are not kept any more; a change that CQL cannot write; failures of reading.
pub(crate) fn read_page(
    database: &Database,
    target: &Arc<TableTarget>,
    from: ChangePosition,
) -> Result<Page, MoveError> {
    let table = target.table();
    let now_s = database.now_s();
    let mut rows = RowWrites::new(table);
    let mut by_key: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
    let mut page = Page {
        batches: Vec::new(),
        lists: BTreeMap::new(),
        counters: BTreeSet::new(),
        changes: 0,
        first_us: None,
        then: Then::End,
        next: from,
    };
    let mut bytes = 0;
    let mut failed = None;
    let read = database.changes().read((&table.keyspace, &table.name), from, &mut |change| {
        let mut end = |then: Then| {
            page.then = then;
            Ok(ControlFlow::Break(()))
        };
        let (key, newest_us) = match &change.kind {
            ChangeKind::Row { key, row } | ChangeKind::StaticRow { key, row } => (*key, row.newest_us()),
            ChangeKind::RangeDeletion { key, deletion, .. } => (*key, deletion.timestamp_us),
            ChangeKind::PartitionDeletion { key, deletion } => (*key, deletion.timestamp_us),
            ChangeKind::Truncated => return end(Then::Truncate),
            ChangeKind::Imported { .. } => return end(Then::ReadAnew),
            ChangeKind::Schema(SchemaEvent::Watched | SchemaEvent::Created) => {
                return match change.table.id == table.id {
                    true => Ok(ControlFlow::Continue(())),
                    false => end(Then::Stop(MADE_ANEW.to_owned())),
                };
            }
            ChangeKind::Schema(SchemaEvent::Altered) => {
                return match has_same_columns(change.table, table) {
                    true => Ok(ControlFlow::Continue(())),
                    false => end(Then::Stop(ALTERED.to_owned())),
                };
            }
            ChangeKind::Schema(SchemaEvent::Unwatched) => return end(Then::Stop(UNWATCHED.to_owned())),
            ChangeKind::Schema(SchemaEvent::Dropped) => return end(Then::Stop(DROPPED.to_owned())),
        };
        if table.is_counter() {
            page.changes += 1;
            page.first_us.get_or_insert(newest_us);
            return match counter_change(table, &change.kind) {
                Ok(CounterChange::Nothing) => Ok(ControlFlow::Continue(())),
                Ok(CounterChange::Row(name)) => {
                    page.counters.insert(name);
                    if page.changes >= PAGE.0 { end(Then::More) } else { Ok(ControlFlow::Continue(())) }
                }
                Ok(CounterChange::Delete(writes)) => end(Then::DeleteCounters(writes)),
                Err(error) => {
                    let table = format!("{}.{}", table.keyspace, table.name);
                    failed = Some(MoveError::Row { table, error });
                    Err(Error::Cancelled)
                }
            };
        }
        let place = *by_key.entry(key.to_vec()).or_insert(page.batches.len());
        // A full batch is left as it is, and the next one takes its place.
        let place = match page.batches.get(place) {
            Some(batch) if !batch.is_full() => place,
            _ => {
                by_key.insert(key.to_vec(), page.batches.len());
                page.batches.push(Batch::new(target, key));
                page.batches.len() - 1
            }
        };
        let Some(batch) = page.batches.get_mut(place) else { return Ok(ControlFlow::Break(())) };
        let before = batch.writes.len();
        let mut lists = |row: RowView<'_>, is_static: bool| {
            let found = lists_of(table, key, row, (is_static, now_s))?;
            for (name, state) in found {
                let newest = page.lists.entry(name).or_insert(i64::MIN);
                *newest = (*newest).max(state.newest_us);
            }
            Ok(())
        };
        let written = match &change.kind {
            ChangeKind::Row { row, .. } => {
                rows.row(key, *row, now_s, &mut batch.writes).and_then(|()| lists(*row, false))
            }
            ChangeKind::StaticRow { row, .. } => {
                rows.static_row(key, *row, now_s, &mut batch.writes).and_then(|()| lists(*row, true))
            }
            ChangeKind::RangeDeletion { start, end, deletion, .. } => {
                OpenRange::deletion((table, key), (start, end), *deletion, &mut batch.writes)
            }
            ChangeKind::PartitionDeletion { deletion, .. } => {
                rows.partition_deletion(key, *deletion, &mut batch.writes);
                Ok(())
            }
            _ => Ok(()),
        };
        if let Err(error) = written {
            let table = format!("{}.{}", table.keyspace, table.name);
            failed = Some(MoveError::Row { table, error });
            return Err(Error::Cancelled);
        }
        let bytes_before = batch.bytes;
        batch.count(before);
        batch.rows += 1;
        bytes += batch.bytes - bytes_before;
        page.changes += 1;
        page.first_us.get_or_insert(newest_us);
        if page.changes >= PAGE.0 || bytes >= PAGE.1 {
            return end(Then::More);
        }
        Ok(ControlFlow::Continue(()))
    });
    match (failed, read) {
        (Some(error), _) => Err(error),
        (None, read) => {
            page.next = read?;
            page.batches.retain(|batch| !batch.writes.is_empty());
            Ok(page)
        }
    }
}

/// What a change of counters asks for.
enum CounterChange {
    Nothing,
    /// The row is to be made equal.
    Row(RowName),
    /// Rows are deleted. What is counted in them afterwards has changes of its own, which follow.
    Delete(Vec<Write>),
}

fn counter_change(table: &Arc<Table>, kind: &ChangeKind<'_>) -> Result<CounterChange, SourceError> {
    let mut writes = Vec::new();
    match kind {
        ChangeKind::Row { key, row } => return Ok(CounterChange::Row(RowName::of(table, key, *row, false)?)),
        ChangeKind::StaticRow { key, row } => {
            return Ok(CounterChange::Row(RowName::of(table, key, *row, true)?));
        }
        ChangeKind::RangeDeletion { key, start, end, deletion } => {
            OpenRange::deletion((table, key), (start, end), *deletion, &mut writes)?;
        }
        ChangeKind::PartitionDeletion { key, deletion } => {
            RowWrites::new(table).partition_deletion(key, *deletion, &mut writes);
        }
        _ => {}
    }
    Ok(if writes.is_empty() { CounterChange::Nothing } else { CounterChange::Delete(writes) })
}

const ALTERED: &str =
    "its columns were altered; make the same change at the target, then helenus move resume";
const DROPPED: &str = "it was dropped here; the target still has it. helenus move resume leaves it out";
const MADE_ANEW: &str =
    "it was dropped and made anew here; drop it at the target, then helenus move resume sends it anew";
const UNWATCHED: &str =
    "cdc was switched off; ALTER TABLE .. WITH cdc = true, then helenus move resume sends it anew";

/// Whether two definitions have the same columns.
pub(crate) fn has_same_columns(
    one: &helenus_model::schema::Table,
    other: &helenus_model::schema::Table,
) -> bool {
    one.id == other.id && one.columns().eq(other.columns())
}
