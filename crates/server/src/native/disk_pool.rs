//! The disk pool: threads that run requests again from their start if their reads missed memory. They may wait.
//!
//! The number of threads and the queue are bounded. When the queue is full, requests are answered with Overloaded. A
//! thread is started when a job finds none idle, and lives until the server stops.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use helenus_cql::backend::{Backend, Identity};
use helenus_host::account::{self, Charge, Refusal, Scope, Share, Waits};
use helenus_host::{Clock, Host, Next, TaskHandle, Worker, contain, real::lower_thread_priority};
use helenus_wire::native::{
    BodyCodec, Compression, Envelope, ErrorCode, ErrorMessage, Header, Outgoing, ResponseHead, Version,
    decode_request,
};
use parking_lot::{Condvar, Mutex};

use super::answer::{Caller, Held, Reply, Tools, answer};
use super::in_flight::Reservation;
use super::mailbox::Mailbox;
use super::requests::PANICKED;
use crate::admin::Pool;
use crate::audit::Audit;
use crate::log::SlowStatements;

/// From this body size on, a request runs here from the start: it needs room on the memory account, and may have to
/// wait for it.
pub(super) const LARGE_BODY_BYTES: usize = 256 << 10;

/// A request with everything that another thread needs to answer it.
pub(super) struct Job {
    pub mailbox: Arc<Mailbox>,
    pub head: ResponseHead<'static>,
    pub header: Header,
    pub body: Vec<u8>,
    /// The offset in `body` where the request's body begins.
    pub body_from: usize,
    /// Whether the body is as received, so perhaps compressed.
    pub is_raw: bool,
    pub keyspace: Option<Arc<str>>,
    pub identity: Identity,
    pub client: Option<std::net::SocketAddr>,
    pub drawn: Option<uuid::Uuid>,
    pub compression: Option<Compression>,
    pub reservation: Reservation,
    /// When the request arrived, by the coarse clock; `None` if slow statements are not logged.
    pub began_ns: Option<u64>,
}

/// The answer to a job.
pub(super) struct Finished {
    /// The whole envelope, unless `held` has it.
    pub envelope: Vec<u8>,
    /// The answer waits for the commit log.
    pub held: Option<Held>,
    /// The charge for a long envelope on the memory account.
    pub charge: Option<Charge>,
    /// The new keyspace, if the request was a USE.
    pub keyspace: Option<Arc<str>>,
    /// The identity, if the request was a login that succeeded.
    pub identity: Option<Identity>,
    /// How long the answer has to wait: that of a failed login.
    pub wait: Duration,
    /// Released once the answer is in the connection's buffer.
    pub reservation: Option<Reservation>,
    /// The code, if the answer is an ERROR.
    pub error: Option<ErrorCode>,
}

/// The pool.
pub(super) struct DiskPool {
    host: Host,
    shared: Arc<Shared>,
    /// The beginning of the threads' names.
    name: &'static str,
    threads_max: usize,
    queue_max: usize,
}

/// The logs of requests.
pub(super) struct Reports {
    /// That of slow and failed statements.
    pub slow: Option<Arc<SlowStatements>>,
    /// The audit log.
    pub audit: Option<Arc<Audit>>,
}

struct Shared {
    /// The largest size to which a body may decompress.
    frame_bytes_max: u64,
    backend: Arc<dyn Backend>,
    clock: Arc<dyn Clock>,
    reports: Reports,
    state: Mutex<State>,
    /// Notified when a job ends.
    ended: Condvar,
    /// The answers that wait.
    delayed: Mutex<Delayed>,
}

/// The answers to failed logins that wait for their time. No thread waits with them.
#[derive(Default)]
struct Delayed {
    /// The connection of each, and when its answer is due.
    answers: Vec<(u64, Arc<Mailbox>, Finished)>,
    /// The server stops: nothing waits any more.
    is_over: bool,
}

impl Shared {
    /// Leaves an answer for its connection, now or once it is due.
    fn finish(&self, mailbox: Arc<Mailbox>, finished: Finished) {
        if finished.wait.is_zero() {
            return mailbox.finish(finished);
        }
        let mut delayed = self.delayed.lock();
        if delayed.is_over {
            drop(delayed);
            return mailbox.finish(finished);
        }
        let wait_ns = u64::try_from(finished.wait.as_nanos()).unwrap_or(u64::MAX);
        let due_ns = self.clock.monotonic_ns().saturating_add(wait_ns);
        delayed.answers.push((due_ns, mailbox, finished));
    }
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
        let shared = Arc::new(Shared {
            frame_bytes_max,
            backend,
            clock: host.clock.clone(),
            reports,
            state: Mutex::default(),
            ended: Condvar::new(),
            delayed: Mutex::default(),
        });
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

    /// Leaves the delayed answers that are due for their connections. Called in each of the server's ticks.
    pub fn send_due(&self) {
        let mut delayed = self.shared.delayed.lock();
        if delayed.answers.is_empty() {
            return;
        }
        let now_ns = self.shared.clock.monotonic_ns();
        let is_due = |answer: &mut (u64, Arc<Mailbox>, Finished)| answer.0 <= now_ns;
        let due: Vec<_> = delayed.answers.extract_if(.., is_due).collect();
        drop(delayed);
        due.into_iter().for_each(|(_, mailbox, finished)| mailbox.finish(finished));
    }

    /// Leaves all delayed answers for their connections, and delays none from now on.
    pub fn end_delays(&self) {
        let answers = {
            let mut delayed = self.shared.delayed.lock();
            delayed.is_over = true;
            std::mem::take(&mut delayed.answers)
        };
        answers.into_iter().for_each(|(_, mailbox, finished)| mailbox.finish(finished));
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
            let mailbox = Arc::clone(&job.mailbox);
            let (head, compression) = (job.head, job.compression);
            let tools = &mut self.tools;
            let ran = contain(|| run(&self.shared, job, tools));
            // The panic hook has logged the panic. Only this request fails; the thread goes on.
            self.shared.finish(mailbox, ran.unwrap_or_else(|_| panicked(head, compression)));
        }
        self.shared.state.lock().running.remove(&self.number);
        self.shared.ended.notify_all();
        Next::Again
    }
}

fn run(shared: &Shared, job: Job, tools: &mut Tools) -> Finished {
    let caller = Caller {
        backend: shared.backend.as_ref(),
        identity: &job.identity,
        client: job.client,
        certificate: job.mailbox.certificate.get(),
        drawn: job.drawn,
        keyspace: job.keyspace.as_deref(),
        version: job.head.version,
        compression: job.compression,
        may_block: true,
        cancelled: &job.mailbox.gone,
        warned_of_use: &job.mailbox.warned_of_use,
        clock: &*shared.clock,
        slow: shared.reports.slow.as_deref(),
        audit: shared.reports.audit.as_deref().filter(|audit| audit.is_on()),
        began_ns: job.began_ns,
    };
    let mut scope = Scope::begin(Share::Requests, Waits::ForRoom);
    let mut envelope = Vec::new();
    tools.forget_time();
    let (held, became, failed) = loop {
        let done = serve(shared, (&job, &caller), tools, &mut envelope);
        tools.trim();
        if !scope.should_retry() {
            break done;
        }
        envelope = Vec::new();
        tools.drop_lines();
    };
    tools.hand_over_lines(shared.reports.audit.as_deref());
    let Job { body, reservation, .. } = job;
    drop(body);
    let of_held = held.as_ref().and_then(|held: &Held| held.envelope.as_ref()).map_or(0, Vec::capacity);
    let answer_bytes = envelope.capacity() + of_held;
    let charge =
        (answer_bytes >= LARGE_BODY_BYTES).then(|| scope.hand_over(Share::Answers, answer_bytes as u64));
    let (keyspace, identity, wait) = match became {
        Some(Became::InKeyspace(keyspace)) => (Some(keyspace), None, Duration::ZERO),
        Some(Became::LoggedIn(identity)) => (None, Some(identity), Duration::ZERO),
        Some(Became::Delayed(wait)) => (None, None, wait),
        None => (None, None, Duration::ZERO),
    };
    Finished {
        envelope,
        held,
        charge,
        keyspace,
        identity,
        wait,
        reservation: Some(reservation),
        error: failed,
    }
}

/// What a request changed of its connection.
enum Became {
    InKeyspace(Arc<str>),
    LoggedIn(Identity),
    Delayed(Duration),
}

/// How a job ended, besides its envelope: an answer that waits for the log, a change of the connection, the code of an
/// error.
type Served = (Option<Held>, Option<Became>, Option<ErrorCode>);

/// Serves a job once and puts its answer into `envelope`.
fn serve(
    shared: &Shared,
    (job, caller): (&Job, &Caller<'_>),
    tools: &mut Tools,
    envelope: &mut Vec<u8>,
) -> Served {
    let mut unfolding = job.is_raw.then_some(job.compression).flatten().map(BodyCodec::new);
    let header = job.header;
    let decoded = decompress(&mut unfolding, job, shared.frame_bytes_max).and_then(|body| {
        // A write copies its values into rows and again into its log record.
        let grown = if body.len() >= LARGE_BODY_BYTES { account::grow(2 * body.len()) } else { Ok(()) };
        grown.map_err(overloaded)?;
        decode_request(header.version, header.opcode, header.flags, body)
            .map_err(|error| ErrorMessage::from(&error))
    });
    match decoded {
        Ok(message) => match answer(caller, job.head, &message.request, tools, envelope) {
            Reply::Written | Reply::WouldBlock | Reply::Cancelled => (None, None, None),
            Reply::Refused(code) => (None, None, Some(code)),
            Reply::UsedKeyspace(used) => (None, Some(Became::InKeyspace(used)), None),
            Reply::LoggedIn(identity) => (None, Some(Became::LoggedIn(identity)), None),
            Reply::LoginRefused(code, wait) => (None, Some(Became::Delayed(wait)), Some(code)),
            Reply::Held(waiting) => (Some(waiting), None, None),
        },
        Err(message) => {
            let codec = tools.codec(job.compression.filter(|_| job.head.version < Version::V5));
            let _fits = Outgoing::Error(&message).encode(&job.head, codec, envelope);
            (None, None, Some(message.detail.code()))
        }
    }
}

/// The body of a job, decompressed.
fn decompress<'a>(
    codec: &'a mut Option<BodyCodec>,
    job: &'a Job,
    bytes_max: u64,
) -> Result<&'a [u8], ErrorMessage> {
    let body = job.body.get(job.body_from..).unwrap_or_default();
    let envelope = Envelope { header: job.header, body };
    let (Some(codec), Some(compression)) = (codec, job.compression) else { return Ok(body) };
    let length = BodyCodec::decompressed_length(compression, &envelope).unwrap_or(0).min(bytes_max);
    account::grow(usize::try_from(length).unwrap_or(usize::MAX)).map_err(overloaded)?;
    codec.decompress(&envelope, bytes_max).map_err(|error| ErrorMessage::from(&error))
}

fn overloaded(refusal: Refusal) -> ErrorMessage {
    ErrorMessage::plain(ErrorCode::Overloaded, refusal.to_string())
}

fn panicked(head: ResponseHead<'static>, compression: Option<Compression>) -> Finished {
    let message = ErrorMessage::plain(ErrorCode::Server, PANICKED);
    let mut envelope = Vec::new();
    let mut tools = Tools::default();
    let _fits = Outgoing::Error(&message).encode(&head, tools.codec(compression), &mut envelope);
    Finished {
        envelope,
        held: None,
        charge: None,
        keyspace: None,
        identity: None,
        wait: Duration::ZERO,
        reservation: None,
        error: Some(ErrorCode::Server),
    }
}
