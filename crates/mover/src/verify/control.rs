//! Starts and stops a verification, and has its report.

use super::job;
use crate::carry::{carry, compare};
use crate::context::{Context, Repairing};
use crate::definitions::Difference;
use crate::error::MoveError;
use crate::messages::{VerifiedTable, VerifyOrder, VerifyReport};
use crate::target::unless_stopped;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::watch;

/// How long the comparison of definitions may take.
const DEFINITIONS: Duration = Duration::from_secs(120);

/// A verification that runs, or has ended.
pub(crate) struct Verification {
    report: Mutex<VerifyReport>,
    stop: watch::Sender<bool>,
}

/// Says that the verification has ended, however it ends.
struct Ends(Arc<Verification>);

impl Drop for Ends {
    fn drop(&mut self) {
        let mut report = self.0.report.lock();
        if report.is_running {
            report.is_running = false;
            report.reason.get_or_insert_with(|| "it was stopped".to_owned());
        }
    }
}

impl Verification {
    /// Starts to compare tables of a move.
    ///
    /// # Errors
    /// A name that is none of the move's; a table whose rows are not all sent yet.
    pub(crate) fn start(
        context: &Arc<Context>,
        order: &VerifyOrder,
        runtime: &Handle,
    ) -> Result<Arc<Verification>, MoveError> {
        let tables = chosen(context, order)?;
        let report = VerifyReport {
            is_running: true,
            reason: None,
            repairs: order.repairs,
            definitions: Vec::new(),
            notes: Vec::new(),
            tables: tables.iter().map(|(_, report)| report.clone()).collect(),
        };
        let places: Vec<usize> = tables.into_iter().map(|(at, _)| at).collect();
        let (stop, stopped) = watch::channel(false);
        let verification = Arc::new(Verification { report: Mutex::new(report), stop });
        let (of_task, context, repairs) = (Arc::clone(&verification), Arc::clone(context), order.repairs);
        let repairing = repairs.then(|| Repairing::begin(&context));
        runtime.spawn(async move {
            let ends = Ends(Arc::clone(&of_task));
            let (definitions, notes) = match compared(&context, &stopped).await {
                Ok(()) => {
                    let found = context.differences.lock().clone();
                    let (seen, others): (Vec<_>, Vec<_>) = found.into_iter().partition(|of| of.is_seen);
                    let texts = |of: Vec<Difference>| of.into_iter().map(|of| of.text).collect();
                    (texts(seen), texts(others))
                }
                Err(MoveError::Stopped) => return,
                Err(error) => (vec![format!("definitions were not compared: {error}")], Vec::new()),
            };
            {
                let mut report = of_task.report.lock();
                (report.definitions, report.notes) = (definitions, notes);
            }
            for (place, at) in places.into_iter().enumerate() {
                let gaps = context.with_table(at, |table| table.gaps).unwrap_or_default();
                let done = job::table(&context, &of_task, (at, place), (repairs, &stopped)).await;
                match done {
                    Ok(()) if of_task.is_equal(place) => {
                        context.with_table(at, |table| table.gaps_verified = gaps);
                        // What a crash forgets is compared once more.
                        let _ = context.save();
                    }
                    Ok(()) => {}
                    Err(MoveError::Stopped) => return,
                    Err(error) => of_task.with(place, |table| table.error = Some(error.to_string())),
                }
            }
            // Whoever sees that it has ended may cut over.
            drop(repairing);
            of_task.report.lock().is_running = false;
            drop(ends);
        });
        Ok(verification)
    }

    /// One of no tables, for tests.
    #[cfg(test)]
    pub(super) fn of_tests() -> Arc<Verification> {
        Arc::new(Verification { report: Mutex::default(), stop: watch::Sender::new(false) })
    }

    /// What it has found until now.
    pub(crate) fn report(&self) -> VerifyReport {
        self.report.lock().clone()
    }

    /// Whether a table was found equal, or was made so.
    fn is_equal(&self, place: usize) -> bool {
        let report = self.report.lock();
        report.tables.get(place).is_some_and(|table| {
            let left = if report.repairs { table.not_repaired } else { table.differing };
            left == 0 && table.unsettled == 0
        })
    }

    /// Ends it.
    pub(crate) fn stop(&self) {
        // Nobody may listen any more.
        let _ = self.stop.send(true);
    }

    /// Changes the report of a table.
    pub(super) fn with(&self, place: usize, change: impl FnOnce(&mut VerifiedTable)) {
        if let Some(table) = self.report.lock().tables.get_mut(place) {
            change(table);
        }
    }
}

/// Compares the definitions, which are made equal first where that is under way.
///
/// # Errors
/// They could not be compared in time; the verification was stopped.
async fn compared(context: &Context, stopped: &watch::Receiver<bool>) -> Result<(), MoveError> {
    let comparing = async {
        carry(context).await?;
        compare(context).await
    };
    // Nodes that never agree on a schema would hold it for ever.
    let in_time = async {
        tokio::time::timeout(DEFINITIONS, comparing).await.unwrap_or_else(|_| {
            let text = "they were not read in time, or the target's nodes do not agree on a schema";
            Err(MoveError::Table(text.to_owned()))
        })
    };
    unless_stopped(stopped.clone(), in_time).await
}

/// The tables that an order names, with their places in the move.
fn chosen(context: &Context, order: &VerifyOrder) -> Result<Vec<(usize, VerifiedTable)>, MoveError> {
    let state = context.state.lock();
    let is_named =
        |name: &str, table: &crate::state::TableState| name == table.keyspace || name == table.full_name();
    for name in &order.what {
        if !state.tables.iter().any(|table| is_named(name, table)) {
            return Err(MoveError::Table(format!(
                "{name} is no table or keyspace of the move; helenus move status lists them"
            )));
        }
    }
    let mut found = Vec::new();
    for (at, table) in state.tables.iter().enumerate() {
        if !order.what.is_empty() && !order.what.iter().any(|name| is_named(name, table)) {
            continue;
        }
        if table.stopped.is_some() || !table.is_filled() {
            return Err(MoveError::Table(format!(
                "{}: not all of its rows are sent yet; helenus move status shows when they are",
                table.full_name()
            )));
        }
        let ranges = table.ranges as usize;
        found.push((at, VerifiedTable { table: table.full_name(), ranges, ..VerifiedTable::default() }));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted_target::ScriptedMove;

    const CREATE: [&str; 2] = [
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE ks.t (k int PRIMARY KEY)",
    ];

    #[tokio::test]
    async fn a_verification_whose_definitions_wait_is_stopped_and_one_that_repairs_is_seen_till_then() {
        let of = ScriptedMove::new(&CREATE, |_| None).await;
        of.with_table(|table| table.done = vec![0]);
        // As another task does while nodes do not agree.
        let defining = of.context.defining.lock().await;
        for repairs in [false, true] {
            let order = VerifyOrder { repairs, ..VerifyOrder::default() };
            let runtime = Handle::current();
            let verification = Verification::start(&of.context, &order, &runtime).unwrap();
            assert_eq!(of.context.is_repaired(), repairs);
            assert!(verification.report().is_running);
            verification.stop();
            while verification.report().is_running || of.context.is_repaired() {
                tokio::task::yield_now().await;
            }
            assert_eq!(verification.report().reason.as_deref(), Some("it was stopped"));
        }
        drop(defining);
    }

    #[tokio::test]
    async fn definitions_that_are_not_compared_in_time_are_told() {
        let of = ScriptedMove::new(&CREATE, |_| None).await;
        let _defining = of.context.defining.lock().await;
        tokio::time::pause();
        let begun = tokio::time::Instant::now();
        let error = compared(&of.context, &of.stop.subscribe()).await.unwrap_err();
        assert!(error.to_string().contains("agree on a schema") && begun.elapsed() >= DEFINITIONS, "{error}");
    }
}
