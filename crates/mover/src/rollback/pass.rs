//! A pass of a rollback: makes rows here equal to those at the target, of all partitions or of those that clients have written.

use super::counters_back;
use super::roll_back::Rollback;
use crate::error::MoveError;
use crate::forms;
use crate::remote::{BroughtBack, Sides, TokenRange, bring_back};
use crate::state::MoveState;
use helenus_cluster::{Written, WrittenTable};
use helenus_cql::counted;
use helenus_model::schema::Table;
use std::sync::Arc;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Ranges that a whole table is read by.
const RANGES: u32 = 64;
/// Written partitions that a task reads, one after the other, and tasks that do so at once: what they wait for is mostly the target.
const PARTITIONS: usize = 64;
const TASKS: usize = 32;

/// Ranges of tokens of a table that a task reads one after the other.
struct Portion {
    sides: Sides,
    ranges: Vec<TokenRange>,
    /// Whether each range is one partition.
    are_partitions: bool,
}

/// What a pass does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It reads both sides and writes nothing.
    Trial,
    /// It makes the rows here equal; its number.
    Pass(u32),
}

/// Makes all rows here equal to those at the target, in the partitions that were written.
pub(super) async fn pass(
    rollback: &Rollback<'_>,
    state: &MoveState,
    (tables, written, kind): (&[Arc<Table>], &Written, Kind),
) -> Result<BroughtBack, MoveError> {
    // Whole ranges are as much work as those of the back-fill.
    let of_ranges = Arc::new(Semaphore::new(state.order.ranges_at_once.max(1)));
    let of_partitions = Arc::new(Semaphore::new(TASKS));
    let mut tasks = JoinSet::new();
    let target = &rollback.target;
    let of_target = (&target.cluster, rollback.threads);
    let mut all = Vec::new();
    for table in tables {
        let as_there = forms::as_there(&target.cluster, table).await?;
        let sides = Sides::new(rollback.backend, of_target, (table, &as_there), target.stop.clone());
        all.extend(portions(&sides, written));
    }
    for portion in all {
        let turns = Arc::clone(if portion.are_partitions { &of_partitions } else { &of_ranges });
        tasks.spawn(async move {
            let _turn = turns.acquire().await.map_err(|_| MoveError::Stopped)?;
            let (sides, mut done) = (&portion.sides, BroughtBack::default());
            // A task that is aborted ends at its next await, and what it has begun may be written after that.
            let _until_its_end = sides.threads.task().await;
            for range in &portion.ranges {
                done.add(match sides.table.is_counter() {
                    true => counters_back::bring_back(sides, *range, kind == Kind::Trial).await?,
                    false => bring_back(sides, *range, kind == Kind::Trial).await?,
                });
            }
            Ok::<_, MoveError>(done)
        });
    }
    let (all, mut ended, mut sum) = (tasks.len(), 0, BroughtBack::default());
    while let Some(done) = tasks.join_next().await {
        sum.add(done.map_err(|error| MoveError::Internal(error.to_string()))??);
        ended += 1;
        let (portions, rows) = (counted(all, "portion"), counted(sum.rows, "row"));
        *rollback.progress.lock() = Some(match kind {
            Kind::Trial => format!("rollback, trial: {ended} of {portions}, {rows} compared"),
            Kind::Pass(number) => format!(
                "rollback, pass {number}: {ended} of {portions}, {rows} compared, {} changed here",
                sum.changed
            ),
        });
    }
    Ok(sum)
}

fn portions(sides: &Sides, written: &Written) -> Vec<Portion> {
    let table = &sides.table;
    let (ranges, at_once, are_partitions): (Vec<TokenRange>, _, _) = match written
        .of(&table.keyspace, &table.name)
    {
        WrittenTable::Any => ((0..RANGES).map(|number| TokenRange::of(number, RANGES)).collect(), 1, false),
        WrittenTable::Tokens(tokens) => {
            (tokens.into_iter().map(TokenRange::of_token).collect(), PARTITIONS, true)
        }
    };
    let portion =
        |ranges: &[TokenRange]| Portion { sides: sides.clone(), ranges: ranges.to_vec(), are_partitions };
    ranges.chunks(at_once).map(portion).collect()
}
