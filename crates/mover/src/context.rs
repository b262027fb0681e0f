//! What all tasks of a run share, and the steps by which they change the state of a table.

use crate::definitions::Difference;
use crate::drain::Drain;
use crate::error::MoveError;
use crate::row_locks::{RowLock, RowLocks};
use crate::source::RowName;
use crate::state::{MoveState, StateFile, TableState};
use crate::target::{AGREEMENT, SETTLE_TRUNCATE, Target};
use crate::threads::Threads;
use crate::waiting::Waiting;
use helenus_cluster::ClusterError;
use helenus_cql::LocalBackend;
use helenus_engine::Database;
use helenus_engine::changes::ChangePosition;
use helenus_model::schema::Table;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
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
    /// For work that waits for the disk.
    pub(crate) threads: Arc<Threads>,
    /// Turns of ranges that are read.
    pub(crate) ranges: Semaphore,
    /// The same for tables of counters, whose rows may wait for replicas.
    pub(crate) counter_ranges: Semaphore,
    /// What of each table waits to be sent, by its place.
    pub(crate) waiting: Arc<Mutex<Vec<Waiting>>>,
    /// The rows that a task reads and writes at the target.
    pub(crate) locks: RowLocks,
    /// Held while definitions are changed at the target.
    pub(crate) defining: tokio::sync::Mutex<()>,
    /// How definitions differ, as they were last compared.
    pub(crate) differences: Mutex<Vec<Difference>>,
    /// What troubles the move beside single tables, for `status`.
    pub(crate) reason: Arc<Mutex<Option<String>>>,
    /// The number of tables that this run has made or found at the target.
    pub(crate) made: AtomicUsize,
    /// Asks the tails whether everything is sent.
    pub(crate) drain: Drain,
    /// When the state was last written.
    pub(crate) saved: Mutex<Instant>,
    /// Verifications under way that repair.
    pub(crate) repairs: AtomicUsize,
}

/// A verification that repairs, until it is dropped.
pub(crate) struct Repairing(Arc<Context>);

impl Repairing {
    /// Begins one.
    pub(crate) fn begin(context: &Arc<Context>) -> Repairing {
        context.repairs.fetch_add(1, Ordering::Relaxed);
        Repairing(Arc::clone(context))
    }
}

impl Drop for Repairing {
    fn drop(&mut self) {
        self.0.repairs.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Context {
    /// Whether a verification repairs rows at the target.
    pub(crate) fn is_repaired(&self) -> bool {
        self.repairs.load(Ordering::Relaxed) > 0
    }

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

    /// Locks a row at the target, once no request of a task that was dropped can be run there any more.
    ///
    /// # Errors
    /// The move stops.
    pub(crate) async fn lock_row(&self, table: &Table, name: &RowName) -> Result<RowLock, MoveError> {
        self.without_doubt(self.locks.row(table.id, name).await).await
    }

    /// The same for all rows of a partition.
    ///
    /// # Errors
    /// As `lock_row`.
    pub(crate) async fn lock_partition(&self, table: &Table, key: &[u8]) -> Result<RowLock, MoveError> {
        self.without_doubt(self.locks.partition(table.id, key).await).await
    }

    /// Truncates a table, the one at this place, at the target. What other tasks write there is before it, or read here behind it.
    ///
    /// # Errors
    /// As `Target::truncate`; the disk failed.
    pub(crate) async fn truncate(&self, at: usize, table: &Table) -> Result<(), MoveError> {
        let mut lock = self.without_doubt(self.locks.table(table.id).await).await?;
        // Before it is sent: after a crash it may still be run there for longer than other requests.
        self.with_table(at, |table| table.truncates = true);
        self.save()?;
        lock.in_flight(Some(SETTLE_TRUNCATE));
        self.target.truncate(table).await?;
        lock.done();
        // Saved with the next position.
        self.with_table(at, |table| table.truncates = false);
        Ok(())
    }

    async fn without_doubt(&self, lock: RowLock) -> Result<RowLock, MoveError> {
        let now = tokio::time::Instant::now();
        if let Some(until) = lock.doubt().filter(|until| *until > now) {
            self.target.pause(until.duration_since(now)).await?;
        }
        Ok(lock)
    }

    /// Waits until the nodes have the same schema, for `AGREEMENT`, and for as long as none is connected.
    ///
    /// # Errors
    /// `ClusterError::NoAgreement`; the move stops.
    pub(crate) async fn agree_in_time(&self) -> Result<(), MoveError> {
        let mut retry = self.target.retry_of_reads();
        loop {
            let asked = async { Ok(self.target.cluster.wait_for_agreement(AGREEMENT).await?) };
            let agreed = self.target.unless_stopped(asked).await;
            if matches!(agreed, Err(MoveError::Target(ClusterError::NoAgreement { .. }))) {
                return agreed;
            }
            if retry.answer(agreed).await?.is_some() {
                return Ok(());
            }
        }
    }

    /// What is sent from now on may be at the target already.
    pub(crate) fn repeat(&self) {
        let mut state = self.state.lock();
        state.runs = state.runs.max(2);
    }

    /// Whether what is sent may be at the target already.
    pub(crate) fn is_repeated(&self) -> bool {
        self.state.lock().runs > 1
    }
}

/// Forgets what was sent of a table, because changes were missed.
pub(crate) fn begin_anew(context: &Context, at: usize) {
    context.with_table(at, TableState::begin_anew);
    // Lists may be at the target.
    context.repeat();
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
