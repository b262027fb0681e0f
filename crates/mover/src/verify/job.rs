//! Compares one table, several ranges of tokens at once.

use super::confirm::confirm;
use super::control::Verification;
use crate::context::Context;
use crate::error::MoveError;
use crate::forms;
use crate::remote::{Merge, Remote, RemoteTable, TokenRange, Tolerance, compare};
use crate::rollback::way_back;
use crate::source::RowName;
use crate::target::{TableTarget, unless_stopped};
use helenus_model::schema::Table;
use helenus_wire::native::Consistency;
use std::sync::Arc;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

/// Seconds by which an expiry may differ, beside the difference of the clocks: a TTL is rounded down when it is sent, and counts from
/// the arrival of the request.
const SLACK_S: i64 = 5;
/// Rows that are looked at again at once.
const SUSPECTS: usize = 1024;
/// Rows between two updates of the report.
const STEP: u64 = 1024;

/// A table under comparison.
pub(super) struct Job {
    pub(super) context: Arc<Context>,
    pub(super) verification: Arc<Verification>,
    pub(super) remote: Arc<Remote>,
    pub(super) table: Arc<RemoteTable>,
    pub(super) target: Arc<TableTarget>,
    /// Its place in the move, and in the report.
    pub(super) at: usize,
    pub(super) place: usize,
    pub(super) repairs: bool,
    pub(super) slack_s: i64,
    pub(super) stopped: watch::Receiver<bool>,
}

impl Job {
    pub(super) fn of(&self) -> &Arc<Table> {
        self.table.texts.table()
    }

    pub(super) fn tolerance(&self) -> Tolerance {
        Tolerance { now_s: self.context.database().now_s(), slack_s: self.slack_s }
    }

    pub(super) fn is_stopped(&self) -> bool {
        *self.stopped.borrow() || self.context.target.is_stopped()
    }
}

/// Compares a table.
///
/// # Errors
/// A side cannot be read; the verification was stopped.
pub(super) async fn table(
    context: &Arc<Context>,
    verification: &Arc<Verification>,
    (at, place): (usize, usize),
    (repairs, stopped): (bool, &watch::Receiver<bool>),
) -> Result<(), MoveError> {
    let found = context.with_table(at, |table| (table.keyspace.clone(), table.table.clone(), table.ranges));
    let (keyspace, name, ranges) = found.ok_or(MoveError::Stopped)?;
    let table = context.database().schema().table(&keyspace, &name).cloned();
    let table = table.ok_or_else(|| MoveError::Table(format!("{keyspace}.{name} is not there any more")))?;
    let cluster = &context.target.cluster;
    let form = async { Ok(forms::as_there(cluster, &table).await?) };
    let as_there = unless_stopped(stopped.clone(), form).await?;
    let of_remote = RemoteTable::new(&table, &as_there, cluster);
    let without_times = of_remote.texts.without_times();
    if !without_times.is_empty() {
        let note = format!(
            "the target's version does not tell timestamps and TTLs of elements: only the values are compared of {}",
            without_times.join(", ")
        );
        verification.with(place, |table| table.note = Some(note));
    }
    let way = way_back(&context.backend, cluster, &table);
    if let Err(reason) = unless_stopped(stopped.clone(), way).await? {
        verification.with(place, |table| table.no_way_back = Some(reason));
    }
    let clock = async { Ok(crate::plan::clock(cluster, context.database()).await?) };
    let clock_ms = unless_stopped(stopped.clone(), clock).await?.0;
    let database = context.database();
    let job = Arc::new(Job {
        context: Arc::clone(context),
        verification: Arc::clone(verification),
        remote: Arc::new(Remote::new(cluster, database, Consistency::LocalQuorum, stopped.clone())),
        table: Arc::new(of_remote),
        target: TableTarget::new(&table, &as_there),
        at,
        place,
        repairs,
        slack_s: SLACK_S + clock_ms.abs() / 1000,
        stopped: stopped.clone(),
    });
    let turns = Arc::new(Semaphore::new(context.state.lock().order.ranges_at_once.max(1)));
    let mut tasks = JoinSet::new();
    for number in 0..ranges {
        let (job, turns) = (Arc::clone(&job), Arc::clone(&turns));
        tasks.spawn(async move {
            let _turn = turns.acquire().await.map_err(|_| MoveError::Stopped)?;
            range(&job, TokenRange::of(number, ranges)).await
        });
    }
    let mut done = Ok(());
    while let Some(ended) = tasks.join_next().await {
        done = ended.map_err(|error| MoveError::Internal(error.to_string())).flatten();
        if done.is_err() {
            // The first failure ends the others. They have ended before the verification has: none of them repairs any more.
            tasks.shutdown().await;
        }
    }
    done
}

async fn range(job: &Arc<Job>, range: TokenRange) -> Result<(), MoveError> {
    let of_here = (job.context.database(), &*job.context.threads);
    let mut merge = Merge::of_range(of_here, &job.remote, &job.table, range)?;
    let mut suspects: Vec<RowName> = Vec::new();
    let (mut rows, mut cells) = (0, 0);
    while let Some((here, there)) = merge.next().await? {
        if job.is_stopped() {
            return Err(MoveError::Stopped);
        }
        let count =
            |row: &Option<crate::remote::SeenRow>| row.as_ref().map_or(0, |row| row.cells.len() as u64);
        rows += 1;
        cells += count(&here).max(count(&there));
        if rows >= STEP {
            job.verification.with(job.place, |table| {
                (table.rows, table.cells) = (table.rows + rows, table.cells + cells);
            });
            (rows, cells) = (0, 0);
        }
        if compare(job.of(), here.as_ref(), there.as_ref(), job.tolerance()).is_some() {
            suspects.extend(here.or(there).map(|row| row.name()));
        }
        if suspects.len() >= SUSPECTS {
            confirm(job, std::mem::take(&mut suspects)).await?;
        }
    }
    confirm(job, suspects).await?;
    job.verification.with(job.place, |table| {
        (table.rows, table.cells) = (table.rows + rows, table.cells + cells);
        table.ranges_done += 1;
    });
    Ok(())
}
