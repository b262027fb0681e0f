//! The disk threads: requests whose reads missed memory run here again, from their start, where they may wait.
//!
//! Bounded in threads and in queue; a full queue answers Overloaded. Threads start as they are needed and stay.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use helenus_cql::backend::{Backend, Identity};
use helenus_host::{Clock, Host, Next, TaskHandle, Worker, contain};
use helenus_wire::native::{
    Compression, ErrorCode, ErrorMessage, Flags, Opcode, Outgoing, ResponseHead, Version, decode_request,
};
use parking_lot::Mutex;

use super::answer::{Caller, Held, Reply, Tools, answer};
use super::ledger::Reservation;
use super::mailbox::Mailbox;
use super::requests::PANICKED;
use crate::admin::Pool;
use crate::log::SlowStatements;

/// A request, with all that is needed to answer it elsewhere.
pub(super) struct Job {
    pub mailbox: Arc<Mailbox>,
    pub head: ResponseHead<'static>,
    pub opcode: Opcode,
    pub flags: Flags,
    /// The body, decompressed.
    pub body: Vec<u8>,
    pub keyspace: Option<Arc<str>>,
    pub identity: Identity,
    pub client: Option<std::net::SocketAddr>,
    pub drawn: Option<uuid::Uuid>,
    pub compression: Option<Compression>,
    pub reservation: Reservation,
    /// When it came, by the coarse clock; `None`: nobody watches for slow statements.
    pub began_ns: Option<u64>,
}

/// The answer to a job.
pub(super) struct Finished {
    /// A whole envelope, unless held.
    pub envelope: Vec<u8>,
    /// The answer waits for the log.
    pub held: Option<Held>,
    /// USE was obeyed.
    pub keyspace: Option<Arc<str>>,
    /// Given back once the answer is in the connection's buffer.
    pub reservation: Option<Reservation>,
    /// The code of the error that the answer is, if it is one.
    pub error: Option<ErrorCode>,
}

/// The pool.
pub(super) struct DiskPool {
    host: Host,
    shared: Arc<Shared>,
    threads_max: usize,
    queue_max: usize,
}

struct Shared {
    backend: Arc<dyn Backend>,
    clock: Arc<dyn Clock>,
    slow: Option<Arc<SlowStatements>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Job>,
    threads: Vec<Arc<dyn TaskHandle>>,
    idle: Vec<usize>,
    /// Jobs that a thread has taken.
    taken: u64,
    refused: u64,
    stopping: bool,
}

impl DiskPool {
    pub fn new(
        host: Host,
        backend: Arc<dyn Backend>,
        threads_max: usize,
        queue_max: usize,
        slow: Option<Arc<SlowStatements>>,
    ) -> DiskPool {
        let shared = Arc::new(Shared { backend, clock: host.clock.clone(), slow, state: Mutex::default() });
        DiskPool { host, shared, threads_max: threads_max.max(1), queue_max }
    }

    /// Jobs that wait, and threads.
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
            let thread = Thread { shared: Arc::clone(&self.shared), number, tools: Tools::default() };
            state.threads.push(self.host.tasks.start(&format!("disk-{number}"), Box::new(thread)));
        }
        true
    }

    /// How busy it is.
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
    tools: Tools,
}

impl Worker for Thread {
    fn step(&mut self) -> Next {
        let job = {
            let mut state = self.shared.state.lock();
            match state.queue.pop_front() {
                Some(job) => {
                    state.taken += 1;
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
            let mailbox = Arc::clone(&job.mailbox);
            let (head, compression) = (job.head, job.compression);
            let tools = &mut self.tools;
            let ran = contain(|| run(&self.shared, job, tools));
            // The panic hook has written what happened; here one request fails and the thread goes on.
            mailbox.finish(ran.unwrap_or_else(|_| panicked(head, compression)));
        }
        Next::Again
    }
}

fn run(shared: &Shared, job: Job, tools: &mut Tools) -> Finished {
    let caller = Caller {
        backend: shared.backend.as_ref(),
        identity: &job.identity,
        client: job.client,
        drawn: job.drawn,
        keyspace: job.keyspace.as_deref(),
        version: job.head.version,
        compression: job.compression,
        may_block: true,
        cancelled: &job.mailbox.gone,
        warned_of_use: &job.mailbox.warned_of_use,
        clock: &*shared.clock,
        slow: shared.slow.as_deref(),
        began_ns: job.began_ns,
    };
    let mut envelope = Vec::new();
    let (mut held, mut keyspace, mut failed) = (None, None, None);
    match decode_request(job.head.version, job.opcode, job.flags, &job.body) {
        Ok(message) => match answer(&caller, job.head, &message.request, tools, &mut envelope) {
            Reply::Written | Reply::WouldBlock | Reply::Cancelled => {}
            Reply::Refused(code) => failed = Some(code),
            Reply::UsedKeyspace(used) => keyspace = Some(used),
            Reply::Held(waiting) => held = Some(waiting),
        },
        // It was decoded once before, so this cannot come to pass.
        Err(error) => {
            let codec = tools.codec(job.compression.filter(|_| job.head.version < Version::V5));
            let _fits = Outgoing::Error(&ErrorMessage::from(&error)).encode(&job.head, codec, &mut envelope);
        }
    }
    Finished { envelope, held, keyspace, reservation: Some(job.reservation), error: failed }
}

fn panicked(head: ResponseHead<'static>, compression: Option<Compression>) -> Finished {
    let message = ErrorMessage::plain(ErrorCode::Server, PANICKED);
    let mut envelope = Vec::new();
    let mut tools = Tools::default();
    let _fits = Outgoing::Error(&message).encode(&head, tools.codec(compression), &mut envelope);
    Finished { envelope, held: None, keyspace: None, reservation: None, error: Some(ErrorCode::Server) }
}
