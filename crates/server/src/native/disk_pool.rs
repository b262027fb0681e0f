//! The disk pool: threads that run requests again from their start if their reads missed memory. They may wait.
//!
//! The number of threads and the queue are bounded. When the queue is full, requests are answered with Overloaded. A
//! thread is started when a job finds none idle, and lives until the server stops.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use helenus_cql::backend::Backend;
use helenus_host::{Host, Next, TaskHandle, Worker, real::lower_thread_priority};
use parking_lot::{Condvar, Mutex};

use super::answer::Tools;
use super::job::{Job, JobRunner, Reports};
use super::mailbox::Mailbox;
use crate::admin::Pool;

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
    queue: VecDeque<Job>,
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

    /// Queues a job; false if the queue is full.
    #[must_use]
    pub fn submit(&self, job: Job) -> bool {
        let mut state = self.shared.state.lock();
        if state.queue.len() >= self.queue_max || state.stopping {
            state.refused += 1;
            return false;
        }
        state.queue.push_back(job);
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
            state.threads.push(self.host.tasks.start(&format!("{}-{number}", self.name), Box::new(thread)));
        }
        true
    }

    /// The pool's counters for `tpstats`.
    pub fn pool(&self) -> Pool {
        let state = self.shared.state.lock();
        let active = (state.threads.len() - state.idle.len()) as u64;
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
        while !(state.queue.is_empty() && state.running.is_empty()) {
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
            match state.queue.pop_front() {
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
        if !job.mailbox.gone.load(Ordering::Acquire) {
            self.shared.runner.run(job, &mut self.tools);
        }
        self.shared.state.lock().running.remove(&self.number);
        self.shared.ended.notify_all();
        Next::Again
    }
}
