//! The requests of one connection: each is answered at once, sent to the disk pool, or held until it is in the commit
//! log.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use helenus_cql::backend::{Identity, InFlight};
use helenus_host::account::{Charge, Scope, Share, Waits};
use helenus_host::contain;
use helenus_logins::sasl_plain;
use helenus_wire::WireError;
use helenus_wire::native::{
    BEFORE_LOGIN_BYTES_MAX, BodyCodec, EVENT_STREAM, Envelope, ErrorCode, ErrorMessage, Event, EventType,
    EventTypes, Flags, Header, Opcode, Outgoing, Refusal, Request, ResponseHead, Startup, Version,
    decode_request,
};

use super::answer::{Caller, Held, Reply, Tools, answer, tracing_id};
use super::connection::Scratch;
use super::disk_pool::TOO_MANY_JOBS;
use super::errors::{log_failed, schema_change, timed_out};
use super::event_loops::Shared;
use super::hand_over::Order;
use super::in_flight::{ConnectionShare, Reservation};
use super::job::{Finished, Job, LARGE_BODY_BYTES};
use super::limits::{SMALL_REQUEST_BYTES_MAX, TICK};
use super::login_job::{LoginJob, note_refusal};
use super::mailbox::Mailbox;
use super::output::Output;
use super::session::{CQL_VERSION, Session, Stage};

/// The error text for a request that panicked.
pub(super) const PANICKED: &str = "internal error, a bug; the server's log has its place";

/// Most answers of a connection that wait for the log or a disk thread: the number of streams.
const IN_FLIGHT_MAX: usize = 1 << 15;

/// The longest body of a request that an event loop answers by itself: some milliseconds of copying.
const BODY_AT_ONCE_BYTES: usize = 1 << 20;

/// The outcome of a request for the reader of frames.
pub(super) enum Handled {
    /// The body was decoded, whatever the answer is.
    Answered,
    /// The body could not be decoded; an ERROR was sent.
    Faulty,
    /// It was a STARTUP, which fixes the version.
    Started(Version),
}

/// A request for the backend.
struct Asked<'a> {
    request: &'a Request<'a>,
    head: ResponseHead<'static>,
    header: Header,
    /// The body, decompressed.
    body: &'a [u8],
}

/// An answer that waits for the commit log.
struct Waiting {
    held: Held,
    /// When it began to wait, in the server's ticks.
    since_tick: u64,
    /// Bytes of its request.
    bytes: u64,
    /// Set if the request is not answered within the poll that received it.
    reservation: Option<Reservation>,
    /// The charge of a long answer on the memory account.
    charge: Option<Charge>,
    /// The request among those of its client's role, unless the reservation has it.
    _of_role: Option<InFlight>,
}

/// All of a connection but its framing and its stream.
pub(super) struct Requests {
    pub shared: Arc<Shared>,
    pub mailbox: Arc<Mailbox>,
    pub session: Session,
    pub share: ConnectionShare,
    pub output: Output,
    /// The connection ends after the answers it has.
    pub closing: bool,
    /// No further request is begun, because the server waits (`hand_over`). Set at the beginning of each round of a poll.
    pub waits: bool,
    client: Option<SocketAddr>,
    held: Vec<Waiting>,
    /// Jobs in the disk pool, and the login.
    disk_jobs_count: usize,
    /// A login has begun since nothing was in progress. It may be a further one of a client that has logged in.
    login_runs: bool,
    /// Bytes of held requests that have no reservation yet.
    held_bytes: u64,
    /// An answer was held since the log was last told to write.
    fresh: bool,
}

impl Requests {
    pub fn new(
        shared: Arc<Shared>,
        mailbox: Arc<Mailbox>,
        session: Session,
        client: Option<SocketAddr>,
        share: ConnectionShare,
    ) -> Requests {
        mailbox.facts.lock().address = client;
        Requests {
            shared,
            mailbox,
            session,
            share,
            output: Output::default(),
            closing: false,
            waits: false,
            client,
            held: Vec::new(),
            disk_jobs_count: 0,
            login_runs: false,
            held_bytes: 0,
            fresh: false,
        }
    }

    /// The session and the unsent answers of a connection that ends here and goes on elsewhere. Events that wait until its client has read
    /// go with them: nobody tells it of them there.
    pub fn into_parts(mut self) -> (Session, Output) {
        self.take_left(true, &mut Tools::default());
        (std::mem::replace(&mut self.session, Session::new(false)), std::mem::take(&mut self.output))
    }

    /// Requests that are not answered yet.
    pub fn in_flight_count(&self) -> usize {
        self.held.len() + self.disk_jobs_count
    }

    /// The most requests that are in progress at a time: one login, or many requests after it. However the requests arrive, alone
    /// or several in a segment.
    pub fn in_flight_max(&self) -> usize {
        if self.session.stage == Stage::Authenticating || self.login_runs { 1 } else { IN_FLIGHT_MAX }
    }

    /// Notes for this order, if the server waits, that no request is in flight.
    pub fn note_rest(&self, order: Order) {
        if self.waits {
            self.shared.hand_over.note_rest(&self.mailbox, order);
        }
    }

    /// Whether the connection is to end and has nothing left to answer.
    pub fn is_finished(&self) -> bool {
        (self.is_closing() || self.is_leaving()) && self.in_flight_count() == 0
    }

    /// Whether the connection ends after the answers it has, whose client should still read the last one.
    pub fn is_closing(&self) -> bool {
        self.closing || self.mailbox.has_ended.load(Ordering::Acquire)
    }

    /// Whether no more input is to be read.
    pub fn is_leaving(&self) -> bool {
        self.shared.is_stopping() || self.mailbox.leaving.load(Ordering::Acquire) || self.is_closing()
    }

    fn use_keyspace(&mut self, keyspace: Option<Arc<str>>) {
        self.mailbox.facts.lock().keyspace.clone_from(&keyspace);
        self.session.keyspace = keyspace;
    }

    fn log_in(&mut self, identity: Identity) {
        // However it has logged in: limits to networks are checked by this address.
        let identity = identity.at(self.client.map(|client| client.ip()));
        self.mailbox.facts.lock().role.clone_from(&identity.role);
        self.session.logged_in(identity);
    }

    fn register(&mut self, events: EventTypes) {
        self.session.events = self.session.events.and(events);
        let schema = self.session.events.contains(EventType::SchemaChange);
        self.mailbox.wants_schema.store(schema, Ordering::Release);
    }

    fn note_startup(&self, startup: &Startup<'_>, version: Version) {
        let now_ms = self.shared.host.clock.wall_us() / 1000;
        let mut facts = self.mailbox.facts.lock();
        if let Some(address) = facts.address {
            self.shared.history.note(version as u8, address.ip(), now_ms);
        }
        facts.version = version as u8;
        facts.needs_login = self.session.stage == Stage::Authenticating;
        facts.options = shown_options(startup);
    }

    /// Serves one request.
    pub fn handle(&mut self, envelope: &Envelope<'_>, scratch: &mut Scratch) -> Handled {
        let header = envelope.header;
        self.login_runs &= self.in_flight_count() > 0;
        self.mailbox.count_request(header.opcode);
        let mut head = ResponseHead::new(header.version, header.stream);
        if self.session.stage != Stage::Ready && u64::from(header.length) > BEFORE_LOGIN_BYTES_MAX {
            return self.refuse_long_stranger(&head, scratch);
        }
        if self.session.stage == Stage::Initial {
            if let Err(message) = self.session.admit(header.opcode) {
                self.put(&Outgoing::Error(&message), &head, &mut scratch.tools);
                self.closing = true;
                return Handled::Answered;
            }
        } else if self.session.throws_on_overload
            && !self.share.account.has_room(self.held_bytes + u64::from(header.length))
        {
            let text = self.share.account.overloaded(header.version >= Version::V5);
            self.note_overload(&text);
            let message = ErrorMessage::plain(ErrorCode::Overloaded, text);
            self.put(&Outgoing::Error(&message), &head, &mut scratch.tools);
            return Handled::Answered;
        }
        let Scratch { tools, decompress: unfold, .. } = scratch;
        if self.is_large(envelope) {
            self.send_to_disk_pool((header, head), (envelope.body.to_vec(), 0), tools);
            return Handled::Answered;
        }
        let body = match unfold.codec(self.session.body_compression()) {
            Some(codec) => codec.decompress(envelope, self.decompressed_bytes_max(header.opcode)),
            None => Ok(envelope.body),
        };
        if self.session.stage != Stage::Ready && matches!(body, Err(WireError::UnfoldsTooBig { .. })) {
            return self.refuse_long_stranger(&head, scratch);
        }
        let decoded = body
            .and_then(|body| Ok((decode_request(header.version, header.opcode, header.flags, body)?, body)));
        let (message, body) = match decoded {
            Ok(decoded) => decoded,
            Err(error) => {
                self.put(&Outgoing::Error(&ErrorMessage::from(&error)), &head, tools);
                return Handled::Faulty;
            }
        };
        if let Err(message) = self.session.admit(header.opcode) {
            self.put(&Outgoing::Error(&message), &head, tools);
            return Handled::Answered;
        }
        match &message.request {
            Request::Startup(startup) => {
                self.session.version = Some(header.version);
                self.session.stage = Stage::Established;
                let authenticator = self.shared.backend.authenticator();
                match self.session.start(startup, header.version, authenticator) {
                    Ok(ready) => {
                        self.note_startup(startup, header.version);
                        self.put(&ready, &head, tools);
                    }
                    Err(error) => self.put(&Outgoing::Error(&ErrorMessage::from(&error)), &head, tools),
                }
                return Handled::Started(header.version);
            }
            Request::Options => self.put(&Outgoing::Supported { cql_version: CQL_VERSION }, &head, tools),
            Request::AuthResponse(token) if self.shared.backend.authenticator().is_some() => {
                self.send_login(header, head, (body, *token), tools);
            }
            // Without logins, Cassandra's negotiator accepts any token.
            Request::AuthResponse(_) => self.put(&Outgoing::AuthSuccess(None), &head, tools),
            request => {
                // As in Cassandra, REGISTER is not traced.
                if message.tracing && !matches!(request, Request::Register(_)) {
                    head.tracing_id = Some(tracing_id(&self.shared.host));
                }
                self.ask(&Asked { request, head, header, body }, tools);
            }
        }
        Handled::Answered
    }

    /// Ends a connection that sends a message before its login that no login needs.
    #[cold]
    fn refuse_long_stranger(&mut self, head: &ResponseHead<'static>, scratch: &mut Scratch) -> Handled {
        let error = WireError::TooLongBeforeLogin { bytes_max: BEFORE_LOGIN_BYTES_MAX };
        self.put(&Outgoing::Error(&ErrorMessage::from(&error)), head, &mut scratch.tools);
        self.closing = true;
        Handled::Answered
    }

    /// The most bytes to which a body may decompress. Only a request for the backend may be long, and only after the login: until
    /// then a client is a stranger, and the server must not hold more of it than it has sent.
    fn decompressed_bytes_max(&self, opcode: Opcode) -> u64 {
        let bytes_max = self.shared.limits.frame_bytes_max;
        match self.session.stage == Stage::Ready {
            true if is_for_backend(opcode) => bytes_max,
            true => bytes_max.min(SMALL_REQUEST_BYTES_MAX),
            false => bytes_max.min(BEFORE_LOGIN_BYTES_MAX),
        }
    }

    /// Whether a request must run where it may wait for memory: its body is large, or decompresses to a large one.
    fn is_large(&self, envelope: &Envelope<'_>) -> bool {
        let of_backend = is_for_backend(envelope.header.opcode);
        of_backend
            && self.session.stage == Stage::Ready
            && (envelope.body.len() >= LARGE_BODY_BYTES
                || envelope.header.flags.has(Flags::COMPRESSED)
                    && self.decompressed_bytes(envelope) >= LARGE_BODY_BYTES)
    }

    /// The bytes of a request's body once it is decompressed, as it states them, and at most those that it may have.
    fn decompressed_bytes(&self, envelope: &Envelope<'_>) -> usize {
        let compression = self.session.body_compression();
        let stated =
            compression.and_then(|compression| BodyCodec::decompressed_length(compression, envelope));
        let bytes = stated.map(|bytes| bytes.min(self.shared.limits.frame_bytes_max));
        bytes.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(envelope.body.len())
    }

    /// Serves a large request that is all of `input`, without copying it; returns `input` if the request is not large.
    pub fn handle_whole(
        &mut self,
        input: Vec<u8>,
        header_length: usize,
        (header, scratch): (Header, &mut Scratch),
    ) -> Option<Vec<u8>> {
        let envelope = Envelope { header, body: input.get(header_length..).unwrap_or_default() };
        if self.session.throws_on_overload || !self.is_large(&envelope) {
            return Some(input);
        }
        self.mailbox.count_request(header.opcode);
        let head = ResponseHead::new(header.version, header.stream);
        self.send_to_disk_pool((header, head), (input, header_length), &mut scratch.tools);
        None
    }

    /// Sends a large request to the disk pool.
    #[cold]
    fn send_to_disk_pool(
        &mut self,
        (header, mut head): (Header, ResponseHead<'static>),
        (body, body_from): (Vec<u8>, usize),
        tools: &mut Tools,
    ) {
        if header.flags.has(Flags::TRACING) {
            head.tracing_id = Some(tracing_id(&self.shared.host));
        }
        // A role has no more in flight for being compressed.
        let envelope = Envelope { header, body: body.get(body_from..).unwrap_or_default() };
        let bytes = self.decompressed_bytes(&envelope).max(envelope.body.len());
        let Some(of_role) = self.begin_for_role(bytes, &head, tools) else { return };
        let drawn = if head.tracing_id.is_none() { self.shared.drawn_to_be_traced() } else { None };
        let threshold_ns = self.shared.slow.as_ref().and_then(|slow| slow.threshold_ns());
        let began_ns = threshold_ns.map(|_| tools.now_ns(&*self.shared.host.clock));
        let job = Job {
            mailbox: Arc::clone(&self.mailbox),
            head,
            header,
            reservation: self.share.account.take(body.len() as u64).of_role(of_role),
            body,
            body_from,
            is_raw: true,
            keyspace: self.session.keyspace.clone(),
            identity: self.session.identity.clone(),
            client: self.client,
            drawn,
            compression: self.session.body_compression(),
            began_ns,
        };
        self.submit(job, tools);
    }

    /// Sends a login to the login pool: a check of a password takes tens of milliseconds. One that finds no room there is
    /// answered with Overloaded.
    #[cold]
    fn send_login(
        &mut self,
        header: Header,
        head: ResponseHead<'static>,
        (body, token): (&[u8], Option<&[u8]>),
        tools: &mut Tools,
    ) {
        // Whose turn it is; a token that names nobody is refused in its turn.
        let role = token.and_then(|token| sasl_plain(token).ok()).map_or_else(String::new, |(role, _)| role);
        // A login may wait for long, and whoever sends it is a stranger: it needs room for all that is kept of it.
        let Some(reservation) = self.share.account.try_take_login((body.len() + role.len()) as u64) else {
            let message = note_refusal(&self.shared.login_runner, self.shared.slow.as_deref(), self.client);
            return self.put(&Outgoing::Error(&message), &head, tools);
        };
        let job = Job {
            mailbox: Arc::clone(&self.mailbox),
            head,
            header,
            body: body.to_vec(),
            body_from: 0,
            is_raw: false,
            keyspace: None,
            identity: self.session.identity.clone(),
            client: self.client,
            drawn: None,
            compression: self.session.body_compression(),
            reservation,
            began_ns: None,
        };
        self.disk_jobs_count += 1;
        self.login_runs = true;
        let login =
            LoginJob { runner: Arc::clone(&self.shared.login_runner), job, slow: self.shared.slow.clone() };
        let client = self.client.map(|client| client.ip());
        self.shared.login_pool.submit((client, &role), Box::new(login));
    }

    /// Gives a job to the pool. If the queue is full, this job or one of another connection is answered with Overloaded.
    fn submit(&mut self, job: Job, tools: &mut Tools) {
        let refused = self.shared.disk_pool.submit(job);
        if let Some(refused) = &refused {
            self.note_overload(TOO_MANY_JOBS);
            if Arc::ptr_eq(&refused.mailbox, &self.mailbox) {
                let message = ErrorMessage::plain(ErrorCode::Overloaded, TOO_MANY_JOBS);
                return self.put(&Outgoing::Error(&message), &refused.head, tools);
            }
        }
        self.disk_jobs_count += 1;
        self.shared.counts.disk_jobs.fetch_add(1, Ordering::Relaxed);
        if let Some(refused) = refused {
            self.shared.disk_pool.refuse(refused);
        }
    }

    /// Runs a request at the backend, on this thread if that does not have to wait.
    fn ask(&mut self, asked: &Asked<'_>, tools: &mut Tools) {
        let Asked { request, head, header, body } = *asked;
        let Some(of_role) = self.begin_for_role(body.len(), &head, tools) else { return };
        let drawn = if head.tracing_id.is_none() { self.shared.drawn_to_be_traced() } else { None };
        let compression = self.session.body_compression();
        let clock = &*self.shared.host.clock;
        let threshold_ns = self.shared.slow.as_ref().and_then(|slow| slow.threshold_ns());
        let began_ns = threshold_ns.map(|_| tools.now_ns(clock));
        let caller = Caller {
            backend: self.shared.backend.as_ref(),
            identity: &self.session.identity,
            client: self.client,
            certificate: self.mailbox.certificate.get(),
            drawn,
            keyspace: self.session.keyspace.as_deref(),
            version: head.version,
            compression,
            may_block: false,
            cancelled: &self.mailbox.gone,
            warned_of_use: &self.mailbox.warned_of_use,
            has_ended: &self.mailbox.has_ended,
            clock,
            slow: self.shared.slow.as_deref(),
            audit: self.shared.limits.audit.as_deref().filter(|audit| audit.is_on()),
            began_ns,
        };
        let scope = Scope::begin(Share::Requests, Waits::Never);
        let start = self.output.envelopes().len();
        // A long request is not begun here, because copying its values alone takes too long.
        let ran = match body.len() > BODY_AT_ONCE_BYTES {
            true => Ok(Reply::WouldBlock),
            false => contain(|| answer(&caller, head, request, tools, self.output.envelopes())),
        };
        let Ok(reply) = ran else {
            return self.panicked(start, &head, tools);
        };
        // An answer that is held is there longer than its request.
        let held_bytes = match &reply {
            Reply::Held(held) => held.envelope.as_ref().map_or(0, Vec::capacity),
            _ => 0,
        };
        let charge =
            (held_bytes >= LARGE_BODY_BYTES).then(|| scope.hand_over(Share::Answers, held_bytes as u64));
        self.output.appended();
        match reply {
            // A connection that is being polled still has its client, so its requests are not cancelled here.
            Reply::Written | Reply::Cancelled => {}
            Reply::Refused(code) | Reply::LoginRefused(code, _) => self.shared.counts.error(code),
            Reply::UsedKeyspace(keyspace) => self.use_keyspace(Some(keyspace)),
            Reply::LoggedIn(identity) => self.log_in(identity),
            Reply::Registered(events) => self.register(events),
            Reply::Held(held) => self.hold(held, body.len() as u64, (None, charge), of_role),
            Reply::WouldBlock => {
                let job = Job {
                    mailbox: Arc::clone(&self.mailbox),
                    head,
                    header,
                    body: body.to_vec(),
                    body_from: 0,
                    is_raw: false,
                    keyspace: self.session.keyspace.clone(),
                    identity: self.session.identity.clone(),
                    client: self.client,
                    drawn,
                    compression,
                    reservation: self.share.account.take(body.len() as u64).of_role(of_role),
                    began_ns,
                };
                self.submit(job, tools);
            }
        }
    }

    /// Answers a request that panicked. The panic hook has logged the panic. Only this request fails; its connection
    /// goes on.
    #[cold]
    fn panicked(&mut self, start: usize, head: &ResponseHead<'_>, tools: &mut Tools) {
        self.output.envelopes().truncate(start);
        let message = ErrorMessage::plain(ErrorCode::Server, PANICKED);
        self.put(&Outgoing::Error(&message), head, tools);
    }

    /// Counts a request for the client's role. `None`: the role may have no more, and the client has been told.
    #[inline]
    fn begin_for_role(
        &mut self,
        bytes: usize,
        head: &ResponseHead<'static>,
        tools: &mut Tools,
    ) -> Option<Option<InFlight>> {
        match self.session.identity.begin(bytes) {
            Ok(of_role) => Some(of_role),
            Err(refusal) => {
                let text = refusal.to_string();
                self.note_overload(&text);
                self.put(&Outgoing::Error(&ErrorMessage::plain(ErrorCode::Overloaded, text)), head, tools);
                None
            }
        }
    }

    fn hold(
        &mut self,
        held: Held,
        bytes: u64,
        (reservation, charge): (Option<Reservation>, Option<Charge>),
        of_role: Option<InFlight>,
    ) {
        let since_tick = self.shared.ticks.load(Ordering::Relaxed);
        self.held.push(Waiting { held, since_tick, bytes, reservation, charge, _of_role: of_role });
        self.held_bytes += bytes;
        self.fresh = true;
    }

    /// Takes the messages of other threads: answers of the disk pool, and events unless the client has much to read.
    pub fn take_messages(&mut self, scratch: &mut Scratch) {
        self.take_left(!self.output.is_full(), &mut scratch.tools);
    }

    fn take_left(&mut self, with_events: bool, tools: &mut Tools) {
        let Some(messages) = self.mailbox.take(with_events) else {
            return;
        };
        for finished in messages.finished {
            let Finished {
                envelope, held, charge, keyspace, identity, registered, reservation, error, ..
            } = finished;
            self.disk_jobs_count -= 1;
            if let Some(code) = error {
                self.shared.counts.error(code);
            }
            let is_held = held.is_some();
            let (of_held, of_output) = if is_held { (charge, None) } else { (None, charge) };
            self.output.take_whole(envelope, of_output);
            if keyspace.is_some() {
                self.use_keyspace(keyspace);
            }
            if let Some(identity) = identity {
                self.log_in(identity);
            }
            if let Some(events) = registered {
                self.register(events);
            }
            if let Some(held) = held {
                self.hold(held, 0, (reservation, of_held), None);
            }
        }
        let Some(version) = self.session.version else {
            return;
        };
        for change in messages.events {
            let event = Event::Schema(schema_change(&change));
            let head = ResponseHead::new(version, EVENT_STREAM);
            self.put(&Outgoing::Event(&event), &head, tools);
        }
    }

    /// Sends the answers whose tickets are ready. In periodic mode the log is told to write, once for all requests that
    /// arrived together; in the other modes the log's listener wakes the connection.
    pub fn release_held(&mut self, tools: &mut Tools) {
        if self.held.is_empty() {
            return;
        }
        if std::mem::take(&mut self.fresh) {
            // If the log has failed, each ticket reports it.
            let _told_by_tickets = self.shared.backend.write_out();
        }
        self.release_ready(tools);
        if !self.held.is_empty() {
            self.shared.written.add(&self.mailbox);
            self.release_ready(tools);
            self.account_for_held();
        }
        self.held_bytes = 0;
    }

    /// Reserves the bytes of all requests that are still held.
    fn account_for_held(&mut self) {
        for waiting in &mut self.held {
            if waiting.reservation.is_none() && waiting.bytes > 0 {
                waiting.reservation = Some(self.share.account.take(waiting.bytes));
            }
        }
    }

    fn release_ready(&mut self, tools: &mut Tools) {
        let compression = self.session.body_compression();
        let output = &mut self.output;
        let now = self.shared.ticks.load(Ordering::Relaxed);
        let timeout = self.shared.write_timeout_ticks.load(Ordering::Relaxed);
        let shared = &self.shared;
        let mut waited_ticks = 0;
        let is_over = |waiting: &mut Waiting| {
            waiting.since_tick + timeout < now || !matches!(waiting.held.ticket.is_ready(), Ok(false))
        };
        for Waiting { held, since_tick, charge, .. } in self.held.extract_if(.., is_over) {
            waited_ticks = waited_ticks.max(now.saturating_sub(since_tick));
            // A write that is logged and waits only for memory is answered as done: it has waited long enough.
            let refusal = match held.ticket.is_logged() {
                Ok(true) => None,
                Ok(false) => Some(timed_out(&held.ticket, held.consistency)),
                Err(error) => Some(log_failed(&error, held.consistency)),
            };
            if let Some(message) = &refusal {
                shared.counts.error(message.detail.code());
            }
            let codec = tools.codec(compression);
            let _fits = match (&refusal, held.envelope) {
                (Some(message), _) => Outgoing::Error(message).encode(&held.head, codec, output.envelopes()),
                (None, None) => Outgoing::Void.encode(&held.head, codec, output.envelopes()),
                (None, Some(envelope)) => {
                    output.take_whole(envelope, charge);
                    Ok(())
                }
            };
            output.appended();
        }
        if self.held.is_empty() {
            self.held.shrink_to(64);
        }
        // The time is only known to about one tick.
        if waited_ticks > 1 {
            self.note_slow_write(waited_ticks - 1);
        }
    }

    #[cold]
    fn note_slow_write(&self, ticks: u64) {
        let Some(slow) = &self.shared.slow else {
            return;
        };
        let waited_ms = ticks * TICK.as_millis() as u64;
        if slow.threshold_ns().is_some_and(|threshold| waited_ms * 1_000_000 >= threshold) {
            slow.slow_write(waited_ms);
        }
    }

    #[cold]
    fn note_overload(&self, reason: &str) {
        if let Some(slow) = &self.shared.slow {
            slow.overloaded(reason);
        }
    }

    /// Sends the ERROR for a frame that was refused.
    pub fn refuse(&mut self, refusal: &Refusal) {
        if refusal.is_error() {
            self.shared.counts.error(ErrorCode::Protocol);
        }
        refusal.encode(self.session.version, self.output.envelopes());
        self.output.appended();
    }

    fn put(&mut self, outgoing: &Outgoing<'_>, head: &ResponseHead<'_>, tools: &mut Tools) {
        if let Outgoing::Error(message) = outgoing {
            self.shared.counts.error(message.detail.code());
        }
        // Before the first STARTUP the session has no version, and no compression.
        let codec = tools.codec(self.session.body_compression());
        // The answer is short: it has no rows, or is an error's text.
        let _fits = outgoing.encode(head, codec, self.output.envelopes());
        self.output.appended();
    }
}

/// Whether the backend answers requests of this kind.
fn is_for_backend(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::Query | Opcode::Prepare | Opcode::Execute | Opcode::Batch)
}

impl Drop for Requests {
    fn drop(&mut self) {
        self.mailbox.gone.store(true, Ordering::Release);
    }
}

/// The options of a STARTUP that `system_views.clients` shows: so many, and so much of each, that a connection keeps little of what it
/// was sent before a login.
fn shown_options(startup: &Startup<'_>) -> Vec<(String, String)> {
    const OPTIONS_MAX: usize = 16;
    const KEY_BYTES_MAX: usize = 64;
    const VALUE_BYTES_MAX: usize = 256;
    let short = startup.options.iter().filter(|(key, _)| key.len() <= KEY_BYTES_MAX);
    let cut = |value: &str| value[..value.floor_char_boundary(VALUE_BYTES_MAX)].to_owned();
    short.take(OPTIONS_MAX).map(|(key, value)| (key.to_owned(), cut(value))).collect()
}
