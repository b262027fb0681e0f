//! Makes the counters of a row at the target equal to those here.
//!
//! A counter cannot be set, only added to. So its value there is read, and the difference is added. Only the move writes there,
//! and a row has one request in flight (`row_locks`). What an addition without an answer did is known only once it cannot happen any more: after
//! `SETTLE` the value is read from all replicas, because one of them alone may have it. Rows that an earlier run may have
//! added to are read in the same way. So the value is exact, whatever fails; a row in doubt waits until all its replicas answer.
//!
//! A cell that was deleted is deleted there by a DELETE. Cassandra does not count in a deleted cell again, but it does in a deleted
//! row; and an addition that a node stamped later than the deletion stays. So both are read again afterwards.

use crate::context::Context;
use crate::error::MoveError;
use crate::lists::values_of;
use crate::present_row::read_row;
use crate::source::{RowName, Values, Write};
use crate::target::{SETTLE, TableTarget, Target, may_be_run};
use helenus_cluster::{ClusterError, OwnedAnswer};
use helenus_engine::Database;
use helenus_model::counter_context::total;
use helenus_model::schema::{Column, Table};
use helenus_model::types::quote_identifier;
use helenus_wire::native::{Consistency, QueryParameters};
use std::sync::Arc;
use std::time::Duration;

/// How often a write whose effect is not seen is repeated, and the first pause before that.
const ATTEMPTS: u32 = 8;
const PAUSE: Duration = Duration::from_millis(50);
/// The value of `read_repair` with which a read does not mend what it has found.
const NO_REPAIR: &str = "NONE";

/// A row of counters that may differ.
pub(crate) struct CounterRow<'r> {
    pub(crate) table: &'r Arc<TableTarget>,
    pub(crate) name: &'r RowName,
    /// Whether an addition of an earlier run may not have reached all replicas.
    pub(crate) in_doubt: bool,
}

/// What is to be done with a row.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    /// Nothing: both are equal.
    Nothing,
    /// Differences to add, `None` where the counters are equal. The flag: whether it must be seen afterwards.
    Add(Vec<Option<i64>>, bool),
    /// The row is to be deleted.
    DeleteRow,
    /// A column, by its place.
    DeleteColumn(usize),
}

/// The step from the values there to those here.
fn step(here: &[Option<i64>], there: &[Option<i64>], is_static: bool) -> Step {
    let pairs = || here.iter().zip(there);
    if !is_static && here.iter().all(Option::is_none) && there.iter().any(Option::is_some) {
        return Step::DeleteRow;
    }
    if let Some(dead) = pairs().position(|(here, there)| here.is_none() && there.is_some()) {
        return Step::DeleteColumn(dead);
    }
    let add = |(here, there): (&Option<i64>, &Option<i64>)| match (here, there) {
        (Some(here), Some(there)) if here == there => None,
        (Some(here), there) => Some(here.wrapping_sub(there.unwrap_or(0))),
        (None, _) => None,
    };
    let differences: Vec<Option<i64>> = pairs().map(add).collect();
    match differences.iter().all(Option::is_none) {
        true => Step::Nothing,
        false => Step::Add(differences, pairs().any(|(here, there)| here.is_some() && there.is_none())),
    }
}

fn columns(table: &Table, name: &RowName) -> Vec<Column> {
    if name.clustering.is_none() { table.statics.clone() } else { table.regulars.clone() }
}

/// The present values here.
///
/// # Errors
/// Failures of reading.
pub(crate) fn present(
    database: &Database,
    table: &Arc<Table>,
    name: &RowName,
) -> Result<Vec<Option<i64>>, MoveError> {
    let (columns, now_s) = (columns(table, name), database.now_s());
    let mut values = vec![None; columns.len()];
    read_row(database, table, name, &mut |row| {
        for (value, column) in values.iter_mut().zip(&columns) {
            *value =
                row.cell_of(column.id).filter(|cell| cell.is_live(now_s)).map(|cell| total(row.value(cell)));
        }
    })?;
    Ok(values)
}

/// The level that sees all that is there, whether or not something is in doubt.
fn level(table: &Table, in_doubt: bool) -> Consistency {
    // An addition that one replica alone has is found by a read from all, which gives it to the others; unless that is off.
    match in_doubt || table.options.read_repair == NO_REPAIR {
        true => Consistency::All,
        false => Consistency::LocalQuorum,
    }
}

/// Makes a row there equal to what it is here.
///
/// # Errors
/// The move stops; an error of the target that does not pass; a counter that cannot be written there any more.
pub(crate) async fn make_equal(context: &Context, row: &CounterRow<'_>) -> Result<(), MoveError> {
    let target = &context.target;
    let table = row.table.table();
    let is_static = row.name.clustering.is_none();
    let (mut in_doubt, mut retry, mut attempts) = (row.in_doubt, target.retry(), 0);
    loop {
        // Neither is kept through the pauses: a row in doubt, which waits for all replicas, would stop all other tables, and the tail of its
        // own while a repair waits.
        let mut lock = context.lock_row(table, row.name).await?;
        let turn = target.pace.turn(1).await;
        let level = level(table, in_doubt || lock.doubt().is_some());
        let (database, of, name) = (Arc::clone(context.database()), Arc::clone(table), row.name.clone());
        let here = context.threads.run(move || present(&database, &of, &name)).await?;
        let there = match read(target, row, level).await {
            Ok(there) => there,
            Err(error) => {
                drop((turn, lock));
                retry.after_read(error).await?;
                continue;
            }
        };
        let step = step(&here, &there, is_static);
        if step == Step::Nothing {
            lock.done();
            return Ok(());
        }
        lock.in_flight(Some(SETTLE));
        let written = write(target, row, &step).await;
        drop(turn);
        match written {
            Ok(()) if !matches!(step, Step::Add(_, false)) => {
                lock.done();
                in_doubt = false;
                attempts += 1;
                if attempts > ATTEMPTS {
                    return Err(without_effect(table));
                }
                if attempts > 1 {
                    target.pause(PAUSE * 2_u32.pow(attempts)).await?;
                }
            }
            Ok(()) => {
                lock.done();
                return Ok(());
            }
            Err(error) => {
                // The next look at the row waits until the request cannot be run any more, and asks all replicas.
                let settle = may_be_run(&error, SETTLE);
                in_doubt |= settle.is_some();
                lock.in_flight(settle);
                drop(lock);
                retry.after(error).await?;
            }
        }
    }
}

fn without_effect(table: &Table) -> MoveError {
    MoveError::Counter { table: format!("{}.{}", table.keyspace, table.name) }
}

fn table_name(table: &Table) -> String {
    format!("{}.{}", quote_identifier(&table.keyspace), quote_identifier(&table.name))
}

fn conditions(table: &Table, name: &RowName) -> String {
    let clustering = if name.clustering.is_some() { &table.clustering[..] } else { &[] };
    let columns = table.partition_key.iter().chain(clustering);
    columns.map(|column| format!("{} = ?", quote_identifier(&column.name))).collect::<Vec<_>>().join(" AND ")
}

async fn execute(
    target: &Target,
    text: &str,
    values: &Values,
    consistency: Consistency,
) -> Result<OwnedAnswer, ClusterError> {
    let values = values_of(values);
    let values = helenus_wire::native::Values::positional(&values);
    let parameters = QueryParameters { consistency, values, ..QueryParameters::default() };
    let statement = target.read_statement(text).await?;
    let begun = tokio::time::Instant::now();
    let answer = target.cluster.execute(&statement, &parameters).await;
    // A node that answers with an error, for instance because a replica is down, is not slow.
    target.pace.note(begun.elapsed(), !matches!(answer, Err(ClusterError::Call(_))));
    answer
}

async fn read(
    target: &Target,
    row: &CounterRow<'_>,
    consistency: Consistency,
) -> Result<Vec<Option<i64>>, ClusterError> {
    let table = row.table.table();
    let columns = columns(table, row.name);
    let names: Vec<_> = columns.iter().map(|column| quote_identifier(&column.name)).collect();
    let (of, key) = (table_name(table), conditions(table, row.name));
    let text = format!("SELECT {} FROM {of} WHERE {key} LIMIT 1", names.join(", "));
    let mut values = Values::default();
    // A name has all its values.
    let _ = row.name.put(table, &mut values);
    let answer = execute(target, &text, &values, consistency).await?;
    let mut found = vec![None; columns.len()];
    for row in answer.rows()?.iter() {
        for (value, cell) in found.iter_mut().zip(row?.cells()) {
            *value = cell.and_then(|cell| Some(i64::from_be_bytes(*cell.first_chunk()?)));
        }
    }
    Ok(found)
}

async fn write(target: &Target, row: &CounterRow<'_>, step: &Step) -> Result<(), ClusterError> {
    let table = row.table.table();
    let columns = columns(table, row.name);
    let names: Vec<_> = columns.iter().map(|column| quote_identifier(&column.name)).collect();
    let (of, key) = (table_name(table), conditions(table, row.name));
    let mut values = Values::default();
    let text = match step {
        Step::Nothing => return Ok(()),
        Step::Add(differences, _) => {
            for difference in differences {
                match difference {
                    Some(difference) => values.put(&difference.to_be_bytes()),
                    None => values.put_unset(),
                }
            }
            let set: Vec<String> = names.iter().map(|name| format!("{name} = {name} + ?")).collect();
            format!("UPDATE {of} SET {} WHERE {key}", set.join(", "))
        }
        Step::DeleteRow => format!("DELETE FROM {of} WHERE {key}"),
        Step::DeleteColumn(at) => {
            let name = names.get(*at).map(|name| &**name).unwrap_or_default();
            format!("DELETE {name} FROM {of} WHERE {key}")
        }
    };
    let _ = row.name.put(table, &mut values);
    execute(target, &text, &values, Consistency::LocalQuorum).await.map(|_| ())
}

/// Deletes the rows of a partition or of a range there, as they were here, until none is seen.
///
/// # Errors
/// As `make_equal`.
pub(crate) async fn delete(
    context: &Context,
    table: &Arc<TableTarget>,
    (key, deletion): (&[u8], &Write),
) -> Result<(), MoveError> {
    let target = &context.target;
    let mut lock = context.lock_partition(table.table(), key).await?;
    lock.in_flight(Some(SETTLE));
    let of = table_name(table.table());
    let condition = table.texts.condition(deletion.kind);
    let mut values = Values::default();
    // The first value is the timestamp, which a deletion of counters cannot have.
    for value in deletion.values.iter().skip(1).flatten() {
        values.put(value);
    }
    let names = table.table().partition_key.iter().map(|column| quote_identifier(&column.name));
    let names: Vec<_> = names.collect();
    let delete = format!("DELETE FROM {of} WHERE {condition}");
    let select = format!("SELECT {} FROM {of} WHERE {condition} LIMIT 1", names.join(", "));
    let (mut retry, mut attempts) = (target.retry(), 0);
    loop {
        let run = async {
            execute(target, &delete, &values, Consistency::LocalQuorum).await?;
            let level = level(table.table(), false);
            let rows = execute(target, &select, &values, level).await?;
            Ok::<bool, ClusterError>(rows.rows()?.iter().next().is_none())
        };
        match run.await {
            Ok(true) => {
                lock.done();
                return Ok(());
            }
            Ok(false) if attempts > ATTEMPTS => return Err(without_effect(table.table())),
            Ok(false) => {
                attempts += 1;
                target.pause(PAUSE * 2_u32.pow(attempts)).await?;
            }
            // A deletion that comes late would delete what is added after it.
            Err(error) => {
                let settle = may_be_run(&error, SETTLE);
                retry.after(error).await?;
                if let Some(settle) = settle {
                    target.pause(settle).await?;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_adds_the_difference_and_deletes_what_is_not_here() {
        let (some, none) = (Some, None);
        assert_eq!(step(&[some(5), none], &[some(5), none], false), Step::Nothing);
        assert_eq!(
            step(&[some(5), some(1)], &[some(7), some(1)], false),
            Step::Add(vec![some(-2), none], false)
        );
        // A counter of zero is not one that is not there.
        assert_eq!(step(&[some(0)], &[none], false), Step::Add(vec![some(0)], true));
        assert_eq!(step(&[none, none], &[some(1), none], false), Step::DeleteRow);
        assert_eq!(step(&[none, none], &[some(1), none], true), Step::DeleteColumn(0));
        assert_eq!(step(&[some(1), none], &[none, some(2)], false), Step::DeleteColumn(1));
        let wraps = step(&[some(i64::MIN)], &[some(i64::MAX)], false);
        assert_eq!(wraps, Step::Add(vec![some(1)], false));
    }
}
