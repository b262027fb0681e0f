//! Follows the changes of a table: page after page, each acknowledged by the target before the next.
//!
//! The order of the writes of a page does not matter, because their timestamps decide. TRUNCATE has none, so it waits for all before
//! it and holds back what follows.

use crate::changes::{Page, Then, read_page};
use crate::context::{Context, begin_anew, keep_from};
use crate::counters::{self, CounterRow};
use crate::error::MoveError;
use crate::lists;
use crate::target::TableTarget;
use crate::waiting::Waiting;
use helenus_engine::changes::ChangePosition;
use helenus_model::schema::Table;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// The pause after the end of the changes was reached.
const LOOK: Duration = Duration::from_millis(200);
/// How often the position is written to disk.
const SAVE: Duration = Duration::from_secs(1);

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
        let page = context.threads.run(move || read_page(&database, &table, position)).await?;
        note_read(context, at, &page);
        let (then, next, changes) = (page.then.clone(), page.next, page.changes);
        send(context, target, page, in_doubt).await?;
        position = next;
        context.with_table(at, |table| table.changes += changes);
        match then {
            Then::More => {}
            Then::End => {
                with_waiting(context, at, Waiting::end);
                context.with_table(at, |table| table.log_losses = 0);
                context.drain.answer(at, question);
                wait(context, &mut questions).await;
            }
            Then::Truncate => context.truncate(at, target.table()).await?,
            Then::DeleteCounters(key, writes) => {
                for write in &writes {
                    counters::delete(context, target, (&key, write)).await?;
                }
            }
            Then::ReadAnew => {
                begin_anew(context, at);
                return context.save();
            }
            Then::Missed(reason) => {
                begin_anew(context, at);
                context.save()?;
                return match is_watched(context, target.table()) {
                    true => Ok(()),
                    false => Err(MoveError::Table(reason.to_owned())),
                };
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

/// Whether the same table is there and watched, although it was not for a while.
fn is_watched(context: &Context, table: &Table) -> bool {
    let schema = context.database().schema();
    schema.table(&table.keyspace, &table.name).is_some_and(|now| now.id == table.id && now.options.cdc)
}

fn with_waiting(context: &Context, at: usize, change: impl FnOnce(&mut Waiting, i64)) {
    let now_us = context.database().wall_us();
    if let Some(waiting) = context.waiting.lock().get_mut(at) {
        change(waiting, now_us);
    }
}

fn note_read(context: &Context, at: usize, page: &Page) {
    with_waiting(context, at, |waiting, now_us| match page.first_us {
        Some(first_us) => waiting.read(Some(first_us), now_us),
        None if matches!(page.then, Then::Truncate | Then::DeleteCounters(..)) => waiting.waits(now_us),
        None => {}
    });
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
            let row = CounterRow { table: &target, name: &name, in_doubt };
            counters::make_equal(&context, &row).await
        });
    }
    for batch in page.batches {
        let context = Arc::clone(context);
        requests.spawn(async move { context.target.send(&batch).await });
    }
    // Lists come after the deletions of the page, which may be of their rows.
    finish(&mut requests).await?;
    for (name, newest_us) in page.lists {
        let (context, target) = (Arc::clone(context), Arc::clone(target));
        requests.spawn(async move { lists::send_present(&context, (&target, &name), newest_us).await });
    }
    finish(&mut requests).await
}

async fn finish(requests: &mut JoinSet<Result<(), MoveError>>) -> Result<(), MoveError> {
    while let Some(ended) = requests.join_next().await {
        ended.map_err(|error| MoveError::Internal(error.to_string()))??;
    }
    Ok(())
}
