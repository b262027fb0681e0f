//! A request that runs where it may wait: everything that another thread needs to answer it, and the answer.
//!
//! The threads of `disk_pool` and of the login pool (`login_job`) run jobs with a `JobRunner`, which leaves the answers in the
//! mailboxes of the connections. The answer to a failed login waits there for its time.

use std::sync::Arc;
use std::time::Duration;

use helenus_cql::backend::{Backend, Identity};
use helenus_host::account::{self, Charge, Refusal, Scope, Share, Waits};
use helenus_host::{Clock, contain};
use helenus_wire::native::{
    BodyCodec, Compression, Envelope, ErrorCode, ErrorMessage, EventTypes, Header, Outgoing, ResponseHead,
    Version, decode_request,
};
use parking_lot::Mutex;

use super::answer::{Caller, Held, Reply, Tools, answer};
use super::in_flight::Reservation;
use super::mailbox::Mailbox;
use super::requests::PANICKED;
use crate::audit::Audit;
use crate::log::SlowStatements;

/// From this body size on, a request runs here from the start: it needs room on the memory account, and may have to
/// wait for it.
pub(super) const LARGE_BODY_BYTES: usize = 256 << 10;

/// The answer to a request that the server does not run to its end because it stops.
pub(super) const STOPS: &str = "The server stops and has not run this request; try again later";

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
    /// The events that the client wants, if the request was a REGISTER.
    pub registered: Option<EventTypes>,
    /// How long the answer has to wait: that of a failed login.
    pub wait: Duration,
    /// Released once the answer is in the connection's buffer.
    pub reservation: Option<Reservation>,
    /// The code, if the answer is an ERROR.
    pub error: Option<ErrorCode>,
}

/// The logs of requests.
pub(super) struct Reports {
    /// That of slow and failed statements.
    pub slow: Option<Arc<SlowStatements>>,
    /// The audit log.
    pub audit: Option<Arc<Audit>>,
}

/// Runs jobs and leaves their answers.
pub(super) struct JobRunner {
    /// The largest size to which a body may decompress.
    frame_bytes_max: u64,
    backend: Arc<dyn Backend>,
    clock: Arc<dyn Clock>,
    reports: Reports,
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
    /// All connections are to come to rest: nothing waits meanwhile.
    is_suspended: bool,
}

impl JobRunner {
    pub fn new(
        clock: Arc<dyn Clock>,
        backend: Arc<dyn Backend>,
        frame_bytes_max: u64,
        reports: Reports,
    ) -> JobRunner {
        JobRunner { frame_bytes_max, backend, clock, reports, delayed: Mutex::default() }
    }

    /// The audit log, if it is on.
    pub fn audit(&self) -> Option<&Audit> {
        self.reports.audit.as_deref().filter(|audit| audit.is_on())
    }

    /// Runs a job and leaves its answer for its connection. A panic fails only this request.
    pub fn run(&self, job: Job, tools: &mut Tools) {
        let mailbox = Arc::clone(&job.mailbox);
        let (head, compression) = (job.head, job.compression);
        let ran = contain(|| run(self, job, tools));
        // The panic hook has logged the panic.
        self.finish(mailbox, ran.unwrap_or_else(|_| panicked(head, compression)));
    }

    /// Answers a job that is not run with Overloaded.
    pub fn refuse(&self, job: Job, text: &'static str) {
        let Job { mailbox, head, compression, reservation, .. } = job;
        mailbox.finish(Finished {
            reservation: Some(reservation),
            ..failed(head, compression, ErrorMessage::plain(ErrorCode::Overloaded, text))
        });
    }

    /// Leaves an answer for its connection, now or once it is due.
    fn finish(&self, mailbox: Arc<Mailbox>, finished: Finished) {
        if finished.wait.is_zero() {
            return mailbox.finish(finished);
        }
        let mut delayed = self.delayed.lock();
        if delayed.is_over || delayed.is_suspended {
            drop(delayed);
            return mailbox.finish(finished);
        }
        let wait_ns = u64::try_from(finished.wait.as_nanos()).unwrap_or(u64::MAX);
        let due_ns = self.clock.monotonic_ns().saturating_add(wait_ns);
        delayed.answers.push((due_ns, mailbox, finished));
    }

    /// Leaves the delayed answers that are due for their connections. Called in each of the server's ticks.
    pub fn send_due(&self) {
        let mut delayed = self.delayed.lock();
        if delayed.answers.is_empty() {
            return;
        }
        let now_ns = self.clock.monotonic_ns();
        let is_due = |answer: &mut (u64, Arc<Mailbox>, Finished)| answer.0 <= now_ns;
        let due: Vec<_> = delayed.answers.extract_if(.., is_due).collect();
        drop(delayed);
        due.into_iter().for_each(|(_, mailbox, finished)| mailbox.finish(finished));
    }

    /// Leaves all delayed answers for their connections, and delays none from now on.
    pub fn end_delays(&self) {
        self.send_all(|delayed| delayed.is_over = true);
    }

    /// The same until `resume_delays`: a request that waits for its answer is in flight.
    pub fn suspend_delays(&self) {
        self.send_all(|delayed| delayed.is_suspended = true);
    }

    /// Delays answers again.
    pub fn resume_delays(&self) {
        self.delayed.lock().is_suspended = false;
    }

    fn send_all(&self, change: impl FnOnce(&mut Delayed)) {
        let answers = {
            let mut delayed = self.delayed.lock();
            change(&mut delayed);
            std::mem::take(&mut delayed.answers)
        };
        answers.into_iter().for_each(|(_, mailbox, finished)| mailbox.finish(finished));
    }
}

fn run(runner: &JobRunner, job: Job, tools: &mut Tools) -> Finished {
    let caller = Caller {
        backend: runner.backend.as_ref(),
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
        has_ended: &job.mailbox.has_ended,
        clock: &*runner.clock,
        slow: runner.reports.slow.as_deref(),
        audit: runner.audit(),
        began_ns: job.began_ns,
    };
    let mut scope = Scope::begin(Share::Requests, Waits::ForRoom);
    let mut envelope = Vec::new();
    tools.forget_time();
    let (held, became, failed) = loop {
        let done = serve(runner, (&job, &caller), tools, &mut envelope);
        tools.trim();
        if !scope.should_retry() {
            break done;
        }
        envelope = Vec::new();
        tools.drop_lines();
    };
    tools.hand_over_lines(runner.reports.audit.as_deref());
    let Job { body, reservation, .. } = job;
    drop(body);
    let of_held = held.as_ref().and_then(|held: &Held| held.envelope.as_ref()).map_or(0, Vec::capacity);
    let answer_bytes = envelope.capacity() + of_held;
    let charge =
        (answer_bytes >= LARGE_BODY_BYTES).then(|| scope.hand_over(Share::Answers, answer_bytes as u64));
    let (mut keyspace, mut identity, mut registered, mut wait) = (None, None, None, Duration::ZERO);
    match became {
        Some(Became::InKeyspace(used)) => keyspace = Some(used),
        Some(Became::LoggedIn(of)) => identity = Some(of),
        Some(Became::Registered(events)) => registered = Some(events),
        Some(Became::Delayed(time)) => wait = time,
        None => {}
    }
    Finished {
        envelope,
        held,
        charge,
        keyspace,
        identity,
        registered,
        wait,
        reservation: Some(reservation),
        error: failed,
    }
}

/// What a request changed of its connection.
enum Became {
    InKeyspace(Arc<str>),
    LoggedIn(Identity),
    Registered(EventTypes),
    Delayed(Duration),
}

/// How a job ended, besides its envelope: an answer that waits for the log, a change of the connection, the code of an
/// error.
type Served = (Option<Held>, Option<Became>, Option<ErrorCode>);

/// Serves a job once and puts its answer into `envelope`.
fn serve(
    runner: &JobRunner,
    (job, caller): (&Job, &Caller<'_>),
    tools: &mut Tools,
    envelope: &mut Vec<u8>,
) -> Served {
    let mut unfolding = job.is_raw.then_some(job.compression).flatten().map(BodyCodec::new);
    let header = job.header;
    let decoded = decompress(&mut unfolding, job, runner.frame_bytes_max).and_then(|body| {
        // A write copies its values into rows and again into its log record.
        let grown = if body.len() >= LARGE_BODY_BYTES { account::grow(2 * body.len()) } else { Ok(()) };
        grown.map_err(overloaded)?;
        decode_request(header.version, header.opcode, header.flags, body)
            .map_err(|error| ErrorMessage::from(&error))
    });
    match decoded {
        Ok(message) => match answer(caller, job.head, &message.request, tools, envelope) {
            Reply::Written | Reply::WouldBlock => (None, None, None),
            // Its client has gone, or the server stops; then the client is told.
            Reply::Cancelled => {
                let message = ErrorMessage::plain(ErrorCode::Overloaded, STOPS);
                let codec = tools.codec(job.compression.filter(|_| job.head.version < Version::V5));
                let _fits = Outgoing::Error(&message).encode(&job.head, codec, envelope);
                (None, None, Some(ErrorCode::Overloaded))
            }
            Reply::Refused(code) => (None, None, Some(code)),
            Reply::UsedKeyspace(used) => (None, Some(Became::InKeyspace(used)), None),
            Reply::LoggedIn(identity) => (None, Some(Became::LoggedIn(identity)), None),
            Reply::Registered(events) => (None, Some(Became::Registered(events)), None),
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
    failed(head, compression, ErrorMessage::plain(ErrorCode::Server, PANICKED))
}

/// The answer of a request that has failed as a whole.
fn failed(head: ResponseHead<'static>, compression: Option<Compression>, message: ErrorMessage) -> Finished {
    let compression = compression.filter(|_| head.version < Version::V5);
    let mut envelope = Vec::new();
    let mut tools = Tools::default();
    let _fits = Outgoing::Error(&message).encode(&head, tools.codec(compression), &mut envelope);
    Finished {
        envelope,
        held: None,
        charge: None,
        keyspace: None,
        identity: None,
        registered: None,
        wait: Duration::ZERO,
        reservation: None,
        error: Some(message.detail.code()),
    }
}
