//! Runs one QUERY, PREPARE, EXECUTE or BATCH at the backend and appends its answer to a buffer.
//!
//! Event loops call this for each request as it arrives; disk threads call it for requests that must wait. It only
//! translates between the protocol and the backend, and decides nothing about statements.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use helenus_cql::CqlError;
use helenus_cql::backend::{
    ANALYSED_AT_ONCE_BYTES, Answer, Backend, BatchEntry, BatchKind, BoundValue, ClientCertificate, Identity,
    LoginProof, LoginRefused, Outcome, Prepared, Probe, Request as Asked, Trace, Values,
};
use helenus_engine::Ticket;
use helenus_host::{Clock, account};
use helenus_wire::WireError;
use helenus_wire::native as wire;
use helenus_wire::native::{
    BodyCodec, Compression, Consistency, ErrorCode, ErrorMessage, EventTypes, Outgoing, Request,
    ResponseHead, Value, Version,
};
use parking_lot::Mutex;
use uuid::Uuid;

use super::audited::Audited;
use super::columns::{ColumnsCache, description_bytes, specs};
use super::errors::{error_message, schema_change};
use super::job::LARGE_BODY_BYTES;
use super::rows::{Known, RowsAnswer, Unfinished, insert_warnings};
use super::statement_cache::{BatchStatements, StatementCache};
use super::statement_text::statement_text;
use super::trace_parameters::traced_request;
use crate::audit::{Audit, AuditBuffer};
use crate::log::SlowStatements;

/// The number of values of a request that are kept on the stack; with more, all go to the heap.
const VALUES_INLINE: usize = 24;

/// The id of an empty column list: the MD5 of no bytes (`ResultSet.ResultMetadata.EMPTY`).
const EMPTY_METADATA_ID: [u8; 16] =
    [0xd4, 0x1d, 0x8c, 0xd9, 0x8f, 0x00, 0xb2, 0x04, 0xe9, 0x80, 0x09, 0x98, 0xec, 0xf8, 0x42, 0x7e];

/// The client of a request, its connection, and what the thread that answers it may do.
pub(super) struct Caller<'a> {
    pub backend: &'a dyn Backend,
    pub identity: &'a Identity,
    /// The tracing session of a request that was chosen by `trace_probability`.
    pub drawn: Option<Uuid>,
    pub client: Option<SocketAddr>,
    /// The certificate that the client has shown, if it has.
    pub certificate: Option<&'a ClientCertificate>,
    /// The session's keyspace.
    pub keyspace: Option<&'a str>,
    pub version: Version,
    /// The compression of bodies (v3, v4).
    pub compression: Option<Compression>,
    /// Whether this thread may wait for the disk.
    pub may_block: bool,
    pub cancelled: &'a AtomicBool,
    /// Whether this connection has been warned of prepared statements that depend on its keyspace.
    pub warned_of_use: &'a AtomicBool,
    /// Set if this request finds that the session has ended.
    pub has_ended: &'a AtomicBool,
    pub clock: &'a dyn Clock,
    /// The log of slow and failed statements.
    pub slow: Option<&'a SlowStatements>,
    /// The audit log, if it is on.
    pub audit: Option<&'a Audit>,
    /// When the request arrived, by the coarse clock; `None` if slow statements are not logged.
    pub began_ns: Option<u64>,
}

/// What a thread keeps from one answer to the next.
#[derive(Default)]
pub(super) struct Tools {
    columns: ColumnsCache,
    statements: StatementCache,
    /// The coarse clock when the last request of this poll was answered, which is when the next one begins.
    answered_ns: Option<u64>,
    /// The time for lines of the audit log, milliseconds since 1970: that of the first request of this poll.
    audit_ms: Option<i64>,
    /// The lines of the audit log that are not in its queue yet.
    lines: AuditBuffer,
    lz4: Option<BodyCodec>,
    snappy: Option<BodyCodec>,
}

impl Tools {
    /// Forgets the time at the beginning of a poll, because the clock has moved on since the last one.
    pub fn forget_time(&mut self) {
        self.answered_ns = None;
        self.audit_ms = None;
    }

    /// Hands the lines for the audit log over. Called before the answers to their requests are sent.
    #[inline]
    pub fn hand_over_lines(&mut self, audit: Option<&Audit>) {
        if let Some(audit) = audit {
            audit.hand_over(&mut self.lines);
        }
    }

    /// Drops the lines of a request that was refused and is served again from its start.
    pub fn drop_lines(&mut self) {
        self.lines.clear();
    }

    /// Frees buffers that a large body made grow.
    pub fn trim(&mut self) {
        [&mut self.lz4, &mut self.snappy].into_iter().flatten().for_each(BodyCodec::trim);
    }

    /// The coarse clock, as read after the previous request: one reading for each request, instead of two.
    pub fn now_ns(&self, clock: &dyn Clock) -> u64 {
        self.answered_ns.unwrap_or_else(|| clock.coarse_ns())
    }

    /// The codec of a connection's bodies. Codecs keep no state but their buffers, so connections share them.
    pub fn codec(&mut self, compression: Option<Compression>) -> Option<&mut BodyCodec> {
        let place = match compression? {
            Compression::Lz4 => &mut self.lz4,
            Compression::Snappy => &mut self.snappy,
        };
        Some(place.get_or_insert_with(|| BodyCodec::new(compression.unwrap_or(Compression::Lz4))))
    }

    fn split(&mut self, compression: Option<Compression>) -> (&mut ColumnsCache, Option<&mut BodyCodec>) {
        let codec = compression.map(|compression| {
            let place = match compression {
                Compression::Lz4 => &mut self.lz4,
                Compression::Snappy => &mut self.snappy,
            };
            place.get_or_insert_with(|| BodyCodec::new(compression))
        });
        (&mut self.columns, codec)
    }
}

/// The result of a request.
pub(super) enum Reply {
    /// The answer is in the buffer.
    Written,
    /// The answer is in the buffer, and is an ERROR of this code.
    Refused(ErrorCode),
    /// The answer is in the buffer, and the connection has a new keyspace.
    UsedKeyspace(Arc<str>),
    /// The answer is in the buffer, and the client has logged in.
    LoggedIn(Identity),
    /// The answer is in the buffer, and the client wants these events too.
    Registered(EventTypes),
    /// The answer is in the buffer: the login failed with this code. It is to be sent after this time.
    LoginRefused(ErrorCode, Duration),
    /// The answer may be sent once its ticket is ready.
    Held(Held),
    /// Nothing was done: run the request again where it may block.
    WouldBlock,
    /// The client has gone and the request was cancelled: there is no answer, and nothing has failed.
    Cancelled,
}

/// An answer that waits for the commit log.
pub(super) struct Held {
    pub ticket: Ticket,
    pub head: ResponseHead<'static>,
    /// The envelope. `None` for a Void that is not encoded yet, the answer to almost every write.
    pub envelope: Option<Vec<u8>>,
    /// The consistency level of the request, for the error if the write fails.
    pub consistency: Consistency,
}

/// Runs a request and appends its answer to `out`.
pub(super) fn answer(
    caller: &Caller<'_>,
    head: ResponseHead<'static>,
    request: &Request<'_>,
    tools: &mut Tools,
    out: &mut Vec<u8>,
) -> Reply {
    let began = head
        .tracing_id
        .or(caller.drawn)
        .map(|session| (session, caller.clock.wall_us(), caller.clock.monotonic_ns()));
    let consistency = match request {
        Request::Query(query) => query.parameters.consistency,
        Request::Execute(execute) => execute.parameters.consistency,
        Request::Batch(batch) => batch.parameters.consistency,
        _ => Consistency::One,
    };
    // A traced request is counted and timed. A request that may be logged as slow is counted too, but only its waits
    // for files are timed, and only on disk threads: the other requests never wait for files.
    let is_watched = caller.may_block && caller.began_ns.is_some();
    let new = if began.is_some() { Probe::default } else { Probe::of_disk };
    let probe = (began.is_some() || is_watched).then(|| Mutex::new(new()));
    let mut in_progress = RequestInProgress { caller, head, consistency, tools, out, probe: probe.as_ref() };
    let reply = answer_untraced(&mut in_progress, request);
    if let (Some(slow), Some(began_ns)) = (caller.slow, caller.began_ns) {
        let now_ns = caller.clock.coarse_ns();
        tools.answered_ns = Some(now_ns);
        let took_ns = now_ns.saturating_sub(began_ns);
        if slow.threshold_ns().is_some_and(|threshold| took_ns >= threshold)
            && !matches!(reply, Reply::WouldBlock)
        {
            let text = statement_text(request, caller.backend, slow.shows_values());
            let probe = probe.as_ref().map(|probe| probe.lock().clone());
            slow.slow(&text, took_ns, caller.client, probe.as_ref());
        }
    }
    if let Some((session, started_us, began_ns)) = began
        && !matches!(reply, Reply::WouldBlock)
    {
        let duration_us = ((caller.clock.monotonic_ns() - began_ns) / 1000).max(1) as i64;
        let (words, parameters) = traced_request(request, caller.backend);
        let parameters = parameters.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let probe = probe.map(Mutex::into_inner).unwrap_or_default();
        let client = caller.client;
        let trace =
            Trace { session, client, request: words, parameters, started_us, duration_us, probe: &probe };
        // The request itself is answered. If its trace cannot be stored, the trace is missing and nothing else.
        let _kept = caller.backend.record_trace(&trace);
    }
    reply
}

fn answer_untraced(in_progress: &mut RequestInProgress<'_>, request: &Request<'_>) -> Reply {
    let caller = in_progress.caller;
    if let Some(refusal) = caller.audit.and_then(Audit::refusal) {
        // Without an entry, for which there is no place.
        let message = ErrorMessage::plain(ErrorCode::Overloaded, refusal);
        let _fits = in_progress.put(&Outgoing::Error(&message), &[]);
        return Reply::Refused(ErrorCode::Overloaded);
    }
    let result = match request {
        Request::Query(query) => in_progress.query(query),
        Request::Prepare(prepare) => in_progress.prepare(prepare),
        Request::Execute(execute) => in_progress.execute(execute),
        Request::Batch(batch) => in_progress.batch(batch),
        Request::AuthResponse(token) => in_progress.log_in(*token, request),
        Request::Register(events) => in_progress.register(*events),
        Request::Startup(_) | Request::Options => {
            Err(Failure::Message(ErrorMessage::plain(ErrorCode::Server, "not a request for the backend")))
        }
    };
    match result {
        Ok(reply) => reply,
        Err(Failure::Cql(CqlError::WouldBlock)) if !caller.may_block => Reply::WouldBlock,
        Err(Failure::Cql(CqlError::Cancelled)) => Reply::Cancelled,
        Err(Failure::Cql(error)) => {
            if matches!(error, CqlError::SessionEnded(_)) {
                caller.has_ended.store(true, Ordering::Release);
            }
            in_progress.refuse(&error_message(&error), request)
        }
        Err(Failure::Wire(error)) => in_progress.refuse(&ErrorMessage::from(&error), request),
        Err(Failure::Message(message)) => in_progress.refuse(&message, request),
    }
}

pub(super) enum Failure {
    Cql(CqlError),
    Wire(WireError),
    Message(ErrorMessage),
}

impl From<CqlError> for Failure {
    fn from(error: CqlError) -> Self {
        Failure::Cql(error)
    }
}

impl From<WireError> for Failure {
    fn from(error: WireError) -> Self {
        Failure::Wire(error)
    }
}

/// One request being answered.
struct RequestInProgress<'a> {
    caller: &'a Caller<'a>,
    head: ResponseHead<'static>,
    consistency: Consistency,
    tools: &'a mut Tools,
    out: &'a mut Vec<u8>,
    /// Only of a request that is traced or may be logged as slow.
    probe: Option<&'a Mutex<Probe>>,
}

impl<'a> RequestInProgress<'a> {
    fn query(&mut self, query: &wire::Query<'_>) -> Result<Reply, Failure> {
        query.parameters.check_page_size()?;
        let known = if query.parameters.skip_metadata { Known::Skip } else { Known::Nothing };
        let backend = self.caller.backend;
        let audited = self.audited();
        let reply = self
            .run(&query.parameters, (known, None), |request, rows| backend.query(query.query, request, rows));
        if let (Some(audited), Ok(_)) = (audited, &reply) {
            let keyspace = query.parameters.keyspace.or(self.caller.keyspace);
            audited.query(query.query, keyspace, &mut self.tools.lines);
        }
        reply
    }

    /// The entry of the request for the audit log, if that is on.
    #[inline]
    fn audited(&mut self) -> Option<Audited<'a>> {
        let audit = self.caller.audit?;
        let Caller { backend, identity, client, keyspace, .. } = *self.caller;
        let began_ms = *self.tools.audit_ms.get_or_insert_with(|| audit.now_ms());
        Some(Audited { audit, backend, identity, client, keyspace, began_ms })
    }

    /// Notes the events that the client wants, if it may use the server from where it is.
    fn register(&mut self, events: EventTypes) -> Result<Reply, Failure> {
        self.caller.backend.check_session(self.caller.identity, self.caller.may_block)?;
        let (_, codec) = self.tools.split(self.caller.compression);
        Outgoing::Ready.encode(&self.head, codec, self.out)?;
        Ok(Reply::Registered(events))
    }

    /// Checks a login. Called on the threads for logins alone.
    fn log_in(&mut self, token: Option<&[u8]>, request: &Request<'_>) -> Result<Reply, Failure> {
        let Some(token) = token else {
            // Cassandra's decoder fails on it.
            let text = "java.lang.NullPointerException: Cannot invoke \"java.nio.ByteBuffer.remaining()\" because \"b\" is null";
            return Err(Failure::Message(ErrorMessage::plain(ErrorCode::Server, text)));
        };
        let Caller { client, certificate, .. } = *self.caller;
        let identity = match self.caller.backend.log_in(&LoginProof { token, client, certificate }) {
            Ok(identity) => identity,
            Err(LoginRefused { error, wait }) => {
                let message = error_message(&error);
                self.refuse(&message, request);
                return Ok(Reply::LoginRefused(message.detail.code(), wait));
            }
        };
        if let Some(audited) = self.audited() {
            audited.logged_in(&identity, &mut self.tools.lines);
        }
        let (_, codec) = self.tools.split(self.caller.compression);
        Outgoing::AuthSuccess(None).encode(&self.head, codec, self.out)?;
        Ok(Reply::LoggedIn(identity))
    }

    fn execute(&mut self, execute: &wire::Execute<'_>) -> Result<Reply, Failure> {
        let backend = self.caller.backend;
        let mut prepared = self.tools.statements.take(backend, execute.id, self.caller.may_block)?;
        execute.parameters.check_page_size()?;
        let known = known_columns(self.caller.version, execute, &prepared);
        let warning = keyspace_warning(self.caller, &prepared, true);
        let warns = warning.is_some();
        let audited = self.audited();
        let reply = self.run(&execute.parameters, (known, warning), |request, rows| {
            backend.execute(&prepared, request, rows)
        });
        if warns && reply.is_err() {
            // It may be run again where it may block, and has warned nobody yet.
            self.caller.warned_of_use.store(false, Ordering::Relaxed);
        }
        if let (Some(audited), Ok(_)) = (audited, &reply) {
            audited.executed(&mut prepared, &mut self.tools.lines);
        }
        self.tools.statements.give_back(prepared);
        reply
    }

    fn run(
        &mut self,
        parameters: &wire::QueryParameters<'_>,
        (known, warning): (Known<'_>, Option<String>),
        call: impl FnOnce(&Asked<'_>, &mut RowsAnswer<'_>) -> Result<Answer, CqlError>,
    ) -> Result<Reply, Failure> {
        with_values(&parameters.values, |values| {
            let request = Asked { probe: self.probe, ..asked(self.caller, parameters, values) };
            let start = self.out.len();
            let (cache, codec) = self.tools.split(self.caller.compression);
            let mut rows = RowsAnswer::new(self.out, cache, self.head, known);
            let Answer { outcome, mut warnings } = call(&request, &mut rows)?;
            warnings.extend(warning);
            let Outcome::Rows { columns, paging_state, ticket } = outcome else {
                drop(rows);
                return self.without_rows(outcome, &warnings);
            };
            let codec = codec.filter(|_| warnings.is_empty());
            rows.finish(&columns, paging_state.as_deref(), codec).map_err(unfinished)?;
            self.warn(start, &warnings)?;
            self.hold_rows(start, ticket)
        })
    }

    fn batch(&mut self, batch: &wire::Batch<'_>) -> Result<Reply, Failure> {
        let mut known = BatchStatements::default();
        let audited = self.audited();
        let reply = self.run_batch(batch, &mut known);
        if let (Some(audited), Ok(_)) = (audited, &reply) {
            audited.batch(batch, &known, &mut self.tools.lines);
        }
        known.taken.into_iter().for_each(|taken| self.tools.statements.give_back(taken));
        reply
    }

    /// Runs a batch. `known` gets its prepared statements.
    fn run_batch(&mut self, batch: &wire::Batch<'_>, known: &mut BatchStatements) -> Result<Reply, Failure> {
        // A batch of no statement needs no permission, but its client must be where it may be.
        self.caller.backend.check_session(self.caller.identity, self.caller.may_block)?;
        let backend = self.caller.backend;
        // All values of all statements are in one vector; each statement gets a range of it.
        let mut values = Vec::with_capacity(2 * batch.statements.len());
        let mut statements = Vec::with_capacity(batch.statements.len());
        let (place, may_block) = (&mut self.tools.statements, self.caller.may_block);
        batch.statements.walk(
            |value| values.push(bound(value)),
            |statement, count| {
                let of = match statement {
                    wire::StatementRef::Query(query) => Of::Text(query),
                    wire::StatementRef::Prepared(id) => {
                        Of::Known(place.index_of(backend, id, may_block, known)?)
                    }
                };
                statements.push((of, count));
                Ok::<(), Failure>(())
            },
        )?;
        let mut rest = values.as_slice();
        let mut entries = Vec::with_capacity(statements.len());
        for (of, count) in statements {
            let (own, others) = rest.split_at_checked(count).unwrap_or((rest, &[]));
            rest = others;
            let own = Values::Positional(own);
            match of {
                Of::Text(query) => entries.push(BatchEntry::Query(query, own)),
                Of::Known(at) => {
                    entries.extend(known.taken.get(at).map(|prepared| BatchEntry::Prepared(prepared, own)));
                }
            }
        }
        let kind = match batch.kind {
            wire::BatchKind::Logged => BatchKind::Logged,
            wire::BatchKind::Unlogged => BatchKind::Unlogged,
            wire::BatchKind::Counter => BatchKind::Counter,
        };
        let batch_of_entries = helenus_cql::backend::Batch { kind, entries };
        let request =
            Asked { probe: self.probe, ..asked(self.caller, &batch.parameters, Values::Positional(&[])) };
        let start = self.out.len();
        let (cache, codec) = self.tools.split(self.caller.compression);
        // A batch with conditions returns rows, and the client cannot know their columns.
        let mut rows = RowsAnswer::new(self.out, cache, self.head, Known::Nothing);
        let Answer { outcome, warnings } = backend.batch(&batch_of_entries, &request, &mut rows)?;
        let Outcome::Rows { columns, paging_state, ticket } = outcome else {
            drop(rows);
            return self.without_rows(outcome, &warnings);
        };
        let codec = codec.filter(|_| warnings.is_empty());
        rows.finish(&columns, paging_state.as_deref(), codec).map_err(unfinished)?;
        self.warn(start, &warnings)?;
        self.hold_rows(start, ticket)
    }

    fn prepare(&mut self, prepare: &wire::Prepare<'_>) -> Result<Reply, Failure> {
        if !self.caller.may_block && prepare.query.len() > ANALYSED_AT_ONCE_BYTES {
            return Err(Failure::Cql(CqlError::WouldBlock));
        }
        let keyspace = prepare.keyspace.or(self.caller.keyspace);
        let Caller { backend, identity, may_block, .. } = *self.caller;
        backend.check_session(identity, may_block)?;
        let prepared = backend.prepare(prepare.query, keyspace, identity)?;
        let of_result = prepared.columns.as_ref().map_or(0, |columns| description_bytes(&columns.columns));
        // Encoded, and in a frame.
        let described = 2 * description_bytes(&prepared.markers).saturating_add(of_result);
        account::grow(described).map_err(CqlError::from)?;
        let variables = specs(&prepared.markers);
        let result = prepared.columns.as_ref().map(|columns| specs(&columns.columns)).unwrap_or_default();
        let id = prepared.columns.as_ref().map_or(EMPTY_METADATA_ID, |columns| columns.id);
        let warnings: Vec<_> = keyspace_warning(self.caller, &prepared, false).into_iter().collect();
        let described = wire::Prepared {
            id: &prepared.id,
            result_metadata_id: &id,
            variables: &variables,
            partition_key: &prepared.partition_key_markers,
            result_columns: &result,
        };
        self.put(&Outgoing::Prepared(&described), &warnings)?;
        if let Some(audited) = self.audited() {
            audited.prepared(&prepared, &mut self.tools.lines);
        }
        Ok(Reply::Written)
    }

    fn without_rows(&mut self, outcome: Outcome, warnings: &[String]) -> Result<Reply, Failure> {
        let start = self.out.len();
        match outcome {
            Outcome::Done(ticket) => {
                // Failed tickets are found where held answers are checked.
                let is_ready = matches!(ticket.is_ready(), Ok(true));
                if !is_ready && warnings.is_empty() {
                    return Ok(Reply::Held(self.held(ticket, None)));
                }
                self.put(&Outgoing::Void, warnings)?;
                Ok(self.hold(start, Some(ticket)))
            }
            Outcome::UsedKeyspace(keyspace) => {
                self.put(&Outgoing::SetKeyspace(&keyspace), warnings)?;
                Ok(Reply::UsedKeyspace(keyspace))
            }
            Outcome::SchemaChanged(change, ticket) => {
                match &change {
                    Some(change) => self.put(&Outgoing::SchemaChange(&schema_change(change)), warnings)?,
                    None => self.put(&Outgoing::Void, warnings)?,
                }
                Ok(self.hold(start, Some(ticket)))
            }
            Outcome::Rows { .. } => {
                Err(Failure::Message(ErrorMessage::plain(ErrorCode::Server, "rows where none were expected")))
            }
        }
    }

    /// Adds warnings to the rows that begin at `start` and that were left uncompressed for this.
    fn warn(&mut self, start: usize, warnings: &[String]) -> Result<(), Failure> {
        if warnings.is_empty() {
            return Ok(());
        }
        let codec = self.tools.codec(self.caller.compression);
        insert_warnings(self.out, start, &ResponseHead { warnings, ..self.head }, codec).map_err(unfinished)
    }

    /// As [`Self::hold`], for rows: there may be many, and a copy of them has to be asked for.
    fn hold_rows(&mut self, start: usize, ticket: Option<Ticket>) -> Result<Reply, Failure> {
        let length = self.out.len().saturating_sub(start);
        let is_copied = start > 0 || length < LARGE_BODY_BYTES;
        if is_copied
            && ticket.as_ref().is_some_and(|ticket| !matches!(ticket.is_ready(), Ok(true)))
            && let Err(refusal) = account::grow(length)
        {
            self.out.truncate(start);
            return Err(Failure::Cql(refusal.into()));
        }
        Ok(self.hold(start, ticket))
    }

    /// Moves the answer that begins at `start` out of the buffer if its ticket is not ready.
    fn hold(&mut self, start: usize, ticket: Option<Ticket>) -> Reply {
        match ticket {
            Some(ticket) if !matches!(ticket.is_ready(), Ok(true)) => {
                let rest = self.out.get(start..).unwrap_or_default();
                // A long answer that is alone takes the buffer with it.
                let envelope = match start == 0 && rest.len() >= LARGE_BODY_BYTES {
                    true => std::mem::take(self.out),
                    false => rest.to_vec(),
                };
                self.out.truncate(start);
                Reply::Held(self.held(ticket, Some(envelope)))
            }
            _ => Reply::Written,
        }
    }

    fn held(&self, ticket: Ticket, envelope: Option<Vec<u8>>) -> Held {
        Held { ticket, head: self.head, envelope, consistency: self.consistency }
    }

    fn put(&mut self, outgoing: &Outgoing<'_>, warnings: &[String]) -> Result<(), WireError> {
        let head = ResponseHead { warnings, ..self.head };
        outgoing.encode(&head, self.tools.codec(self.caller.compression), self.out)
    }

    fn refuse(&mut self, message: &ErrorMessage, request: &Request<'_>) -> Reply {
        // The length of an error's text is bounded by the statement's, so it always fits.
        let _fits = self.put(&Outgoing::Error(message), &[]);
        let code = message.detail.code();
        if let Some(audited) = self.audited() {
            audited.failed(request, message, &mut self.tools.lines);
        }
        // UNPREPARED is not logged: the client has made no mistake.
        if let Some(slow) = self.caller.slow.filter(|_| code != ErrorCode::Unprepared) {
            let (backend, values) = (self.caller.backend, slow.shows_values());
            let text = || statement_text(request, backend, values);
            slow.failed(&text, (code.name(), &message.message), is_servers(code), self.caller.client);
        }
        Reply::Refused(code)
    }
}

/// One statement of a batch.
enum Of<'a> {
    Text(&'a str),
    /// Its index among the prepared statements of the batch.
    Known(usize),
}

/// Whether an error of this code is the server's failure, not the client's mistake.
fn is_servers(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::Server
            | ErrorCode::ReadFailure
            | ErrorCode::WriteFailure
            | ErrorCode::ReadTimeout
            | ErrorCode::WriteTimeout
            | ErrorCode::Truncate
            | ErrorCode::Overloaded
    )
}

/// The request as the backend takes it, without the statement.
fn asked<'r>(caller: &Caller<'r>, parameters: &wire::QueryParameters<'r>, values: Values<'r>) -> Asked<'r> {
    Asked {
        keyspace: parameters.keyspace.or(caller.keyspace),
        identity: caller.identity,
        client: caller.client,
        consistency: parameters.consistency.code(),
        serial_consistency: parameters.serial_consistency.map(wire::Consistency::code),
        values,
        // A page size below one row means no paging, as in Cassandra; zero was refused before.
        page_size: parameters.page_size.and_then(|rows| u32::try_from(rows).ok()),
        paging_state: parameters.paging_state,
        timestamp_us: parameters.timestamp,
        now_s: parameters.now_in_seconds.map(|now| i64::from(now.cast_unsigned())),
        may_block: caller.may_block,
        deadline_ns: None,
        cancelled: Some(caller.cancelled),
        probe: None,
        is_trial: false,
    }
}

/// The rule is that of `ExecuteMessage.execute`: v5 compares the id that came with the request, older versions trust
/// the columns of the prepared statement. A conditional write has no columns when it is prepared and may have different
/// ones in each answer, so they are always described.
fn known_columns<'a>(version: Version, execute: &wire::Execute<'a>, prepared: &Prepared) -> Known<'a> {
    let skip = execute.parameters.skip_metadata;
    match (&prepared.columns, execute.result_metadata_id) {
        (None, _) => Known::Nothing,
        (Some(_), Some(id)) if version >= Version::V5 => Known::Metadata { id, skip },
        (Some(columns), _) if skip => Known::Skips(columns.id),
        (Some(_), _) => Known::Nothing,
    }
}

/// The warning for a prepared statement that depends on the keyspace in use
/// (`ClientState.warnAboutUseWithPreparedStatements`): given when a client prepares it, or runs it in another keyspace,
/// once for each connection.
fn keyspace_warning(caller: &Caller<'_>, prepared: &Prepared, runs: bool) -> Option<String> {
    if prepared.is_qualified
        || runs && (prepared.keyspace.as_deref() == caller.keyspace || prepared.is_batch())
        || caller.warned_of_use.swap(true, Ordering::Relaxed)
    {
        return None;
    }
    let name = |keyspace: Option<&str>| keyspace.unwrap_or("null").to_owned();
    let id: String = prepared.id.iter().map(|byte| format!("{byte:02x}")).collect();
    Some(format!(
        "`USE <keyspace>` with prepared statements is considered to be an anti-pattern due to ambiguity in non-qualified \
         table names. Please consider removing instances of `Session#setKeyspace(<keyspace>)`, `Session#execute(\"USE \
         <keyspace>\")` and `cluster.newSession(<keyspace>)` from your code, and always use fully qualified table names \
         (e.g. <keyspace>.<table>). Keyspace used: {}, statement keyspace: {}, statement id: {id}",
        name(caller.keyspace),
        name(prepared.keyspace.as_deref()),
    ))
}

fn bound(value: Value<'_>) -> BoundValue<'_> {
    match value {
        Value::Bytes(bytes) => BoundValue::Bytes(bytes),
        Value::Null => BoundValue::Null,
        Value::Unset => BoundValue::Unset,
    }
}

/// Calls `run` with the values of a request as the backend takes them.
fn with_values<'a, R>(values: &wire::Values<'a>, run: impl FnOnce(Values<'_>) -> R) -> R {
    if values.has_names() {
        let named: Vec<_> =
            values.iter().map(|(name, value)| (name.unwrap_or_default(), bound(value))).collect();
        return run(Values::Named(&named));
    }
    let mut inline = [BoundValue::Null; VALUES_INLINE];
    if let Some(inline) = inline.get_mut(..values.len()) {
        for (place, (_, value)) in inline.iter_mut().zip(values.iter()) {
            *place = bound(value);
        }
        return run(Values::Positional(inline));
    }
    let many: Vec<_> = values.iter().map(|(_, value)| bound(value)).collect();
    run(Values::Positional(&many))
}

fn unfinished(error: Unfinished) -> Failure {
    match error {
        Unfinished::Wire(error) => Failure::Wire(error),
        Unfinished::NoMemory(refusal) => Failure::Cql(refusal.into()),
        Unfinished::Torn => {
            let message = "the schema changed while the statement ran; run it again";
            Failure::Message(ErrorMessage::plain(ErrorCode::Server, message))
        }
    }
}

/// A new session id for a traced request.
pub(super) fn tracing_id(host: &helenus_host::Host) -> Uuid {
    let mut noise = [0; 8];
    host.random.fill(&mut noise);
    helenus_cql::backend::tracing_id(host.clock.wall_us(), noise)
}
