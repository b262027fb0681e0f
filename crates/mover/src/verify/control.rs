//! Starts and stops a verification, and has its report.

use super::job;
use crate::carry::{carry, compare};
use crate::context::Context;
use crate::definitions::Difference;
use crate::error::MoveError;
use crate::messages::{VerifiedTable, VerifyOrder, VerifyReport};
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio::sync::watch;

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
        runtime.spawn(async move {
            let ends = Ends(Arc::clone(&of_task));
            // Made equal first, where that is under way.
            let compared = async {
                carry(&context).await?;
                compare(&context).await
            };
            let (definitions, notes) = match compared.await {
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
