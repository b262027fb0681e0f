//! Sends lists, whose elements get new ids at the target: see `source::lists`.
//!
//! The first send of a back-fill goes straight on. Whatever may be there already is compared first: if the target has the same
//! values, nothing is sent; if it has the beginning of the list, the rest is appended; otherwise the list is replaced, one
//! microsecond behind all that is there. The row is locked meanwhile (`row_locks`): two tasks that find no list would both append it.

use crate::batches::ListName;
use crate::context::Context;
use crate::error::MoveError;
use crate::present_row::read_row;
use crate::source::{ListPlace, ListState, RowName, Values, list_of_row, list_writes};
use crate::target::{Batch, SETTLE, TableTarget, Target, of_row};
use helenus_cluster::ClusterError;
use helenus_model::deletion::DeletionTime;
use helenus_model::types::{Elements, quote_identifier};
use helenus_wire::native::{Consistency, QueryParameters, Value};
use std::sync::Arc;
use tokio::sync::SemaphorePermit;

/// The present list of a row here; without elements if the row has none.
///
/// # Errors
/// Failures of reading.
pub(crate) async fn present(
    context: &Context,
    table: &Arc<TableTarget>,
    name: &ListName,
) -> Result<ListState, MoveError> {
    let (database, of, name) = (Arc::clone(context.database()), Arc::clone(table.table()), name.clone());
    let read = move || {
        let (now_s, mut found) = (database.now_s(), None);
        read_row(&database, &of, &name.row, &mut |row| found = list_of_row(row, name.column, now_s))?;
        let empty = ListState { deletion: DeletionTime::LIVE, elements: Vec::new(), newest_us: i64::MIN };
        Ok(found.unwrap_or(empty))
    };
    context.threads.run(read).await
}

/// A list at the target: its values, and their timestamps if the target tells.
struct Found {
    values: Vec<Vec<u8>>,
    times_us: Option<Vec<i64>>,
}

impl Found {
    /// Whether it has the same values, none of them older.
    fn is_all_of(&self, state: &ListState) -> bool {
        let is_same = self.values.iter().eq(state.elements.iter().map(|element| &element.value));
        let times = self.times_us.iter().flatten();
        is_same && times.zip(&state.elements).all(|(time, element)| *time >= element.timestamp_us)
    }

    /// Whether it is the beginning of the list, with the same timestamps.
    fn is_beginning_of(&self, state: &ListState) -> bool {
        let Some(times) = &self.times_us else { return false };
        let found = self.values.iter().zip(times.iter().copied());
        let wanted = state.elements.iter().map(|element| (&element.value, element.timestamp_us));
        self.values.len() < state.elements.len() && found.eq(wanted.take(self.values.len()))
    }
}

/// A list that is to be sent.
struct SentList<'l> {
    table: &'l Arc<TableTarget>,
    name: &'l ListName,
    /// What it is here.
    state: &'l ListState,
    /// Whether it may be at the target already.
    may_be_there: bool,
    /// The greatest timestamp of the changes that led to it.
    newest_us: i64,
    /// The time, seconds.
    now_s: i64,
}

/// Sends a list that was read by a back-fill.
///
/// # Errors
/// Those of `Target::send`.
pub(crate) async fn send_read(
    context: &Context,
    (table, name): (&Arc<TableTarget>, &ListName),
    state: &ListState,
    may_be_there: bool,
) -> Result<(), MoveError> {
    let mut lock = context.lock_row(table.table(), &name.row).await?;
    lock.in_flight(Some(SETTLE));
    let may_be_there = may_be_there || lock.doubt().is_some();
    let (newest_us, now_s) = (state.newest_us, context.database().now_s());
    let turn = context.target.pace.turn(0).await;
    send(&context.target, &SentList { table, name, state, may_be_there, newest_us, now_s }, turn).await?;
    lock.done();
    Ok(())
}

/// Sends a list as it is here now. `newest_us`: the greatest timestamp of the changes that led to it.
///
/// # Errors
/// Failures of reading; those of `Target::send`.
pub(crate) async fn send_present(
    context: &Context,
    (table, name): (&Arc<TableTarget>, &ListName),
    newest_us: i64,
) -> Result<(), MoveError> {
    let mut lock = context.lock_row(table.table(), &name.row).await?;
    lock.in_flight(Some(SETTLE));
    // Read with a turn: a list that was read before it waits would be old once it is sent, and those that wait would all be in memory.
    let turn = context.target.pace.turn(1).await;
    let state = present(context, table, name).await?;
    let (state, now_s) = (&state, context.database().now_s());
    send(&context.target, &SentList { table, name, state, may_be_there: true, newest_us, now_s }, turn)
        .await?;
    lock.done();
    Ok(())
}

/// `turn`: that of the first attempt. None is kept through the pauses.
async fn send<'t>(
    target: &'t Target,
    list: &SentList<'_>,
    mut turn: Option<SemaphorePermit<'t>>,
) -> Result<(), MoveError> {
    let mut retry = target.retry();
    let mut attempts = 0_i64;
    loop {
        attempts += 1;
        let attempted = attempt(target, list, attempts).await;
        drop(turn);
        match attempted {
            Ok(()) => return Ok(()),
            Err(error) => {
                let waited = retry.after(error).await;
                waited.map_err(|error| of_row(error, list.table.table(), &list.name.row))?;
                turn = target.pace.turn(0).await;
            }
        }
    }
}

async fn attempt(target: &Target, list: &SentList<'_>, attempts: i64) -> Result<(), ClusterError> {
    let SentList { table, name, .. } = *list;
    let newest_us = list.newest_us.max(list.state.newest_us);
    let mut state = list.state.clone();
    let mut floor_us = None;
    if list.may_be_there || attempts > 1 {
        let found = read(target, table, name).await?;
        if found.is_all_of(&state) {
            return Ok(());
        }
        if attempts == 1 && found.values.is_empty() {
            // As at the first time.
        } else if attempts == 1 && found.is_beginning_of(&state) {
            // What is there came from an earlier state of the same list.
            state.elements.drain(..found.values.len());
            state.deletion = DeletionTime::LIVE;
        } else {
            let there_us = found.times_us.iter().flatten().max().copied();
            let sent_us = newest_us.saturating_add(attempts - 2);
            floor_us = Some(there_us.unwrap_or(newest_us).max(sent_us));
        }
    }
    let mut batch = Batch::new(table, &name.row.key);
    let place = ListPlace { table: table.table(), name: &name.row, column: name.column };
    // A name has all its values.
    let _ = list_writes(place, &state, floor_us, list.now_s, &mut batch.writes);
    batch.count(0);
    batch.rows = 1;
    if batch.writes.is_empty() { Ok(()) } else { target.try_send(&batch).await }
}

async fn read(target: &Target, table: &TableTarget, name: &ListName) -> Result<Found, ClusterError> {
    let of = table.table();
    let column = of.column_by_id(name.column).map(|column| quote_identifier(&column.name).into_owned());
    let column = column.unwrap_or_default();
    let keys = |columns: &[helenus_model::schema::Column]| {
        columns.iter().map(|column| format!("{} = ?", quote_identifier(&column.name))).collect::<Vec<_>>()
    };
    let mut conditions = keys(&of.partition_key);
    if name.row.clustering.is_some() {
        conditions.extend(keys(&of.clustering));
    }
    let from = format!(
        "FROM {}.{} WHERE {} LIMIT 1",
        quote_identifier(&of.keyspace),
        quote_identifier(&of.name),
        conditions.join(" AND ")
    );
    let mut values = Values::default();
    let _ = RowName::put(&name.row, of, &mut values);
    let values: Vec<Value<'_>> = values_of(&values);
    // Before 5.0 there is no WRITETIME of a collection.
    let with_time = format!("SELECT {column}, WRITETIME({column}) {from}");
    let read = match run(target, &with_time, &values).await {
        Err(ClusterError::Server(error)) if !ClusterError::Server(error.clone()).may_repeat(true) => {
            run(target, &format!("SELECT {column} {from}"), &values).await?
        }
        other => other?,
    };
    Ok(read)
}

pub(crate) fn values_of(values: &Values) -> Vec<Value<'_>> {
    values
        .iter()
        .map(|value| match value {
            Ok(bytes) => Value::Bytes(bytes),
            Err(true) => Value::Unset,
            Err(false) => Value::Null,
        })
        .collect()
}

async fn run(target: &Target, text: &str, values: &[Value<'_>]) -> Result<Found, ClusterError> {
    let parameters = QueryParameters {
        consistency: Consistency::LocalQuorum,
        values: helenus_wire::native::Values::positional(values),
        ..QueryParameters::default()
    };
    let statement = target.read_statement(text).await?;
    let answer = target.cluster.execute(&statement, &parameters).await?;
    let rows = answer.rows()?;
    let mut found = Found { values: Vec::new(), times_us: None };
    for row in rows.iter() {
        let row = row?;
        let mut cells = row.cells();
        if let Some(list) = cells.next().flatten() {
            found.values = Elements::of_list(list).map(|value| value.unwrap_or_default().to_vec()).collect();
        }
        if let Some(times) = cells.next().flatten() {
            let times = Elements::of_list(times).flatten();
            let times = times.filter_map(|time| Some(i64::from_be_bytes(*time.first_chunk()?)));
            found.times_us = Some(times.collect());
        }
    }
    Ok(found)
}
