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
    CutOrder, MoveAnswer, MoveOrder, MoveRequest, PlanReport, ResumeOrder, RollbackOrder, StatusReport,
    TableReport, VerifyOrder,
};
use crate::plan;
use crate::rollback::{self, Rollback};
use crate::row_locks::RowLocks;
use crate::run::{run, set_cdc};
use crate::state::{MoveState, StateFile, TableState};
use crate::target::{SETTLE, SETTLE_TRUNCATE, Target, unless_stopped};
use crate::threads::Threads;
use crate::verify::Verification;
use crate::waiting::Waiting;
use helenus_cql::{LocalBackend, counted};
use helenus_host::real::check_threads;
use helenus_model::schema::Table;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
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
    /// Why a move that was under way does not go on.
    trouble: Mutex<Option<String>>,
    /// The last comparison of both sides.
    verification: Mutex<Option<Arc<Verification>>>,
}

struct Running {
    runtime: Runtime,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
    state: Arc<Mutex<MoveState>>,
    waiting: Arc<Mutex<Vec<Waiting>>>,
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
            trouble: Mutex::default(),
            verification: Mutex::default(),
        });
        let trouble = |result: Result<(), MoveError>| result.err().map(|error| error.to_string());
        // A crash may have come between the end of a move and the removal of its file.
        let finished = mover.finish_ended();
        match mover.read_state() {
            Ok(Some(state)) if state.cut.is_none() => *mover.trouble.lock() = trouble(mover.go_on(state)),
            Ok(None) if finished.is_err() => *mover.trouble.lock() = trouble(finished),
            // A crash may have come between the end of a move and that of its consumers.
            Ok(None) => mover.drop_consumers(),
            // A file that cannot be read is reported to whoever asks for the status.
            _ => {}
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
        if *self.stopping.borrow() {
            return Err(MoveError::Stopped);
        }
        match request {
            MoveRequest::Plan(order) => self.plan(order).map(MoveAnswer::Plan),
            MoveRequest::Start(order) => self.start(order),
            MoveRequest::Status => self.status().map(MoveAnswer::Status),
            MoveRequest::Resume => self.resume(&ResumeOrder::default()),
            MoveRequest::ResumeWith(order) => self.resume(order),
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

    /// Stops the tasks, for the end of the server, and whatever changes the move: a cut or a rollback in progress is given up. The
    /// move goes on with the next start.
    pub fn stop(&self) {
        self.stopping.send_replace(true);
        if let Some(running) = &*self.running.lock() {
            running.stop.send_replace(true);
        }
        // They have been told, and end before the runtime that they use.
        let _ended_or_left = self.changing.try_lock_for(PATIENCE);
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

    /// The state of the move; `None` also of one that has ended, whose file is still there.
    fn read_state(&self) -> Result<Option<MoveState>, MoveError> {
        let state = self.file.as_ref().map_or(Ok(None), StateFile::read)?;
        Ok(state.filter(|state| !state.is_ended))
    }

    /// Sets back what a move that has ended has set of its tables, and removes its file.
    fn finish(&self, state: &MoveState) -> Result<(), MoveError> {
        self.leave(state)?;
        self.file()?.remove()
    }

    /// The same, if there is such a move.
    fn finish_ended(&self) -> Result<(), MoveError> {
        match self.file.as_ref().map(StateFile::read) {
            Some(Ok(Some(state))) if state.is_ended => self.finish(&state),
            _ => Ok(()),
        }
    }

    /// What a move would do. The end of the server does not wait for it.
    fn plan(&self, order: &MoveOrder) -> Result<PlanReport, MoveError> {
        let planning = plan::plan(&self.backend, order);
        runtime()?.block_on(unless_stopped(self.stopping.subscribe(), planning))
    }

    fn start(&self, order: &MoveOrder) -> Result<MoveAnswer, MoveError> {
        let file = self.file()?;
        self.finish_ended()?;
        if let Some(state) = self.read_state()? {
            self.uncut_state()?;
            return Err(MoveError::UnderWay { to: state.order.to.join(", ") });
        }
        if order.login.is_some() && order.password_file.is_none() {
            return Err(MoveError::Refused(vec![
                "the password of the target is not kept in the data directory, and the server needs it again after each start: give \
                 --password-file FILE, a file that the server can read until the move has ended"
                    .to_owned(),
            ]));
        }
        let database = self.backend.database();
        let report = self.plan(order)?;
        if !report.problems.is_empty() {
            return Err(MoveError::Refused(report.problems));
        }
        let tables = plan::tables(database, order)?;
        let goes = |table: &&Arc<Table>| {
            !report.left_out.contains_key(&format!("{}.{}", table.keyspace, table.name))
        };
        let tables = tables.iter().filter(goes).map(|table| TableState::new(table, estimate::RANGES));
        let state = MoveState {
            order: order.without_password(),
            runs: 0,
            has_schema: false,
            tables: tables.collect(),
            roles_made: BTreeSet::new(),
            cut: None,
            has_brought: false,
            is_ended: false,
        };
        file.write(&state)?;
        let count = counted(state.tables.len(), "table");
        self.go_on(state)?;
        let left_out = not_taken(lines(report.left_out));
        Ok(MoveAnswer::Done(format!("the move of {count} has begun; helenus move status shows it{left_out}")))
    }

    /// Starts the tasks.
    fn go_on(&self, mut state: MoveState) -> Result<(), MoveError> {
        let file = self.file()?.clone();
        self.halt();
        state.runs += 1;
        file.write(&state)?;
        self.backend.database().compactions().keep_tombstones(true);
        let order = state.order.clone();
        let (tables, is_first) = (state.tables.len(), state.runs == 1);
        let truncates = state.tables.iter().any(|table| table.truncates);
        let settle = if truncates { SETTLE_TRUNCATE } else { SETTLE };
        let waiting = Arc::new(Mutex::new(vec![Waiting::default(); tables]));
        let state = Arc::new(Mutex::new(state));
        let (stop, stopped) = watch::channel(false);
        let context = Arc::new(Mutex::new(None));
        let reason = Arc::new(Mutex::new(None));
        let runtime = runtime()?;
        let task = {
            let (backend, state, waiting) =
                (Arc::clone(&self.backend), Arc::clone(&state), Arc::clone(&waiting));
            let (context, reason) = (Arc::clone(&context), Arc::clone(&reason));
            runtime.spawn(async move {
                let Some(target) = connect(&order, &stopped, &reason).await else { return };
                if !is_first {
                    // Requests of the run before may be under way.
                    target.doubt(Some(settle));
                }
                let made = Arc::new(Context {
                    threads: Threads::new(backend.database().host()),
                    backend,
                    target,
                    state,
                    file,
                    ranges: Semaphore::new(order.ranges_at_once.max(1)),
                    counter_ranges: Semaphore::new(order.ranges_at_once.max(1)),
                    drain: Drain::new(tables),
                    waiting,
                    locks: RowLocks::default(),
                    defining: tokio::sync::Mutex::new(()),
                    differences: Mutex::default(),
                    reason: Arc::clone(&reason),
                    made: AtomicUsize::new(0),
                    saved: Mutex::new(tokio::time::Instant::now()),
                    repairs: AtomicUsize::new(0),
                });
                *context.lock() = Some(Arc::clone(&made));
                if let Err(error) = run(made).await {
                    *reason.lock() = Some(error.to_string());
                }
            })
        };
        *self.running.lock() = Some(Running { runtime, stop, task, state, waiting, context, reason });
        if *self.stopping.borrow() {
            self.halt();
        }
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
            let unset = self.finish(&state).err().map_or_else(String::new, |error| {
                format!(". What the move has set of its tables is set back by the next start: {error}")
            });
            let brought = match state.has_brought {
                true => ", and with some that a rollback has brought which did not come to its end",
                false => "",
            };
            let ago_s = self.backend.database().wall_us().saturating_sub(cut.at_us).max(0) / 1_000_000;
            return Ok(MoveAnswer::Done(format!(
                "clients are served here again, with the rows of the cut {} ago{brought}. What was written at {} since is not here, and the move \
                 has ended; helenus pull copies tables of it once it can be read{unset}",
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
        let threads = Threads::new(self.backend.database().host());
        let done = {
            let rollback = Rollback {
                backend: &self.backend,
                front: &*self.front,
                file,
                target,
                threads: &threads,
                runtime: runtime.handle(),
                progress: &self.progress,
            };
            rollback::roll_back(&rollback, &state, order)
        };
        *self.progress.lock() = None;
        runtime.shutdown_background();
        let (next, done) = done?;
        let goes_on = match self.go_on(next) {
            Ok(()) => "The move goes on with its tail".to_owned(),
            Err(error) => {
                *self.trouble.lock() = Some(error.to_string());
                format!("The move does not go on: {error}; helenus move resume goes on")
            }
        };
        let kept = match done.kept {
            0 => String::new(),
            kept => format!("; {} with newer cells here kept them", counted(kept, "row")),
        };
        Ok(MoveAnswer::Done(format!(
            "clients are served here again; they waited {} ms. Changed here: {} in {}{kept}. {goes_on}",
            done.waited.as_millis(),
            counted(done.changed, "row"),
            counted(done.passes, "pass")
        )))
    }

    /// Goes on with all tables, and takes in those that were made since.
    fn resume(&self, order: &ResumeOrder) -> Result<MoveAnswer, MoveError> {
        let state = self.uncut_state()?;
        let ResumeOrder { anew, rows_per_second, target_p99_ms, ranges_at_once } = order;
        for name in anew {
            if !state.tables.iter().any(|table| table.full_name() == *name) {
                return Err(MoveError::Table(format!(
                    "{name} is no table of the move; helenus move status lists them as KEYSPACE.TABLE"
                )));
            }
        }
        self.halt();
        let mut state = self.read_state()?.ok_or(MoveError::NoMove)?;
        let paced = &mut state.order;
        paced.rows_per_second = rows_per_second.unwrap_or(paced.rows_per_second);
        paced.target_p99_ms = target_p99_ms.unwrap_or(paced.target_p99_ms);
        paced.ranges_at_once = ranges_at_once.unwrap_or(paced.ranges_at_once);
        let database = self.backend.database();
        let schema = database.schema();
        let before = state.tables.len();
        let is_there = |table: &TableState| schema.table(&table.keyspace, &table.table).is_some();
        for table in state.tables.iter().filter(|table| !is_there(table)) {
            // One that is not there keeps nothing.
            let _ = database.changes().drop_consumer((&table.keyspace, &table.table), CONSUMER);
        }
        state.tables.retain(is_there);
        let left_out = before - state.tables.len();
        let (taken_in, reasons) = self.take_in(&mut state)?;
        let mut stopped = 0;
        for table in &mut state.tables {
            stopped += usize::from(table.resume(anew.contains(&table.full_name())));
        }
        let kept = state.tables.iter().filter(|table| table.left_out);
        let kept = kept.map(|table| {
            let name = table.full_name();
            format!("{name}: a rollback left it out; helenus move resume --anew {name} truncates it there and sends it anew")
        });
        let reasons: Vec<String> = reasons.into_iter().chain(kept).collect();
        self.go_on(state)?;
        Ok(MoveAnswer::Done(format!(
            "the move goes on; tables that had stopped: {stopped}, left out because they are not there any more: {left_out}, made here \
             since and taken in: {taken_in}{}",
            not_taken(reasons)
        )))
    }

    /// Adds the tables that the order means, that were made since, and that the target takes. Returns their number, and why others stay out.
    fn take_in(&self, state: &mut MoveState) -> Result<(usize, Vec<String>), MoveError> {
        let known: BTreeSet<String> = state.tables.iter().map(TableState::full_name).collect();
        let of_order: Vec<String> = state.order.what.clone();
        // What the order names may be gone.
        let schema = self.backend.database().schema();
        let is_there = |name: &String| {
            let keyspace = name.split('.').next().unwrap_or_default();
            schema.keyspaces.get(keyspace).is_some_and(|keyspace| {
                name.split_once('.').is_none_or(|(_, table)| keyspace.tables.contains_key(table))
            })
        };
        let what: Vec<String> = of_order.iter().filter(|name| is_there(name)).cloned().collect();
        if what.is_empty() && !of_order.is_empty() {
            return Ok((0, Vec::new()));
        }
        let order = MoveOrder { what, replication: BTreeMap::new(), ..state.order.clone() };
        let wanted = plan::tables(self.backend.database(), &order).unwrap_or_default();
        let full_name = |table: &Table| format!("{}.{}", table.keyspace, table.name);
        let new: Vec<Arc<Table>> =
            wanted.into_iter().filter(|table| !known.contains(&full_name(table))).collect();
        if new.is_empty() {
            return Ok((0, Vec::new()));
        }
        // As at a start.
        let what: Vec<String> = new.iter().map(|table| full_name(table)).collect();
        let mut replication = state.order.replication.clone();
        replication.retain(|keyspace, _| schema.keyspaces.contains_key(&**keyspace));
        // Roles are sent once the tables are made.
        let order = MoveOrder { what, replication, roles: false, ..state.order.clone() };
        let (problems, left_out) = match self.plan(&order) {
            Ok(report) => (report.problems, report.left_out),
            Err(error) => (vec![error.to_string()], BTreeMap::new()),
        };
        if !problems.is_empty() {
            return Ok((0, problems));
        }
        let before = state.tables.len();
        let goes = new.iter().filter(|table| !left_out.contains_key(&full_name(table)));
        state.tables.extend(goes.map(|table| TableState::new(table, estimate::RANGES)));
        let count = state.tables.len() - before;
        // As they are in a new move: keyspace by keyspace.
        state.tables.sort_by_key(|table| (table.keyspace.clone(), table.table.clone()));
        // Roles may do something with them.
        state.has_schema &= count == 0;
        Ok((count, lines(left_out)))
    }

    /// Ends what keeps the log for a move, although there is none.
    fn drop_consumers(&self) {
        let changes = self.backend.database().changes();
        for of in changes.consumers().into_iter().filter(|consumer| consumer.name == CONSUMER) {
            // The next start tries it again.
            let _ = changes.drop_consumer((&of.keyspace, &of.table), CONSUMER);
        }
    }

    fn abort(&self) -> Result<MoveAnswer, MoveError> {
        self.uncut_state()?;
        self.halt();
        let state = self.read_state()?.ok_or(MoveError::NoMove)?;
        // Before anything is set back: a crash in between would go on with tables that are not followed any more.
        self.file()?.write(&MoveState { is_ended: true, ..state.clone() })?;
        self.finish(&state)?;
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
            let trouble = self.trouble.lock().clone();
            let reason =
                trouble.map_or("it was stopped".to_owned(), |why| format!("it does not go on: {why}"));
            let reason = Some(format!("{reason}; helenus move resume goes on"));
            return Ok(StatusReport { reason, ..report(&state, &[]) });
        };
        let now_us = self.backend.database().wall_us();
        let lags: Vec<_> = running.waiting.lock().iter().map(|waiting| waiting.lag_s(now_us)).collect();
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
            let made = context.made.load(Ordering::Relaxed);
            report.tables_made = (made < report.tables.len()).then_some(made);
            report.differences = context.differences.lock().iter().map(|of| of.text.clone()).collect();
        }
        Ok(report)
    }
}

/// Why tables are left out, a line each.
fn lines(left_out: BTreeMap<String, Vec<String>>) -> Vec<String> {
    let of_table = |(table, reasons): (String, Vec<String>)| format!("{table}: {}", reasons.join("; "));
    left_out.into_iter().map(of_table).collect()
}

/// The end of an answer: what is not done, and why.
fn not_taken(reasons: Vec<String>) -> String {
    reasons.into_iter().map(|reason| format!("\n  left out: {reason}")).collect()
}

impl Drop for Mover {
    fn drop(&mut self) {
        self.halt();
    }
}

fn runtime() -> Result<Runtime, MoveError> {
    // The runtime panics where the system gives it no thread.
    check_threads(THREADS + 1).map_err(|_| MoveError::NoThread)?;
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
        is_to_verify: of.has_gap(),
        begun_anew: of.begun_anew,
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
