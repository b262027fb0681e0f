//! Writes of super column families: converts changes of rows of entries to changes of entries of stored rows.

use super::is_of_entries;
use crate::budget::room_for;
use crate::error::{CqlError, Result};
use helenus_engine::Database;
use helenus_model::cell::ColumnId;
use helenus_model::deletion::{DeletionTime, Liveness};
use helenus_model::mutation::{Change, Changes, Mutation, PartitionUpdate, RangeBound};
use helenus_model::packed::unpack;
use helenus_model::row::RowBuf;
use std::borrow::Cow;

/// Converts a mutation to the stored form.
///
/// # Errors
/// A deletion of a range of entries within a super column; no memory for the copy.
pub(crate) fn stored<'m>(database: &Database, mutation: &'m Mutation) -> Result<Cow<'m, Mutation>> {
    if !mutation.updates.iter().any(|update| is_of_entries(&update.table)) {
        return Ok(Cow::Borrowed(mutation));
    }
    room_for(mutation.updates.iter().map(|update| update.key.len() + update.changes.as_bytes().len()).sum())?;
    let schema = database.schema();
    let mut updates = Vec::with_capacity(mutation.updates.len());
    for update in &mutation.updates {
        let table = schema.table_by_id(update.table.id).filter(|_| is_of_entries(&update.table));
        updates.push(match (table, update.table.compact_value()) {
            (Some(table), Some(map)) => PartitionUpdate {
                table: table.clone(),
                key: update.key.clone(),
                changes: folded(&update.changes, map.id)?,
            },
            _ => update.clone(),
        });
    }
    Ok(Cow::Owned(Mutation { updates }))
}

fn folded(changes: &Changes, map: ColumnId) -> Result<Changes> {
    let mut out = Changes::default();
    let mut row = RowBuf::default();
    // The server wrote these bytes itself a moment ago, so they can be decoded.
    for change in changes.iter().flatten() {
        match change {
            Change::PartitionDeletion(deletion) => out.delete_partition(deletion),
            Change::StaticRow(_) => {}
            Change::RangeDeletion { start, end, deletion } => delete((&start, &end), deletion, &mut out)?,
            Change::Row(packed) => {
                if unpack(packed, 2, &mut row).is_err() {
                    continue;
                }
                let value = |index: usize| row.clustering.get(index).and_then(|span| span.get(packed));
                let (name, entry) = (value(0), value(1));
                out.row([name].into_iter(), (Liveness::NONE, DeletionTime::LIVE), &[], |writer| {
                    for cell in row.cells.iter().filter(|cell| cell.column == map) {
                        writer.cell(cell, Some(entry.unwrap_or_default()), cell.value.bytes(packed));
                    }
                });
            }
        }
    }
    Ok(out)
}

/// Deletes one super column by its name, or all between two names.
fn delete(
    (start, end): (&RangeBound<'_>, &RangeBound<'_>),
    deletion: DeletionTime,
    out: &mut Changes,
) -> Result<()> {
    let (first, last): (Vec<_>, Vec<_>) = (start.values().collect(), end.values().collect());
    if first.len() > 1 || last.len() > 1 {
        return Err(CqlError::Invalid(
            "Ranges within a super column cannot be deleted: name each of its columns, or delete the super column".into(),
        ));
    }
    if !first.is_empty() && first == last && start.before && !end.before {
        out.row(first.into_iter(), (Liveness::NONE, deletion), &[], |_| {});
    } else {
        out.delete_range((&first, start.before), (&last, end.before), deletion);
    }
    Ok(())
}
