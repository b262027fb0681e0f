//! Looks again at rows that seemed to differ: a difference counts if the row differs once the tail is past the moment, and was not changed
//! here meanwhile.

use super::job::Job;
use super::repair::repair;
use crate::error::MoveError;
use crate::remote::{Difference, SeenRow, compare, difference_words, key_words, read_local};
use crate::source::RowName;
use crate::target::unless_stopped;
use helenus_engine::changes::ChangePosition;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// Looks at one row, before it counts as one that is changed all the time.
const ROUNDS: usize = 6;
/// Rows that are read at a time.
const AT_ONCE: usize = 32;
/// The pause between two looks at the tail's position, and at a row that may just expire.
const LOOK: Duration = Duration::from_millis(50);
const PAUSE: Duration = Duration::from_secs(1);
/// How long the tail may take to get past a moment.
const TAIL: Duration = Duration::from_secs(120);
/// Differences that are kept in words, of each table.
const SHOWN: usize = 100;

/// Both sides of a row.
struct Seen {
    name: RowName,
    here: Option<SeenRow>,
    there: Option<SeenRow>,
}

/// Reports those rows that differ indeed, and repairs them if it is asked to.
///
/// # Errors
/// A side cannot be read; the tail does not catch up; the verification was stopped.
pub(super) async fn confirm(job: &Arc<Job>, mut suspects: Vec<RowName>) -> Result<(), MoveError> {
    let mut differing = Vec::new();
    for round in 0..ROUNDS {
        if suspects.is_empty() {
            break;
        }
        if round > 0 {
            tokio::time::sleep(PAUSE).await;
        }
        let before = digests(job, &suspects).await?;
        wait_for_tail(job).await?;
        let mut again = Vec::new();
        for (names, before) in suspects.chunks(AT_ONCE).zip(before.chunks(AT_ONCE)) {
            for (seen, before) in both(job, names).await?.into_iter().zip(before) {
                let tolerance = job.tolerance();
                let difference = compare(job.of(), seen.here.as_ref(), seen.there.as_ref(), tolerance);
                let is_changed = seen.here.as_ref().map(SeenRow::digest) != *before;
                match difference {
                    None => {}
                    _ if is_changed => again.push(seen.name),
                    // A marker that has just expired here lives there for a moment more.
                    Some(Difference::OnlyThere) if round + 1 < ROUNDS && has_no_cells(&seen) => {
                        again.push(seen.name);
                    }
                    Some(difference) => {
                        let words = difference_words(job.of(), &difference, tolerance);
                        let words = format!("{}: {words}", key_words(job.of(), &seen.name));
                        job.verification.with(job.place, |table| {
                            table.differing += 1;
                            if table.differences.len() < SHOWN {
                                table.differences.push(words);
                            }
                        });
                        differing.push(seen.name);
                    }
                }
            }
        }
        suspects = again;
    }
    let unsettled = suspects.len() as u64;
    job.verification.with(job.place, |table| table.unsettled += unsettled);
    if job.repairs && !differing.is_empty() { mend(job, &differing).await } else { Ok(()) }
}

fn has_no_cells(seen: &Seen) -> bool {
    seen.there.as_ref().is_some_and(|row| row.cells.is_empty())
}

/// Sends the rows again, and looks what has become of them.
async fn mend(job: &Arc<Job>, names: &[RowName]) -> Result<(), MoveError> {
    for names in names.chunk_by(|one, next| one.key == next.key) {
        // A counter waits for all replicas, and a node that is down may never come.
        unless_stopped(job.stopped.clone(), repair(job, names)).await?;
    }
    for names in names.chunks(AT_ONCE) {
        for seen in both(job, names).await? {
            let tolerance = job.tolerance();
            let left = compare(job.of(), seen.here.as_ref(), seen.there.as_ref(), tolerance);
            let words = left.map(|difference| {
                let words = difference_words(job.of(), &difference, tolerance);
                format!("{}: {words}", key_words(job.of(), &seen.name))
            });
            job.verification.with(job.place, |table| match words {
                None => table.repaired += 1,
                Some(words) => {
                    table.not_repaired += 1;
                    if table.left.len() < SHOWN {
                        table.left.push(words);
                    }
                }
            });
        }
    }
    Ok(())
}

async fn digests(job: &Arc<Job>, names: &[RowName]) -> Result<Vec<Option<u64>>, MoveError> {
    let (of_read, names) = (Arc::clone(job), names.to_vec());
    let read = job.context.threads.run(move || {
        let digest = |name: &RowName| {
            let row = read_local(of_read.context.database(), of_read.of(), name)?;
            Ok(row.as_ref().map(SeenRow::digest))
        };
        names.iter().map(digest).collect()
    });
    read.await
}

/// Reads rows: there, and then here, so that a change between the two is seen.
async fn both(job: &Arc<Job>, names: &[RowName]) -> Result<Vec<Seen>, MoveError> {
    let mut reads = JoinSet::new();
    for (at, name) in names.iter().cloned().enumerate() {
        let job = Arc::clone(job);
        reads.spawn(async move { (at, job.remote.read_row(&job.table, &name).await) });
    }
    let mut there: Vec<Option<SeenRow>> = vec![None; names.len()];
    while let Some(read) = reads.join_next().await {
        let (at, row) = read.map_err(|error| MoveError::Internal(error.to_string()))?;
        if let Some(place) = there.get_mut(at) {
            *place = row?;
        }
    }
    let (of_read, names) = (Arc::clone(job), names.to_vec());
    let read = job.context.threads.run(move || {
        let seen = |(name, there): (RowName, Option<SeenRow>)| {
            let here = read_local(of_read.context.database(), of_read.of(), &name)?;
            Ok(Seen { name, here, there })
        };
        names.into_iter().zip(there).map(seen).collect()
    });
    read.await
}

/// Waits until the tail has sent all changes that are made by now.
async fn wait_for_tail(job: &Job) -> Result<(), MoveError> {
    let database = job.context.database();
    let now = database.changes().now()?;
    let until = tokio::time::Instant::now() + TAIL;
    loop {
        let found = job.context.with_table(job.at, |table| (table.position.clone(), table.stopped.clone()));
        let (position, stopped) = found.ok_or(MoveError::Stopped)?;
        if let Some(reason) = stopped {
            return Err(MoveError::Table(format!("its move has stopped: {reason}")));
        }
        let position = position.map(|text| ChangePosition::parse(&text, database.host_id()));
        let position = position.transpose().map_err(helenus_engine::Error::from)?;
        if position.is_some_and(|position| position >= now) {
            return Ok(());
        }
        if job.is_stopped() {
            return Err(MoveError::Stopped);
        }
        if tokio::time::Instant::now() >= until {
            return Err(MoveError::Table(format!(
                "the changes of the last {} s are not sent yet, so rows that differ cannot be told from rows that change; \
                 helenus move status shows the lag, verify again when it is small",
                TAIL.as_secs()
            )));
        }
        tokio::time::sleep(LOOK).await;
    }
}
