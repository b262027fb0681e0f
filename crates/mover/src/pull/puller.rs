//! Starts and stops the copying, on a runtime of its own.

use super::messages::{PullOrder, PullReport, PullRequest};
use super::run::pull;
use crate::error::MoveError;
use helenus_cql::LocalBackend;
use helenus_host::real::check_threads;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

/// Threads that read and write.
const THREADS: usize = 2;
/// How long an ending process waits.
const PATIENCE: Duration = Duration::from_secs(5);

/// Copies tables of a cluster into a database.
pub struct Puller {
    backend: Arc<LocalBackend>,
    /// Notes that it writes, until the result is dropped; an error if nobody would read what it writes.
    begin_writing: BeginWriting,
    running: Mutex<Option<Running>>,
}

/// Notes that something writes to the database beside clients.
type BeginWriting = Box<dyn Fn() -> Result<Box<dyn Send>, String> + Send + Sync>;

struct Running {
    runtime: Runtime,
    stop: watch::Sender<bool>,
    report: Arc<Mutex<PullReport>>,
}

/// Says that the copying has ended, however it ends.
struct Ends(Arc<Mutex<PullReport>>);

impl Drop for Ends {
    fn drop(&mut self) {
        let mut report = self.0.lock();
        if report.is_running {
            report.is_running = false;
            report.error.get_or_insert_with(|| "it was stopped".to_owned());
        }
    }
}

impl Puller {
    /// Copies into this database. `begin_writing` is asked at the start of each copying, and its result is dropped at the end.
    pub fn new(backend: &Arc<LocalBackend>, begin_writing: BeginWriting) -> Arc<Puller> {
        Arc::new(Puller { backend: Arc::clone(backend), begin_writing, running: Mutex::default() })
    }

    /// Answers a request.
    ///
    /// # Errors
    /// Another copying is under way, or none.
    pub fn answer(&self, request: &PullRequest) -> Result<PullReport, MoveError> {
        let mut running = self.running.lock();
        match request {
            PullRequest::Start(order) => {
                if running.as_ref().is_some_and(|running| running.report.lock().is_running) {
                    return Err(MoveError::Table(
                        "another helenus pull is under way in this server; wait for its end, or helenus pull --stop"
                            .to_owned(),
                    ));
                }
                end(running.take());
                Ok(running.insert(self.start((**order).clone())?).report.lock().clone())
            }
            PullRequest::Status => of(&running).map(|running| running.report.lock().clone()),
            PullRequest::Stop => {
                let running = of(&running)?;
                // Nobody may listen any more.
                let _ = running.stop.send(true);
                Ok(running.report.lock().clone())
            }
        }
    }

    fn start(&self, order: PullOrder) -> Result<Running, MoveError> {
        let writing = (self.begin_writing)().map_err(MoveError::Table)?;
        // The runtime panics where the system gives it no thread.
        check_threads(THREADS + 1).map_err(|_| MoveError::NoThread)?;
        let runtime =
            Builder::new_multi_thread().worker_threads(THREADS).thread_name("pull").enable_all().build();
        let runtime = runtime.map_err(|error| MoveError::Internal(error.to_string()))?;
        let (stop, stopped) = watch::channel(false);
        let report = Arc::new(Mutex::new(PullReport { is_running: true, ..PullReport::default() }));
        let (backend, of_task) = (Arc::clone(&self.backend), Arc::clone(&report));
        runtime.spawn(async move {
            let ends = Ends(Arc::clone(&of_task));
            let done = pull(&backend, &order, &of_task, (&stopped, &Arc::new(Mutex::new(writing)))).await;
            let mut report = of_task.lock();
            report.is_running = false;
            report.error = done.err().map(|error| error.to_string());
            drop(report);
            drop(ends);
        });
        Ok(Running { runtime, stop, report })
    }

    /// Ends the copying, for the end of the process.
    pub fn stop(&self) {
        end(self.running.lock().take());
    }
}

fn of(running: &Option<Running>) -> Result<&Running, MoveError> {
    running.as_ref().ok_or_else(|| MoveError::Table("no helenus pull is under way in this server".to_owned()))
}

fn end(running: Option<Running>) {
    if let Some(running) = running {
        let _ = running.stop.send(true);
        running.runtime.shutdown_timeout(PATIENCE);
    }
}

impl Drop for Puller {
    fn drop(&mut self) {
        self.stop();
    }
}
