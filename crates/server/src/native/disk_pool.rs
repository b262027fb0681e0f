//! The disk pool: threads that run requests again from their start if their reads missed memory. They may wait.
//!
//! The number of threads and the queue are bounded. Connections take turns (`job_queue`); when the queue is full, a request of the
//! connection that has the most is answered with Overloaded. A thread is started when a job finds none idle, and lives until the server stops.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use helenus_cql::backend::Backend;
use helenus_host::{Host, Next, TaskHandle, Worker, real::lower_thread_priority};
use parking_lot::{Condvar, Mutex};

use super::answer::Tools;
use super::job::{Job, JobRunner, Reports, STOPS};
use super::job_queue::JobQueue;
use super::mailbox::Mailbox;
use crate::admin::Pool;

/// The answer to a request that finds no room.
pub(super) const TOO_MANY_JOBS: &str = "Too many requests wait for the disk or for a thread; try again later";

/// The pool.
pub(super) struct DiskPool {
    host: Host,
    shared: Arc<Shared>,
    /// The beginning of the threads' names.
    name: &'static str,
    threads_max: usize,
    queue_max: usize,
}

struct Shared {
    runner: JobRunner,
    state: Mutex<State>,
    /// Notified when a job ends.
    ended: Condvar,
}

/// The name of a pool's threads, and its limits.
pub struct PoolLimits {
    pub name: &'static str,
    pub threads_max: usize,
    /// Jobs that may wait.
    pub queue_max: usize,
    /// The longest answer, bytes.
    pub frame_bytes_max: u64,
}

#[derive(Default)]
struct State {
    queue: JobQueue<Job>,
    /// The connections whose jobs run now, by thread number.
    running: BTreeMap<usize, Arc<Mailbox>>,
    threads: Vec<Arc<dyn TaskHandle>>,
    idle: Vec<usize>,
    /// Jobs that threads have taken so far.
    taken: u64,
    refused: u64,
    stopping: bool,
}

impl DiskPool {
    pub fn new(host: Host, backend: Arc<dyn Backend>, limits: PoolLimits, reports: Reports) -> DiskPool {
        let PoolLimits { name, threads_max, queue_max, frame_bytes_max } = limits;
        let runner = JobRunner::new(host.clock.clone(), backend, frame_bytes_max, reports);
        let shared = Arc::new(Shared { runner, state: Mutex::default(), ended: Condvar::new() });
        DiskPool { host, shared, name, threads_max: threads_max.max(1), queue_max }
    }

    /// The number of waiting jobs and the number of threads.
    pub fn figures(&self) -> (u64, u64) {
        let state = self.shared.state.lock();
        (state.queue.len() as u64, state.threads.len() as u64)
    }

    /// Queues a job. Returns one that has no room, this one or another: the caller answers it.
    #[must_use]
    pub fn submit(&self, job: Job) -> Option<Job> {
        let mut state = self.shared.state.lock();
        if state.stopping {
            state.refused += 1;
            return Some(job);
        }
        let connection = Arc::as_ptr(&job.mailbox).addr();
        let refused = state.queue.push(connection, job, self.queue_max);
        state.refused += u64::from(refused.is_some());
        self.find_thread(&mut state);
        match state.threads.is_empty() {
            true => refused.or_else(|| state.queue.pop()),
            false => refused,
        }
    }

    /// Wakes an idle thread, or starts one.
    fn find_thread(&self, state: &mut State) {
        if state.queue.len() == 0 {
            return;
        }
        if let Some(thread) = state.idle.pop() {
            if let Some(thread) = state.threads.get(thread) {
                thread.wake();
            }
        } else if state.threads.len() < self.threads_max {
            let number = state.threads.len();
            let thread = Thread {
                shared: Arc::clone(&self.shared),
                number,
                has_low_priority: false,
                tools: Tools::default(),
            };
            // If the system gives no further thread, those that there are take the job.
            let started = self.host.tasks.try_start(&format!("{}-{number}", self.name), Box::new(thread));
            state.threads.extend(started.ok());
        }
    }

    /// Leaves the answer that there is no room for its connection.
    pub fn refuse(&self, job: Job) {
        self.shared.runner.refuse(job, TOO_MANY_JOBS);
    }

    /// The pool's counters for `tpstats`.
    pub fn pool(&self) -> Pool {
        let state = self.shared.state.lock();
        let active = state.threads.len().saturating_sub(state.idle.len()) as u64;
        Pool {
            name: "ReadStage".to_owned(),
            active,
            pending: state.queue.len() as u64,
            completed: state.taken.saturating_sub(active),
            refused: state.refused,
        }
    }

    /// Waits up to `patience` for all jobs to end, then cancels the rest.
    pub fn drain(&self, patience: Duration) {
        let clock = &self.host.clock;
        let due_ns =
            clock.monotonic_ns().saturating_add(u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX));
        let mut state = self.shared.state.lock();
        while state.queue.len() > 0 || !state.running.is_empty() {
            let left = Duration::from_nanos(due_ns.saturating_sub(clock.monotonic_ns()));
            if left.is_zero() || self.shared.ended.wait_for(&mut state, left).timed_out() {
                let queued = state.queue.iter().map(|job| &job.mailbox);
                for mailbox in queued.chain(state.running.values()) {
                    mailbox.gone.store(true, Ordering::Release);
                }
                return;
            }
        }
    }

    /// Ends the threads once the queue is empty, and waits for them.
    pub fn stop(&self) {
        let threads = {
            let mut state = self.shared.state.lock();
            state.stopping = true;
            state.idle.clear();
            std::mem::take(&mut state.threads)
        };
        for thread in &threads {
            thread.wake();
        }
        for thread in &threads {
            thread.join();
        }
    }
}

struct Thread {
    shared: Arc<Shared>,
    number: usize,
    /// Set in the first step. The event loops run first: short requests do not wait for long ones.
    has_low_priority: bool,
    tools: Tools,
}

impl Worker for Thread {
    fn step(&mut self) -> Next {
        if !self.has_low_priority {
            lower_thread_priority();
            self.has_low_priority = true;
        }
        let job = {
            let mut state = self.shared.state.lock();
            match state.queue.pop() {
                Some(job) => {
                    state.taken += 1;
                    state.running.insert(self.number, Arc::clone(&job.mailbox));
                    job
                }
                None if state.stopping => return Next::Done,
                None => {
                    if !state.idle.contains(&self.number) {
                        state.idle.push(self.number);
                    }
                    return Next::Wait;
                }
            }
        };
        match job.mailbox.gone.load(Ordering::Acquire) {
            // The client has gone, or the server stops; then its connection still waits for an answer.
            true => self.shared.runner.refuse(job, STOPS),
            false => self.shared.runner.run(job, &mut self.tools),
        }
        self.shared.state.lock().running.remove(&self.number);
        self.shared.ended.notify_all();
        Next::Again
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use helenus_cql::{LocalBackend, LocalOptions};
    use helenus_engine::{Database, DatabaseOptions};

    #[test]
    fn a_pool_whose_threads_have_ended_has_none_that_are_active() {
        let host = helenus_host::sim::Machine::new(1).host();
        let (database, _) = Database::open(host.clone(), DatabaseOptions::new("/db")).unwrap();
        let backend = LocalBackend::new(database, LocalOptions::default());
        let limits = PoolLimits { name: "disk", threads_max: 2, queue_max: 2, frame_bytes_max: 1 << 20 };
        let pool = DiskPool::new(host, backend, limits, Reports { slow: None, audit: None });
        // As threads leave it that have run all jobs.
        pool.shared.state.lock().idle.extend([0, 1]);
        pool.stop();
        let Pool { active, pending, completed, .. } = pool.pool();
        assert_eq!((active, pending, completed), (0, 0, 0));
    }
}
