//! One run of a move: the schema, then each table's back-fill and tail, until the move stops.
//!
//! A table that cannot go on stops by itself, with its reason in the state; the others go on.

use crate::back_fill;
use crate::carry::{carry_table, follow, missing};
use crate::changes::has_same_columns;
use crate::context::{Context, begin_anew, keep_from};
use crate::definitions;
use crate::error::MoveError;
use crate::forms;
use crate::plan::once_connected;
use crate::problems::texts_for;
use crate::roles;
use crate::source::list_columns;
use crate::tail;
use crate::target::{AGREEMENT, SETTLE, TableTarget};
use helenus_cluster::ClusterError;
use helenus_cql::LocalBackend;
use helenus_cql::backend::{Backend, Identity, NoRows, Outcome, Request};
use helenus_engine::{ChangesError, Error};
use helenus_model::schema::Table;
use helenus_model::types::quote_identifier;
use helenus_wire::native::{Consistency, ErrorCode};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::task::JoinSet;

/// The pause before a table is looked at again whose nodes did not agree on a schema.
const AGAIN: Duration = Duration::from_secs(5);

/// The pause before work is tried again for which there was no thread.
const NO_THREAD: Duration = Duration::from_secs(1);

/// How often a table is begun anew because the log of its changes was removed, before it stops.
const LOG_LOSSES: u32 = 3;

/// Runs a move until it is stopped.
///
/// # Errors
/// The move is stopped; the disk failed. Troubles of single tables are in the state, others in `Context::reason`.
pub(crate) async fn run(context: Arc<Context>) -> Result<(), MoveError> {
    let late = make_schema(&context).await?;
    let tables = context.state.lock().tables.len();
    let mut follower = JoinSet::new();
    follower.spawn(follow(Arc::clone(&context)));
    let mut tasks = JoinSet::new();
    for at in 0..tables {
        tasks.spawn(table(Arc::clone(&context), at, !late.contains(&at)));
    }
    while let Some(done) = tasks.join_next().await {
        done.map_err(|error| MoveError::Internal(error.to_string()))?;
    }
    Ok(())
}

/// Makes what the target does not have, table by table, then the roles. A table that cannot be made stops alone. Returns those that are not
/// made yet, because the nodes do not agree on a schema: the others do not wait for them.
async fn make_schema(context: &Context) -> Result<BTreeSet<usize>, MoveError> {
    let (order, has_schema, tables) = {
        let state = context.state.lock();
        (state.order.clone(), state.has_schema, state.tables.len())
    };
    // A node that is not connected yet is not asked whether it agrees with the others.
    let cluster = &context.target.cluster;
    context.target.unless_stopped(async { Ok(once_connected(cluster).await) }).await?;
    let mut late = BTreeSet::new();
    for at in 0..tables {
        match make_table(context, at, late.is_empty()).await {
            Ok(()) => {}
            Err(error @ (MoveError::Stopped | MoveError::State { .. })) => return Err(error),
            Err(error) if is_disagreement(&error) => {
                note_late(context, at, &error);
                late.insert(at);
            }
            Err(error) => {
                context.with_table(at, |table| table.stopped = Some(error.to_string()));
                context.save()?;
            }
        }
        context.made.store(at + 1, Ordering::Relaxed);
    }
    if has_schema {
        return Ok(late);
    }
    if order.roles {
        match roles::send(context).await {
            Ok(()) => {}
            Err(error @ (MoveError::Stopped | MoveError::State { .. })) => return Err(error),
            // The cut sends them again, and is refused if they cannot go.
            Err(error) => *context.reason.lock() = Some(format!("roles: {error}")),
        }
    }
    // What is granted on a table that is made later would be refused now; then the roles are sent once more.
    context.state.lock().has_schema = late.is_empty();
    context.save()?;
    Ok(late)
}

/// Whether a table waits for the nodes to agree on a schema.
fn is_disagreement(error: &MoveError) -> bool {
    matches!(error, MoveError::Target(ClusterError::NoAgreement { .. }))
}

/// Tells that a table waits for that.
fn note_late(context: &Context, at: usize, error: &MoveError) {
    let name = context.with_table(at, |table| table.full_name()).unwrap_or_default();
    *context.target.last_error.lock() = Some(format!("{name}: {error}; it is tried again"));
}

/// Makes a table at the target, with its keyspace, types and indexes, unless it is there; then it is compared. What the target has lost is
/// sent anew. A table that is not there needs nodes that agree on a schema, which are waited for as long as `Context::agree_in_time` does.
/// `waits`: otherwise it is known that they do not agree.
///
/// # Errors
/// `ClusterError::NoAgreement`, which passes; the table cannot be made; the move stops; the disk failed.
async fn make_table(context: &Context, at: usize, waits: bool) -> Result<(), MoveError> {
    let found = context.with_table(at, |table| {
        (table.keyspace.clone(), table.table.clone(), table.target_id.clone(), table.position.is_some())
    });
    let (keyspace, name, known_id, has_position) = found.ok_or(MoveError::Stopped)?;
    let (schema, order) = (context.database().schema(), context.state.lock().order.clone());
    let (Some(of_keyspace), Some(table)) = (schema.keyspaces.get(&*keyspace), schema.table(&keyspace, &name))
    else {
        return Ok(());
    };
    let names = [(keyspace.clone(), name.clone())];
    {
        let mut alone = context.defining.lock().await;
        let mut wanted = missing(context, (&schema, &names), &order).await?;
        if wanted.present.is_empty() || !wanted.problems.is_empty() {
            if !waits {
                return Err(ClusterError::NoAgreement { after: AGREEMENT }.into());
            }
            // A node that is behind with the schema must not be taken for a target that has lost the table, never had it, or has another.
            drop(alone);
            context.agree_in_time().await?;
            alone = context.defining.lock().await;
            wanted = missing(context, (&schema, &names), &order).await?;
        }
        let _alone = alone;
        let is_there = !wanted.present.is_empty();
        // Before it is made: a crash in between would leave it without its rows.
        if !is_there && has_position {
            begin_anew(context, at);
            context.save()?;
        }
        if is_there && known_id.is_none() && has_rows(context, &names).await? {
            // An aborted move may have sent them: its lists are there, its requests may be under way, and deletions since were missed.
            context.with_table(at, |table| (table.had_rows, table.gaps) = (true, table.gaps + 1));
            context.repeat();
            context.target.doubt(Some(SETTLE));
        }
        let had_rows = context.with_table(at, |table| table.had_rows).ok_or(MoveError::Stopped)?;
        let drops_columns = is_there && !has_position && !had_rows;
        let mut refused = None;
        loop {
            let problems = texts_for(&wanted.problems, [&**table].into_iter());
            if !problems.is_empty() {
                return Err(MoveError::Table(problems.join("; ")));
            }
            if drops_columns {
                wanted.to_run.append(&mut wanted.drops);
            }
            match run_all(context, &wanted.to_run).await {
                Err(MoveError::Table(reason)) if refused.is_none() => {
                    // A statement whose answer was lost is refused when it is repeated, although it is done: then it is not wanted any more.
                    refused = Some(reason);
                    context.agree_in_time().await?;
                    wanted = missing(context, (&schema, &names), &order).await?;
                }
                Err(error) => return Err(error),
                Ok(()) => break,
            }
        }
        let mut of_target = definition(context, &keyspace, &name).await?;
        let id_of = |of: &Option<definitions::TargetTable>| of.as_ref().map(|table| table.id.clone());
        if of_target.is_none() || (is_there && known_id.is_some() && id_of(&of_target) != known_id) {
            // Perhaps another node was asked, which is behind with the schema.
            context.agree_in_time().await?;
            of_target = definition(context, &keyspace, &name).await?;
        }
        let id = id_of(&of_target);
        // What no node tells is not compared.
        let is_another = id.is_some() && known_id != id;
        if is_there && has_position && known_id.is_some() && is_another {
            // It was dropped there and made again.
            begin_anew(context, at);
        }
        context.with_table(at, |state| {
            state.had_rows &= is_there;
            if !is_there || is_another {
                // What another table had taken.
                state.defined.clear();
            }
            if let Some(of_target) = of_target.filter(|_| !is_there) {
                state.defined = definitions::made(of_keyspace, table, &of_target);
            }
            if id.is_some() || !is_there {
                state.target_id = id;
            }
        });
        context.save()?;
    }
    let mut retry = context.target.retry();
    loop {
        match context.target.unless_stopped(carry_table(context, at)).await {
            // `follow` goes on with it.
            Err(error) if is_disagreement(&error) => return Ok(()),
            carried => {
                if retry.answer(carried).await?.is_some() {
                    return Ok(());
                }
            }
        }
    }
}

/// The definition of a table at the target, if the node that is asked has it.
async fn definition(
    context: &Context,
    keyspace: &str,
    name: &str,
) -> Result<Option<definitions::TargetTable>, MoveError> {
    let (target, mut retry) = (&context.target, context.target.retry_of_reads());
    loop {
        let asked = async { Ok(definitions::there(&target.cluster, (keyspace, Some(name))).await?) };
        let there = target.unless_stopped(asked).await;
        if let Some(mut there) = retry.answer(there).await? {
            return Ok(there.remove(name));
        }
    }
}

/// Runs the statements that make a table.
///
/// # Errors
/// `MoveError::Table` if the target refuses one; the move stops.
async fn run_all(context: &Context, statements: &[String]) -> Result<(), MoveError> {
    for statement in statements {
        match context.target.run(statement, Consistency::LocalQuorum).await {
            // If they do not agree in time, the table is looked at once more.
            Ok(()) => context.agree_in_time().await?,
            Err(MoveError::Target(error)) if is_index(statement) && error.server().is_some() => {
                // The table goes without it, which is told as a difference.
                *context.target.last_error.lock() = Some(refusal(&error, statement));
            }
            Err(MoveError::Target(error)) => return Err(MoveError::Table(refusal(&error, statement))),
            Err(other) => return Err(other),
        }
    }
    Ok(())
}

fn is_index(statement: &str) -> bool {
    statement.starts_with("CREATE INDEX") || statement.starts_with("CREATE CUSTOM INDEX")
}

/// Whether a table at the target has rows.
async fn has_rows(context: &Context, names: &[(String, String)]) -> Result<bool, MoveError> {
    let Some((keyspace, table)) = names.first() else { return Ok(false) };
    let text = format!("SELECT * FROM {}.{} LIMIT 1", quote_identifier(keyspace), quote_identifier(table));
    let mut retry = context.target.retry_of_reads();
    loop {
        let answer = context.target.cluster.query(&text, &[], Consistency::LocalQuorum).await;
        let has_rows = match answer.and_then(|answer| Ok(answer.rows()?.iter().next().is_some())) {
            // A node gives up at so many tombstones (`tombstone_failure_threshold`), and does so at each attempt.
            Err(ClusterError::Server(error)) if error.detail.code() == ErrorCode::ReadFailure => Ok(true),
            other => other,
        };
        if let Some(has_rows) = retry.answer(has_rows.map_err(MoveError::from)).await? {
            return Ok(has_rows);
        }
    }
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
/// `is_made`: the target has it.
async fn table(context: Arc<Context>, at: usize, mut is_made: bool) {
    loop {
        let is_stopped = context.with_table(at, |table| table.stopped.is_some()).unwrap_or(true);
        if is_stopped || context.target.is_stopped() {
            return;
        }
        match pass(&context, at, &mut is_made).await {
            Ok(()) => {}
            Err(error) => {
                if !goes_on(&context, at, error).await {
                    return;
                }
            }
        }
    }
}

/// Whether a table that could not be followed is tried again. If not, its state has the reason, unless the move stops.
async fn goes_on(context: &Context, at: usize, error: MoveError) -> bool {
    match error {
        MoveError::Stopped => false,
        MoveError::Source(Error::Changes(ChangesError::Gone { .. })) => {
            // The log went before it was sent: the rows are read anew.
            begin_anew(context, at);
            let reason = lost_log(context, at);
            let is_stopped = reason.is_some();
            context.with_table(at, |table| table.stopped = reason);
            let _ = context.save();
            !is_stopped
        }
        error if is_disagreement(&error) => {
            note_late(context, at, &error);
            context.target.pause(AGAIN).await.is_ok()
        }
        MoveError::NoThread => {
            // Requests under way were left.
            context.target.doubt(Some(SETTLE));
            context.repeat();
            context.target.pause(NO_THREAD).await.is_ok()
        }
        error => {
            if matches!(error, MoveError::Counter { .. }) {
                begin_anew(context, at);
            }
            context.with_table(at, |table| table.stopped = Some(error.to_string()));
            let _ = context.save();
            false
        }
    }
}

/// Counts that the log of a table's changes was removed before they were sent. Returns the reason why the table stops, if that has happened
/// again and again and its tail was never at the end of the changes in between: another time would end like the ones before.
fn lost_log(context: &Context, at: usize) -> Option<String> {
    let losses = context.with_table(at, |table| {
        table.log_losses += 1;
        table.log_losses
    })?;
    if losses < LOG_LOSSES {
        return None;
    }
    let kept = context.database().changes().kept_limits();
    Some(format!(
        "{losses} times one after the other, sending its rows took longer than its changes are kept in the log here. Keep more of the log: \
         cdc_total_space, now {} MiB, and cdc_retention, now {} s, in the configuration of this server, which is read at its start; then helenus \
         move resume sends the table once more. Or send faster: helenus move resume with a greater --ranges, --rows-per-second or --target-p99",
        kept.bytes >> 20,
        kept.age_s
    ))
}

/// The back-fill of a table, unless it is done, and its tail. Returns when the rows are to be read anew.
async fn pass(context: &Arc<Context>, at: usize, is_made: &mut bool) -> Result<(), MoveError> {
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
        context.with_table(at, |state| {
            state.id = table.id.0.to_string();
            state.defined.clear();
            // That of the table before.
            state.sets_cdc = false;
        });
        begin_anew(context, at);
        context.save()?;
        *is_made = false;
    }
    if !*is_made {
        make_table(context, at, true).await?;
        *is_made = true;
    }
    let table = watch(context, at, table)?;
    let target = TableTarget::new(&table, &as_there(context, &table).await?);
    clear(context, at, &table).await?;
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

/// The table with the form that it has at the target.
async fn as_there(context: &Context, table: &Arc<Table>) -> Result<Arc<Table>, MoveError> {
    let (target, mut retry) = (&context.target, context.target.retry_of_reads());
    loop {
        let asked = async { Ok(forms::as_there(&target.cluster, table).await?) };
        if let Some(found) = retry.answer(target.unless_stopped(asked).await).await? {
            return Ok(found);
        }
    }
}

/// Before a table is sent anew, because changes were missed: a deletion or a TRUNCATE may have been among them, and rows that are not here
/// any more cannot be told. So all that the move has sent goes. Rows that the target had before the move stay, and a cut asks for a comparison.
async fn clear(context: &Context, at: usize, table: &Table) -> Result<(), MoveError> {
    if context.with_table(at, |state| state.truncates).unwrap_or(false) {
        // One of the run before, which would take away what is sent now.
        context.target.settle().await?;
        context.with_table(at, |state| state.truncates = false);
    }
    let found = context.with_table(at, |state| (state.is_anew, state.had_rows)).ok_or(MoveError::Stopped)?;
    match found {
        // Additions and elements of lists of the former run that are under way are waited for: both would be there twice.
        (false, _) if context.is_repeated() && (table.is_counter() || has_lists(table)) => {
            return context.target.settle().await;
        }
        (false, _) => return Ok(()),
        // Counters are added up, so nobody else may have written any there.
        (true, had_rows) if table.is_counter() || !had_rows => context.truncate(at, table).await?,
        (true, _) => {}
    }
    context.with_table(at, |state| state.is_anew = false);
    context.save()
}

fn has_lists(table: &Table) -> bool {
    [false, true].into_iter().any(|is_static| list_columns(table, is_static).next().is_some())
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
    // Saved before it is so: a crash between the two leaves nothing on for ever.
    context.with_table(at, |state| state.sets_cdc = true);
    context.save()?;
    set_cdc(&context.backend, &table, true)?;
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

#[cfg(test)]
mod tests;
