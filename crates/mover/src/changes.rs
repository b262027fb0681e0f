//! Reads a page of the feed of changes as parcels.

use crate::batches::{ListName, lists_of};
use crate::error::MoveError;
use crate::source::{OpenRange, RowName, RowWrites, SourceError, Write, is_hidden_row};
use crate::target::{Batch, TableTarget};
use helenus_engine::changes::{ChangeKind, ChangePosition, SchemaEvent};
use helenus_engine::{Database, Error};
use helenus_model::row::RowView;
use helenus_model::schema::{Column, Table};
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
    /// Counters of a range or of all of the partition of this key are deleted, at the time of the target.
    DeleteCounters(Vec<u8>, Vec<Write>),
    /// Rows came in that are no changes: the table is to be read anew.
    ReadAnew,
    /// Changes are missed from here on, for this reason: the table, if it is there, is to be read anew.
    Missed(&'static str),
    /// The table cannot be followed further as it is; its changes go on behind the position.
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
    let mut rows = RowWrites::new(target.as_there());
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
            ChangeKind::Schema(SchemaEvent::Watched | SchemaEvent::Created)
                if change.table.id != table.id =>
            {
                return end(Then::Missed(MADE_ANEW));
            }
            ChangeKind::Schema(SchemaEvent::Created) => return Ok(ControlFlow::Continue(())),
            // Before it the table was not watched, and what was written then is not in the log. The move's own ALTER lies before its position.
            ChangeKind::Schema(SchemaEvent::Watched) => return end(Then::ReadAnew),
            ChangeKind::Schema(SchemaEvent::Altered) => {
                return match has_same_columns(change.table, table) {
                    true => Ok(ControlFlow::Continue(())),
                    false => end(Then::Stop(ALTERED.to_owned())),
                };
            }
            ChangeKind::Schema(SchemaEvent::Unwatched) => return end(Then::Missed(UNWATCHED)),
            ChangeKind::Schema(SchemaEvent::Dropped) => return end(Then::Missed(DROPPED)),
        };
        if table.is_counter() {
            page.changes += 1;
            page.first_us.get_or_insert(newest_us);
            return match counter_change(target, &change.kind, now_s) {
                Ok(CounterChange::Nothing) => Ok(ControlFlow::Continue(())),
                Ok(CounterChange::Row(name)) => {
                    page.counters.insert(name);
                    if page.changes >= PAGE.0 { end(Then::More) } else { Ok(ControlFlow::Continue(())) }
                }
                Ok(CounterChange::Delete(writes)) => end(Then::DeleteCounters(key.to_vec(), writes)),
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
                OpenRange::deletion((target.as_there(), key), (start, end), *deletion, &mut batch.writes)
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

fn counter_change(
    target: &TableTarget,
    kind: &ChangeKind<'_>,
    now_s: i64,
) -> Result<CounterChange, SourceError> {
    let table = target.table();
    let mut writes = Vec::new();
    match kind {
        ChangeKind::Row { key, row } if is_hidden_row(target.as_there(), key, *row, now_s)? => {}
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
const MADE_ANEW: &str = "it was dropped and made anew here; helenus move resume truncates it at the target, or makes it there, and sends it anew";
const UNWATCHED: &str = "cdc was switched off, so changes are missed; helenus move resume switches it on again and sends the table anew";

/// Whether two definitions have the same columns. Their numbers are not compared: those of a definition in the log are of the process that
/// has written it.
pub(crate) fn has_same_columns(one: &Table, other: &Table) -> bool {
    let columns = |table: &Table| -> Vec<Column> {
        table.columns().map(|column| Column { id: Table::UNNUMBERED, ..column.clone() }).collect()
    };
    one.id == other.id && columns(one) == columns(other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use helenus_model::cell::ColumnId;
    use helenus_model::schema::{ColumnKind, TableId};
    use helenus_model::types::CqlType;

    #[test]
    fn a_definition_of_an_earlier_process_has_the_same_columns() {
        let table = |ids: [u16; 2], ty: CqlType| {
            let key = Column::new("k", ColumnKind::PartitionKey, CqlType::Int);
            let a = Column::new("a", ColumnKind::Regular, CqlType::Int);
            let b = Column::new("b", ColumnKind::Regular, ty);
            let columns =
                [(a, ids[0]), (b, ids[1])].map(|(column, id)| Column { id: ColumnId(id), ..column });
            Table::new(("ks", "t"), TableId(Default::default()), [key].into_iter().chain(columns))
        };
        let here = table([1, 2], CqlType::Text);
        assert!(has_same_columns(&here, &table([7, 9], CqlType::Text)));
        assert!(!has_same_columns(&here, &table([1, 2], CqlType::Blob)));
    }
}
