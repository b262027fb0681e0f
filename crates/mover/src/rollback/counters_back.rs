//! Makes the local counters of a range equal to the cluster's: the way back of `counters`.
//!
//! Only the rollback writes here, and it knows what each of its writes did. So the difference is added once. A counter that is not there
//! any more is deleted here, its row if none is left.

use crate::error::MoveError;
use crate::remote::{BroughtBack, SeenRow, Sides, TokenRange, key_words};
use crate::source::{RowName, Values};
use helenus_cql::LocalBackend;
use helenus_cql::backend::{Backend, BoundValue, Identity, NoRows, Outcome, Request};
use helenus_model::cell::ColumnId;
use helenus_model::schema::{Column, Table};
use helenus_model::types::quote_identifier;
use std::sync::Arc;

/// Rows that are written at once.
const CHUNK: usize = 512;

/// What is to be done with a row here.
struct Change {
    name: RowName,
    /// Differences by column.
    adds: Vec<(ColumnId, i64)>,
    /// Columns to delete.
    gone: Vec<ColumnId>,
    is_row_gone: bool,
}

/// Makes the local counters of a range of tokens equal to the cluster's. Rows whose counters cannot be written here any more, because
/// they were deleted, differ in every pass.
///
/// `is_trial`: the writes are checked, and nothing is written.
///
/// # Errors
/// A side cannot be read; the local database refuses a write; `stop` became true.
pub(crate) async fn bring_back(
    sides: &Sides,
    range: TokenRange,
    is_trial: bool,
) -> Result<BroughtBack, MoveError> {
    let Sides { backend, table, .. } = sides;
    let mut merge = sides.merge(range)?;
    let (mut done, mut changes) = (BroughtBack::default(), Vec::new());
    loop {
        let pair = merge.next().await?;
        let is_end = pair.is_none();
        if let Some(pair) = pair.filter(|pair| !sides.hides(pair)) {
            done.rows += 1;
            if let Some(change) = change(pair.0.as_ref(), pair.1.as_ref()) {
                if table.is_static_compact() && change.name.clustering.is_some() {
                    return Err(MoveError::Table(format!(
                        "a counter of a column that the table does not declare has changed at the cluster ({}), and no statement writes it here",
                        key_words(table, &change.name)
                    )));
                }
                changes.push(change);
                done.look_again(table, &pair);
            }
        }
        if changes.len() >= CHUNK || is_end {
            done.changed += changes.len() as u64;
            let (changes, backend, table) =
                (std::mem::take(&mut changes), Arc::clone(backend), Arc::clone(table));
            sides.threads.run(move || apply(&backend, &table, &changes, is_trial)).await?;
        }
        if is_end {
            return Ok(done);
        }
    }
}

fn counts(row: Option<&SeenRow>) -> Vec<(ColumnId, i64)> {
    let cells = row.map(|row| &row.cells[..]).unwrap_or_default();
    let count = |value: &[u8]| value.first_chunk().map_or(0, |bytes| i64::from_be_bytes(*bytes));
    cells.iter().map(|cell| (cell.column, count(&cell.value))).collect()
}

fn change(here: Option<&SeenRow>, there: Option<&SeenRow>) -> Option<Change> {
    let name = here.or(there)?.name();
    let (of_here, of_there) = (counts(here), counts(there));
    let find =
        |of: &[(ColumnId, i64)], column| of.iter().find(|(id, _)| *id == column).map(|(_, count)| *count);
    let adds: Vec<_> = of_there
        .iter()
        .filter(|(column, count)| find(&of_here, *column) != Some(*count))
        .map(|(column, count)| (*column, count.wrapping_sub(find(&of_here, *column).unwrap_or(0))))
        .collect();
    let gone: Vec<_> = of_here
        .iter()
        .map(|(column, _)| *column)
        .filter(|column| find(&of_there, *column).is_none())
        .collect();
    let is_row_gone = of_there.is_empty() && !gone.is_empty() && name.clustering.is_some();
    (!adds.is_empty() || !gone.is_empty()).then_some(Change { name, adds, gone, is_row_gone })
}

fn apply(backend: &LocalBackend, table: &Table, changes: &[Change], is_trial: bool) -> Result<(), MoveError> {
    let (of, identity) = (
        format!("{}.{}", quote_identifier(&table.keyspace), quote_identifier(&table.name)),
        Identity::server(),
    );
    let mut tickets = Vec::new();
    for change in changes {
        let is_static = change.name.clustering.is_none();
        let clustering: &[Column] = if is_static { &[] } else { &table.clustering };
        let keys = table.partition_key.iter().chain(clustering);
        let keys: Vec<_> = keys.map(|column| format!("{} = ?", quote_identifier(&column.name))).collect();
        let key = keys.join(" AND ");
        let name = |id: ColumnId| {
            table
                .column_by_id(id)
                .map(|column| quote_identifier(&column.name).into_owned())
                .unwrap_or_default()
        };
        let mut statements: Vec<(String, Vec<i64>)> = Vec::new();
        match change.is_row_gone {
            true => statements.push((format!("DELETE FROM {of} WHERE {key}"), Vec::new())),
            false if !change.gone.is_empty() => {
                let gone: Vec<_> = change.gone.iter().map(|column| name(*column)).collect();
                statements.push((format!("DELETE {} FROM {of} WHERE {key}", gone.join(", ")), Vec::new()));
            }
            false => {}
        }
        if !change.adds.is_empty() {
            let sets: Vec<_> =
                change.adds.iter().map(|(column, _)| format!("{0} = {0} + ?", name(*column))).collect();
            let text = format!("UPDATE {of} SET {} WHERE {key}", sets.join(", "));
            statements.push((text, change.adds.iter().map(|(_, count)| *count).collect()));
        }
        for (text, counts) in statements {
            let mut values = Values::default();
            counts.iter().for_each(|count| values.put(&count.to_be_bytes()));
            let named = change.name.put(table, &mut values);
            let full_name = || format!("{}.{}", table.keyspace, table.name);
            named.map_err(|error| MoveError::Row { table: full_name(), error })?;
            let failed = |error: &dyn std::fmt::Display| MoveError::Table(format!("{error}; in {text}"));
            let prepared = backend.prepare(&text, None, &identity).map_err(|error| failed(&error))?;
            let values: Vec<_> =
                values.iter().map(|value| value.map_or(BoundValue::Null, BoundValue::Bytes)).collect();
            let request = Request { may_block: true, is_trial, ..Request::plain(&identity, &values) };
            let answer = backend.execute(&prepared, &request, &mut NoRows).map_err(|error| failed(&error))?;
            if let Outcome::Done(ticket) = answer.outcome {
                tickets.push(ticket);
            }
        }
    }
    tickets.into_iter().try_for_each(|ticket| Ok(ticket.wait()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted_target::ScriptedMove;

    #[tokio::test]
    async fn a_trial_checks_the_writes_of_counters_and_makes_none() {
        let create = [
            "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
            "CREATE TABLE ks.t (k int PRIMARY KEY, a counter)",
            "UPDATE ks.t SET a = a + 7 WHERE k = 1",
        ];
        let of = ScriptedMove::new(&create, |_| None).await;
        let (backend, table) = (&of.context.backend, of.table("t"));
        let name = RowName { key: 1_i32.to_be_bytes().to_vec(), clustering: Some(Vec::new()) };
        let column = table.regulars[0].id;
        let count = || counts(crate::remote::read_local(backend.database(), &table, &name).unwrap().as_ref());
        let change = |adds: Vec<(ColumnId, i64)>, is_row_gone: bool| {
            let gone = if is_row_gone { vec![column] } else { Vec::new() };
            [Change { name: name.clone(), adds, gone, is_row_gone }]
        };
        for change in [change(vec![(column, 5)], false), change(Vec::new(), true)] {
            apply(backend, &table, &change, true).unwrap();
            assert_eq!(count(), [(column, 7)]);
        }
        apply(backend, &table, &change(vec![(column, 5)], false), false).unwrap();
        assert_eq!(count(), [(column, 12)]);
        of.run("DROP TABLE ks.t");
        assert!(apply(backend, &table, &change(vec![(column, 5)], false), true).is_err());
    }
}
