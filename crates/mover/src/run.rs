//! One run of a move: the schema, then each table's back-fill and tail, until the move stops.
//!
//! A table that cannot go on stops by itself, with its reason in the state; the others go on.

use crate::back_fill;
use crate::changes::has_same_columns;
use crate::context::{Context, begin_anew, keep_from};
use crate::counters;
use crate::error::MoveError;
use crate::roles;
use crate::schema;
use crate::tail;
use crate::target::TableTarget;
use helenus_cluster::ClusterError;
use helenus_cql::LocalBackend;
use helenus_cql::backend::{Backend, Identity, NoRows, Outcome, Request};
use helenus_engine::{ChangesError, Error};
use helenus_model::schema::Table;
use helenus_wire::native::{Consistency, ErrorCode};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// How long the nodes may take to agree on a schema.
const AGREEMENT: Duration = Duration::from_secs(60);

/// Runs a move until it is stopped.
///
/// # Errors
/// The schema cannot be made at the target. Troubles of single tables are in the state.
pub(crate) async fn run(context: Arc<Context>) -> Result<(), MoveError> {
    make_schema(&context).await?;
    let tables = context.state.lock().tables.len();
    let mut tasks = JoinSet::new();
    for at in 0..tables {
        tasks.spawn(table(Arc::clone(&context), at));
    }
    while let Some(done) = tasks.join_next().await {
        done.map_err(|error| MoveError::Internal(error.to_string()))?;
    }
    Ok(())
}

async fn make_schema(context: &Context) -> Result<(), MoveError> {
    let (order, has_schema, names) = {
        let state = context.state.lock();
        let names: Vec<_> =
            state.tables.iter().map(|table| (table.keyspace.clone(), table.table.clone())).collect();
        (state.order.clone(), state.has_schema, names)
    };
    if has_schema {
        return Ok(());
    }
    let present = context.database().schema();
    let wanted = schema::statements(&context.target.cluster, (&present, &names), &order).await?;
    for statement in &wanted.to_run {
        let done = context.target.run(statement, Consistency::LocalQuorum).await;
        done.map_err(|error| match error {
            MoveError::Target(error) => MoveError::Refused(vec![refusal(&error, statement)]),
            other => other,
        })?;
        context.target.cluster.wait_for_agreement(AGREEMENT).await?;
    }
    if order.roles {
        roles::send(context).await?;
    }
    context.state.lock().has_schema = true;
    context.save()
}

/// Why a statement was refused, and what to do.
fn refusal(error: &ClusterError, statement: &str) -> String {
    let what_to_do = match error.server().map(|error| error.detail.code()) {
        Some(ErrorCode::Unauthorized) => "GRANT it there, then helenus move resume",
        _ => "once the reason is gone, helenus move resume goes on",
    };
    format!("{error}; in {}. {what_to_do}", statement.lines().next().unwrap_or_default())
}

/// Follows a table until the move stops or the table cannot go on.
async fn table(context: Arc<Context>, at: usize) {
    loop {
        let is_stopped = context.with_table(at, |table| table.stopped.is_some()).unwrap_or(true);
        if is_stopped || context.target.is_stopped() {
            return;
        }
        match pass(&context, at).await {
            Ok(()) => {}
            Err(MoveError::Stopped) => return,
            Err(MoveError::Source(Error::Changes(ChangesError::Gone { .. }))) => {
                // The log went before it was sent: the rows are read anew.
                begin_anew(&context, at);
            }
            Err(error) => {
                if matches!(error, MoveError::Counter { .. }) {
                    begin_anew(&context, at);
                }
                context.with_table(at, |table| table.stopped = Some(error.to_string()));
                let _ = context.save();
                return;
            }
        }
    }
}

/// The back-fill of a table, unless it is done, and its tail. Returns when the rows are to be read anew.
async fn pass(context: &Arc<Context>, at: usize) -> Result<(), MoveError> {
    let (keyspace, name, id) = context
        .with_table(at, |table| (table.keyspace.clone(), table.table.clone(), table.id.clone()))
        .ok_or(MoveError::Stopped)?;
    let gone = || {
        MoveError::Table(format!(
            "{keyspace}.{name} is not there any more; helenus move resume leaves it out"
        ))
    };
    let table = context.database().schema().table(&keyspace, &name).cloned().ok_or_else(gone)?;
    if table.id.0.to_string() != id {
        context.with_table(at, |state| state.id = table.id.0.to_string());
        begin_anew(context, at);
    }
    let table = watch(context, at, table)?;
    let target = TableTarget::new(&table);
    if table.is_counter() && context.is_repeated() {
        counters_again(context, at, &target).await?;
    }
    if context.with_table(at, |state| state.position.is_none()).unwrap_or(false) {
        let database = context.database();
        let now = database.changes().now()?;
        keep_from(context, &table, now)?;
        context.with_table(at, |state| state.position = Some(now.text(database.host_id())));
        context.save()?;
    }
    back_fill::run(context, at, &target).await?;
    tail::run(context, at, &target).await?;
    Ok(())
}

/// Before counters are sent once more: additions of the former run that are under way are waited for. If changes were missed,
/// rows that are not here any more cannot be told, so all of them go.
async fn counters_again(context: &Context, at: usize, target: &TableTarget) -> Result<(), MoveError> {
    counters::pause(context, counters::SETTLE).await?;
    if context.with_table(at, |state| state.is_anew).unwrap_or(false) {
        tail::truncate(context, target).await?;
        context.with_table(at, |state| state.is_anew = false);
        context.save()?;
    }
    Ok(())
}

/// Sets `cdc` of a table if it is not set. Returns the table as it is then.
fn watch(context: &Context, at: usize, table: Arc<Table>) -> Result<Arc<Table>, MoveError> {
    if table.options.cdc {
        return Ok(table);
    }
    if context.with_table(at, |state| state.position.is_some()).unwrap_or(false) {
        // Changes while it was not watched are not in the log.
        begin_anew(context, at);
    }
    set_cdc(&context.backend, &table, true)?;
    context.with_table(at, |state| state.sets_cdc = true);
    context.save()?;
    let now = context.database().schema().table(&table.keyspace, &table.name).cloned();
    let gone = || MoveError::Table(format!("{}.{} was dropped", table.keyspace, table.name));
    let now = now.ok_or_else(gone)?;
    match has_same_columns(&now, &table) {
        true => Ok(now),
        false => Err(gone()),
    }
}

/// Sets or unsets `cdc` of a table.
///
/// # Errors
/// The statement failed.
pub(crate) fn set_cdc(backend: &LocalBackend, table: &Table, cdc: bool) -> Result<(), MoveError> {
    let quote = helenus_model::types::quote_identifier;
    let text = format!("ALTER TABLE {}.{} WITH cdc = {cdc}", quote(&table.keyspace), quote(&table.name));
    let identity = Identity::server();
    let answer = backend.query(&text, &Request::plain(&identity, &[]), &mut NoRows);
    let failed = |error: &dyn std::fmt::Display| MoveError::Table(format!("{text}: {error}"));
    match answer.map_err(|error| failed(&error))?.outcome {
        Outcome::SchemaChanged(_, ticket) | Outcome::Done(ticket) => {
            ticket.wait().map_err(|error| failed(&error))
        }
        _ => Ok(()),
    }
}
