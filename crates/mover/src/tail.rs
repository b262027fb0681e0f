//! Follows the changes of a table: page after page, each acknowledged by the target before the next.
//!
//! The order of the writes of a page does not matter, because their timestamps decide. TRUNCATE has none, so it waits for all before
//! it and holds back what follows.

use crate::changes::{Page, Then, read_page};
use crate::context::{Context, begin_anew, keep_from};
use crate::counters::{self, CounterRow};
use crate::error::MoveError;
use crate::lists::{self, SentList};
use crate::target::TableTarget;
use helenus_engine::changes::ChangePosition;
use helenus_model::types::quote_identifier;
use helenus_wire::native::Consistency;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// The pause after the end of the changes was reached.
const LOOK: Duration = Duration::from_millis(200);
/// How often the position is written to disk.
const SAVE: Duration = Duration::from_secs(1);
/// Microseconds of a second.
const US: f64 = 1e6;

/// Follows a table. Returns when its rows are to be read anew.
///
/// # Errors
/// The table cannot be followed; the move stops.
pub(crate) async fn run(
    context: &Arc<Context>,
    at: usize,
    target: &Arc<TableTarget>,
) -> Result<(), MoveError> {
    let text = context.with_table(at, |table| table.position.clone()).flatten().unwrap_or_default();
    let host_id = context.database().host_id();
    let mut position = ChangePosition::parse(&text, host_id).map_err(helenus_engine::Error::from)?;
    let mut saved = (position, tokio::time::Instant::now());
    // An earlier run may have sent any change up to here.
    let sent_up_to = if context.is_repeated() { Some(context.database().changes().now()?) } else { None };
    let mut questions = context.drain.questions();
    loop {
        if context.target.is_stopped() {
            save(context, (at, target), position)?;
            return Err(MoveError::Stopped);
        }
        let question = *questions.borrow_and_update();
        let in_doubt = sent_up_to.is_some_and(|up_to| position <= up_to);
        let (database, table) = (Arc::clone(context.database()), Arc::clone(target));
        let read = tokio::task::spawn_blocking(move || read_page(&database, &table, position));
        let page = read.await.map_err(|error| MoveError::Internal(error.to_string()))??;
        note_lag(context, at, &page);
        let (then, next, changes) = (page.then.clone(), page.next, page.changes);
        send(context, target, page, in_doubt).await?;
        position = next;
        context.with_table(at, |table| table.changes += changes);
        match then {
            Then::More => {}
            Then::End => {
                note(context, at, 0.0);
                context.drain.answer(at, question);
                wait(context, &mut questions).await;
            }
            Then::Truncate => truncate(context, target).await?,
            Then::DeleteCounters(writes) => {
                for write in &writes {
                    counters::delete(context, target, write).await?;
                }
            }
            Then::ReadAnew => {
                begin_anew(context, at);
                return context.save();
            }
            Then::Stop(reason) => {
                // The position is behind the change: a resumed move goes on there, with the table as it is then.
                save(context, (at, target), position)?;
                return Err(MoveError::Table(reason));
            }
        }
        if position != saved.0 && saved.1.elapsed() >= SAVE {
            save(context, (at, target), position)?;
            saved = (position, tokio::time::Instant::now());
        }
    }
}

fn note(context: &Context, at: usize, lag_s: f64) {
    if let Some(lag) = context.lags.lock().get_mut(at) {
        *lag = Some(lag_s);
    }
}

/// The age of the first change that is not sent. A client's timestamp may be any, so it is held within the known.
fn note_lag(context: &Context, at: usize, page: &Page) {
    if let Some(first_us) = page.first_us {
        let age_us = context.database().wall_us().saturating_sub(first_us).max(0);
        note(context, at, age_us as f64 / US);
    }
}

async fn wait(context: &Context, questions: &mut watch::Receiver<u64>) {
    let mut stop = context.target.stop.clone();
    tokio::select! {
        _ = questions.changed() => {}
        () = tokio::time::sleep(LOOK) => {}
        _ = stop.wait_for(|stop| *stop) => {}
    }
}

fn save(
    context: &Context,
    (at, target): (usize, &Arc<TableTarget>),
    position: ChangePosition,
) -> Result<(), MoveError> {
    let text = position.text(context.database().host_id());
    context.with_table(at, |table| table.position = Some(text));
    context.save()?;
    keep_from(context, target.table(), position)
}

/// Sends a page, and waits until the target has acknowledged all of it.
async fn send(
    context: &Arc<Context>,
    target: &Arc<TableTarget>,
    page: Page,
    in_doubt: bool,
) -> Result<(), MoveError> {
    let mut requests = JoinSet::new();
    for name in page.counters {
        let (context, target) = (Arc::clone(context), Arc::clone(target));
        requests.spawn(async move {
            let turn = context.target.pace.turn(1).await;
            let row = CounterRow { table: &target, name: &name, in_doubt };
            let done = counters::make_equal(&context, &row).await;
            drop(turn);
            done
        });
    }
    for batch in page.batches {
        let context = Arc::clone(context);
        requests.spawn(async move {
            let turn = context.target.pace.turn(batch.rows).await;
            let done = context.target.send(&batch).await;
            drop(turn);
            done
        });
    }
    // Lists come after the deletions of the page, which may be of their rows.
    finish(&mut requests).await?;
    for (name, newest_us) in page.lists {
        let (context, target) = (Arc::clone(context), Arc::clone(target));
        requests.spawn(async move {
            let turn = context.target.pace.turn(1).await;
            let (database, table, of) = (Arc::clone(context.database()), Arc::clone(&target), name.clone());
            let present = tokio::task::spawn_blocking(move || lists::present(&database, &table, &of));
            let state = present.await.map_err(|error| MoveError::Internal(error.to_string()))??;
            let now_s = context.database().now_s();
            let (table, name, state) = (&target, &name, &state);
            let list = SentList { table, name, state, may_be_there: true, newest_us, now_s };
            let done = lists::send(&context.target, &list).await;
            drop(turn);
            done
        });
    }
    finish(&mut requests).await
}

async fn finish(requests: &mut JoinSet<Result<(), MoveError>>) -> Result<(), MoveError> {
    while let Some(ended) = requests.join_next().await {
        ended.map_err(|error| MoveError::Internal(error.to_string()))??;
    }
    Ok(())
}

/// Truncates the table there.
///
/// # Errors
/// As `Target::run`.
pub(crate) async fn truncate(context: &Context, target: &TableTarget) -> Result<(), MoveError> {
    let table = target.table();
    let text = format!("TRUNCATE {}.{}", quote_identifier(&table.keyspace), quote_identifier(&table.name));
    context.target.run(&text, Consistency::All).await
}
