//! What all tasks of a run share, and the steps by which they change the state of a table.

use crate::drain::Drain;
use crate::error::MoveError;
use crate::state::{MoveState, StateFile, TableState};
use crate::target::Target;
use helenus_cql::LocalBackend;
use helenus_engine::Database;
use helenus_engine::changes::ChangePosition;
use helenus_model::schema::Table;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// The name by which the log is kept for a move.
pub(crate) const CONSUMER: &str = "helenus-move";

/// The least time between two writes of the state for finished ranges.
const SAVES: Duration = Duration::from_secs(1);

/// What all tasks of a run share.
pub(crate) struct Context {
    pub(crate) backend: Arc<LocalBackend>,
    pub(crate) target: Target,
    pub(crate) state: Arc<Mutex<MoveState>>,
    pub(crate) file: StateFile,
    /// Turns of ranges that are read.
    pub(crate) ranges: Semaphore,
    /// Seconds by which each table is behind, by its place.
    pub(crate) lags: Arc<Mutex<Vec<Option<f64>>>>,
    /// Asks the tails whether everything is sent.
    pub(crate) drain: Drain,
    /// When the state was last written.
    pub(crate) saved: Mutex<Instant>,
}

impl Context {
    pub(crate) fn database(&self) -> &Arc<Database> {
        self.backend.database()
    }

    /// Changes the state of a table.
    pub(crate) fn with_table<T>(&self, at: usize, change: impl FnOnce(&mut TableState) -> T) -> Option<T> {
        self.state.lock().tables.get_mut(at).map(change)
    }

    /// Writes the state to disk.
    ///
    /// # Errors
    /// The disk failed.
    pub(crate) fn save(&self) -> Result<(), MoveError> {
        // Under the lock, so that an older state never replaces a newer one.
        let state = self.state.lock();
        self.file.write(&state)
    }

    /// Writes the state to disk, unless that was done a moment ago: what a crash then forgets is sent again.
    ///
    /// # Errors
    /// The disk failed.
    pub(crate) fn save_soon(&self) -> Result<(), MoveError> {
        {
            let mut saved = self.saved.lock();
            if saved.elapsed() < SAVES {
                return Ok(());
            }
            *saved = tokio::time::Instant::now();
        }
        self.save()
    }

    /// Whether what is sent may be at the target already.
    pub(crate) fn is_repeated(&self) -> bool {
        self.state.lock().runs > 1
    }
}

/// Forgets what was sent of a table.
pub(crate) fn begin_anew(context: &Context, at: usize) {
    context.with_table(at, |table| {
        table.position = None;
        table.is_anew = true;
        table.done.clear();
        (table.rows, table.bytes) = (0, 0);
    });
    // Lists may be at the target.
    let mut state = context.state.lock();
    state.runs = state.runs.max(2);
}

/// The log is kept for the move from this position on.
///
/// # Errors
/// The disk failed.
pub(crate) fn keep_from(context: &Context, table: &Table, from: ChangePosition) -> Result<(), MoveError> {
    let database = context.database();
    let text = from.text(database.host_id());
    Ok(database.changes().acknowledge((&table.keyspace, &table.name), CONSUMER, (from, text))?)
}
