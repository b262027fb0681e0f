//! A server's mover: starts, shows, resumes and ends its one move.
//!
//! The move's tasks run on a runtime of their own, which exists only while a move does. A server that restarts goes on with the
//! move by itself.

use crate::context::{CONSUMER, Context};
use crate::cut::{self, duration_words};
use crate::drain::Drain;
use crate::error::MoveError;
use crate::estimate;
use crate::front::Front;
use crate::messages::{
    CutOrder, MoveAnswer, MoveOrder, MoveRequest, RollbackOrder, StatusReport, TableReport, VerifyOrder,
};
use crate::plan;
use crate::rollback::{self, Rollback};
use crate::run::{run, set_cdc};
use crate::state::{MoveState, StateFile, TableState};
use crate::target::Target;
use crate::verify::Verification;
use helenus_cql::{LocalBackend, counted};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;

/// Threads that send.
const THREADS: usize = 2;
/// How long a stopping server waits for requests in flight.
const PATIENCE: Duration = Duration::from_secs(5);
/// The pause before a target that cannot be reached is tried again.
const AGAIN: Duration = Duration::from_secs(5);

/// The move of a server.
pub struct Mover {
    backend: Arc<LocalBackend>,
    /// `None` in memory.
    file: Option<StateFile>,
    /// What clients connect to.
    front: Arc<dyn Front>,
    running: Mutex<Option<Running>>,
    /// Held while the move is started, ended, cut over or taken back.
    changing: Mutex<()>,
    /// What a rollback does now.
    progress: Mutex<Option<String>>,
    /// True once the server stops.
    stopping: watch::Sender<bool>,
    /// The last comparison of both sides.
    verification: Mutex<Option<Arc<Verification>>>,
}

struct Running {
    runtime: Runtime,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
    state: Arc<Mutex<MoveState>>,
    lags: Arc<Mutex<Vec<Option<f64>>>>,
    /// Once the target is connected.
    context: Arc<Mutex<Option<Arc<Context>>>>,
    /// Why the run ended, or cannot begin yet.
    reason: Arc<Mutex<Option<String>>>,
}

impl Mover {
    /// The mover of a server with this data directory; `None` in memory. A move that was under way goes on; after a cut there is
    /// nothing to go on with, and the front serves by the target already (`cut_of`).
    pub fn open(backend: &Arc<LocalBackend>, directory: Option<&Path>, front: Arc<dyn Front>) -> Arc<Mover> {
        let disk = || Arc::clone(&backend.database().host().disk);
        let file = directory.map(|directory| StateFile::of(disk(), directory));
        let mover = Arc::new(Mover {
            backend: Arc::clone(backend),
            file,
            front,
            running: Mutex::default(),
            changing: Mutex::default(),
            progress: Mutex::default(),
            stopping: watch::Sender::new(false),
            verification: Mutex::default(),
        });
        // A file that cannot be read is reported to whoever asks for the status.
        if let Ok(Some(state)) = mover.read_state()
            && state.cut.is_none()
        {
            let _shown_by_status = mover.go_on(state);
        }
        mover
    }

    /// Answers a request. It may take as long as the target does.
    ///
    /// # Errors
    /// The order cannot be carried out; there is no move, or another one.
    pub fn answer(&self, request: &MoveRequest) -> Result<MoveAnswer, MoveError> {
        let _turn = match request {
            MoveRequest::Plan(_)
            | MoveRequest::Status
            | MoveRequest::VerifyStatus
            | MoveRequest::VerifyStop => None,
            _ => Some(self.changing.try_lock().ok_or(MoveError::Busy)?),
        };
        match request {
            MoveRequest::Plan(order) => {
                let report = runtime()?.block_on(plan::plan(&self.backend, order))?;
                Ok(MoveAnswer::Plan(report))
            }
            MoveRequest::Start(order) => self.start(order),
            MoveRequest::Status => self.status().map(MoveAnswer::Status),
            MoveRequest::Resume => self.resume(),
            MoveRequest::Cutover(order) => self.cut_over(order),
            MoveRequest::Rollback(order) => self.roll_back(order),
            MoveRequest::Verify(order) => self.verify(order),
            MoveRequest::VerifyStatus => self.verified(),
            MoveRequest::VerifyStop => {
                self.verification()?.stop();
                self.verified()
            }
            MoveRequest::Abort => self.abort(),
        }
    }

    /// Stops the tasks, for the end of the server. The move goes on with the next start.
    pub fn stop(&self) {
        self.stopping.send_replace(true);
        self.halt();
    }

    fn file(&self) -> Result<&StateFile, MoveError> {
        self.file.as_ref().ok_or_else(|| {
            let text =
                "this server keeps everything in memory and has no log to follow; start it with --data";
            MoveError::Refused(vec![text.to_owned()])
        })
    }

    /// The state of a move that has not been cut over.
    fn uncut_state(&self) -> Result<MoveState, MoveError> {
        let state = self.read_state()?.ok_or(MoveError::NoMove)?;
        match state.cut {
            Some(_) => Err(MoveError::IsCut { to: state.order.to.join(", ") }),
            None => Ok(state),
        }
    }

    fn read_state(&self) -> Result<Option<MoveState>, MoveError> {
        self.file.as_ref().map_or(Ok(None), StateFile::read)
    }

    fn start(&self, order: &MoveOrder) -> Result<MoveAnswer, MoveError> {
        let file = self.file()?;
        if let Some(state) = self.read_state()? {
            self.uncut_state()?;
            return Err(MoveError::UnderWay { to: state.order.to.join(", ") });
        }
        let database = self.backend.database();
        let report = runtime()?.block_on(plan::plan(&self.backend, order))?;
        if !report.problems.is_empty() {
            return Err(MoveError::Refused(report.problems));
        }
        let tables = plan::tables(database, order)?;
        let tables = tables.iter().map(|table| TableState {
            keyspace: table.keyspace.to_string(),
            table: table.name.to_string(),
            id: table.id.0.to_string(),
            sets_cdc: false,
            position: None,
            done: Vec::new(),
            ranges: estimate::RANGES,
            rows: 0,
            bytes: 0,
            changes: 0,
            is_anew: false,
            stopped: None,
        });
        let state = MoveState {
            order: order.clone(),
            runs: 0,
            has_schema: false,
            tables: tables.collect(),
            roles_made: BTreeSet::new(),
            cut: None,
        };
        file.write(&state)?;
        let count = counted(state.tables.len(), "table");
        self.go_on(state)?;
        Ok(MoveAnswer::Done(format!("the move of {count} has begun; helenus move status shows it")))
    }

    /// Starts the tasks.
    fn go_on(&self, mut state: MoveState) -> Result<(), MoveError> {
        let file = self.file()?.clone();
        self.halt();
        state.runs += 1;
        file.write(&state)?;
        self.backend.database().compactions().keep_tombstones(true);
        let order = state.order.clone();
        let tables = state.tables.len();
        let lags = Arc::new(Mutex::new(vec![None; tables]));
        let state = Arc::new(Mutex::new(state));
        let (stop, stopped) = watch::channel(false);
        let context = Arc::new(Mutex::new(None));
        let reason = Arc::new(Mutex::new(None));
        let runtime = runtime()?;
        let task = {
            let (backend, state, lags) = (Arc::clone(&self.backend), Arc::clone(&state), Arc::clone(&lags));
            let (context, reason) = (Arc::clone(&context), Arc::clone(&reason));
            runtime.spawn(async move {
                let Some(target) = connect(&order, &stopped, &reason).await else { return };
                let made = Arc::new(Context {
                    backend,
                    target,
                    state,
                    file,
                    ranges: Semaphore::new(order.ranges_at_once.max(1)),
                    drain: Drain::new(tables),
                    lags,
                    saved: Mutex::new(tokio::time::Instant::now()),
                });
                *context.lock() = Some(Arc::clone(&made));
                if let Err(error) = run(made).await {
                    *reason.lock() = Some(error.to_string());
                }
            })
        };
        *self.running.lock() = Some(Running { runtime, stop, task, state, lags, context, reason });
        Ok(())
    }

    /// Stops the tasks and waits for them.
    fn halt(&self) {
        let Some(running) = self.running.lock().take() else { return };
        let Running { runtime, stop, task, .. } = running;
        // Nobody may listen any more.
        let _ = stop.send(true);
        let _ = runtime.block_on(async { tokio::time::timeout(PATIENCE, task).await });
        runtime.shutdown_timeout(PATIENCE);
    }

    fn cut_over(&self, order: &CutOrder) -> Result<MoveAnswer, MoveError> {
        let state = self.uncut_state()?;
        let parts = self.running.lock().as_ref().map(|running| {
            (running.context.lock().clone(), running.reason.lock().clone(), running.runtime.handle().clone())
        });
        let (context, runtime) = match parts {
            Some((Some(context), _, runtime)) => (context, runtime),
            Some((None, reason, _)) => {
                let reason = reason.unwrap_or_else(|| "the target is not connected yet".to_owned());
                return Err(MoveError::NotCut(vec![reason]));
            }
            None => {
                let reason = "the move was stopped; helenus move resume goes on".to_owned();
                return Err(MoveError::NotCut(vec![reason]));
            }
        };
        let done = cut::cut(&context, &*self.front, order, &runtime)?;
        let (to, tables) = (state.order.to.join(", "), counted(done.tables, "table"));
        let notes: String = done.notes.iter().map(|note| format!("\n  {note}")).collect();
        if order.is_dry_run {
            return Ok(MoveAnswer::Done(format!(
                "{tables} could be cut over to {to} now; nothing was done{notes}"
            )));
        }
        // There is nothing to follow any more.
        drop(context);
        self.halt();
        let waited_ms = done.waited.as_millis();
        let way_back = match order.rollback_within_s {
            0 => "There is no way back".to_owned(),
            within_s => format!("helenus move rollback takes it back for {}", duration_words(within_s)),
        };
        Ok(MoveAnswer::Done(format!(
            "clients are served by {to} now, through this server; they waited {waited_ms} ms. Complete there: {tables}. \
             {way_back}{notes}"
        )))
    }

    fn roll_back(&self, order: &RollbackOrder) -> Result<MoveAnswer, MoveError> {
        let (file, state) = (self.file()?, self.read_state()?.ok_or(MoveError::NoMove)?);
        let refused = |text: &str| MoveError::NotCut(vec![text.to_owned()]);
        let cut =
            state.cut.ok_or_else(|| refused("the move has not been cut over: clients are served here"))?;
        if order.loses_later_writes {
            rollback::serve_without_target(&*self.front, file, &state)?;
            self.leave(&state)?;
            let ago_s = self.backend.database().wall_us().saturating_sub(cut.at_us).max(0) / 1_000_000;
            return Ok(MoveAnswer::Done(format!(
                "clients are served here again, with the rows of the cut {} ago. What was written at {} since is not here, and the move \
                 has ended; helenus pull copies tables of it once it can be read",
                duration_words(ago_s.unsigned_abs()),
                state.order.to.join(", ")
            )));
        }
        if self.backend.database().wall_us() > cut.rollback_until_us() {
            let within = duration_words(cut.rollback_within_s);
            return Err(refused(&format!(
                "a rollback was allowed for {within} after the cut (--rollback-within); helenus pull copies tables of the target"
            )));
        }
        let runtime = runtime()?;
        let target = runtime.block_on(Target::connect(&state.order, self.stopping.subscribe()));
        let target = target.map_err(|error| match error {
            MoveError::Target(error) => MoveError::AwayAfterCut(error),
            other => other,
        })?;
        let done = {
            let rollback = Rollback {
                backend: &self.backend,
                front: &*self.front,
                file,
                target,
                runtime: runtime.handle(),
                progress: &self.progress,
            };
            rollback::roll_back(&rollback, &state, order)
        };
        *self.progress.lock() = None;
        let (next, done) = done?;
        runtime.shutdown_background();
        self.go_on(next)?;
        let kept = match done.kept {
            0 => String::new(),
            kept => format!("; {} with newer cells here kept them", counted(kept, "row")),
        };
        Ok(MoveAnswer::Done(format!(
            "clients are served here again; they waited {} ms. Changed here: {} in {}{kept}. The move goes on with its tail",
            done.waited.as_millis(),
            counted(done.changed, "row"),
            counted(done.passes, "pass")
        )))
    }

    fn resume(&self) -> Result<MoveAnswer, MoveError> {
        self.uncut_state()?;
        self.halt();
        let mut state = self.read_state()?.ok_or(MoveError::NoMove)?;
        let schema = self.backend.database().schema();
        let before = state.tables.len();
        state.tables.retain(|table| schema.table(&table.keyspace, &table.table).is_some());
        let left_out = before - state.tables.len();
        let stopped = state.tables.iter().filter(|table| table.stopped.is_some()).count();
        for table in &mut state.tables {
            table.stopped = None;
        }
        self.go_on(state)?;
        Ok(MoveAnswer::Done(format!(
            "the move goes on; tables that had stopped: {stopped}, left out because they are not there any more: {left_out}"
        )))
    }

    fn abort(&self) -> Result<MoveAnswer, MoveError> {
        self.uncut_state()?;
        self.halt();
        let state = self.read_state()?.ok_or(MoveError::NoMove)?;
        self.leave(&state)?;
        self.file()?.remove()?;
        Ok(MoveAnswer::Done(
            "the move has ended; this server goes on as before, and the target keeps what it was sent"
                .to_owned(),
        ))
    }

    /// Sets back what the move has set of its tables.
    fn leave(&self, state: &MoveState) -> Result<(), MoveError> {
        let database = self.backend.database();
        let schema = database.schema();
        for of in &state.tables {
            // A consumer that is not there keeps nothing.
            let _ = database.changes().drop_consumer((&of.keyspace, &of.table), CONSUMER);
            let table = schema.table(&of.keyspace, &of.table);
            if let Some(table) = table.filter(|table| of.sets_cdc && table.options.cdc) {
                set_cdc(&self.backend, table, false)?;
            }
        }
        database.compactions().keep_tombstones(false);
        Ok(())
    }

    /// Starts a comparison; one that runs is ended.
    fn verify(&self, order: &VerifyOrder) -> Result<MoveAnswer, MoveError> {
        self.uncut_state()?;
        let running = self.running.lock();
        let running = running.as_ref().ok_or_else(|| {
            MoveError::Table("the move was stopped; helenus move resume goes on".to_owned())
        })?;
        let context = running.context.lock().clone().ok_or_else(|| {
            let reason = running.reason.lock().clone();
            MoveError::Table(
                reason.unwrap_or_else(|| "the target is not connected yet; try again".to_owned()),
            )
        })?;
        let started = Verification::start(&context, order, running.runtime.handle())?;
        if let Some(earlier) = self.verification.lock().replace(started) {
            earlier.stop();
        }
        self.verified()
    }

    fn verification(&self) -> Result<Arc<Verification>, MoveError> {
        let none = || MoveError::Table("nothing was compared yet; helenus move verify does it".to_owned());
        self.verification.lock().clone().ok_or_else(none)
    }

    fn verified(&self) -> Result<MoveAnswer, MoveError> {
        Ok(MoveAnswer::Verified(self.verification()?.report()))
    }

    fn status(&self) -> Result<StatusReport, MoveError> {
        let running = self.running.lock();
        let Some(running) = &*running else {
            let state = self.read_state()?.ok_or(MoveError::NoMove)?;
            if state.cut.is_some() {
                let reason = self.progress.lock().clone();
                return Ok(StatusReport { is_running: true, reason, ..report(&state, &[]) });
            }
            let reason = Some("it was stopped; helenus move resume goes on".to_owned());
            return Ok(StatusReport { reason, ..report(&state, &[]) });
        };
        let lags = running.lags.lock().clone();
        let mut report = report(&running.state.lock(), &lags);
        report.reason.clone_from(&running.reason.lock());
        report.is_running = !running.task.is_finished();
        if let Some(context) = &*running.context.lock() {
            let (rows, p99, in_flight) = context.target.pace.seen();
            report.rows_per_second = rows;
            report.target_p99_ms = p99.as_secs_f64() * 1e3;
            report.in_flight_max = in_flight;
            report.repeated = context.target.repeated.load(Ordering::Relaxed);
            report.last_error.clone_from(&context.target.last_error.lock());
        }
        Ok(report)
    }
}

impl Drop for Mover {
    fn drop(&mut self) {
        self.halt();
    }
}

fn runtime() -> Result<Runtime, MoveError> {
    let runtime =
        Builder::new_multi_thread().worker_threads(THREADS).thread_name("move").enable_all().build();
    runtime.map_err(|error| MoveError::Internal(error.to_string()))
}

/// Connects to the target, again and again. `None` if the move stops first.
async fn connect(
    order: &MoveOrder,
    stopped: &watch::Receiver<bool>,
    reason: &Mutex<Option<String>>,
) -> Option<Target> {
    loop {
        match Target::connect(order, stopped.clone()).await {
            Ok(target) => {
                *reason.lock() = None;
                return Some(target);
            }
            Err(error) => *reason.lock() = Some(format!("{error}; it is tried again")),
        }
        let mut stopped = stopped.clone();
        tokio::select! {
            () = tokio::time::sleep(AGAIN) => {}
            _ = stopped.wait_for(|stopped| *stopped) => return None,
        }
    }
}

fn report(state: &MoveState, lags: &[Option<f64>]) -> StatusReport {
    let table = |(at, of): (usize, &TableState)| TableReport {
        table: of.full_name(),
        phase: match of {
            TableState { stopped: Some(_), .. } => "stopped",
            _ if state.cut.is_some() => "cut over",
            of if of.is_filled() => "tail",
            TableState { position: Some(_), .. } => "back-fill",
            _ => "waits",
        }
        .to_owned(),
        reason: of.stopped.clone(),
        ranges_done: of.done.len(),
        ranges: of.ranges as usize,
        rows: of.rows,
        bytes: of.bytes,
        changes: of.changes,
        lag_s: lags.get(at).copied().flatten().filter(|_| of.stopped.is_none()),
    };
    StatusReport {
        to: state.order.to.clone(),
        runs: state.runs,
        cut_at_ms: state.cut.map(|cut| cut.at_us / 1000),
        rollback_until_ms: state.cut.map(|cut| cut.rollback_until_us() / 1000),
        tables: state.tables.iter().enumerate().map(table).collect(),
        ..StatusReport::default()
    }
}
