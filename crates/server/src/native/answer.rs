//! One request to the backend and its answer into a buffer: QUERY, PREPARE, EXECUTE, BATCH.
//!
//! Called by the connection for each request as it arrives, and by disk threads for those that have to wait. Decides nothing
//! about statements: it translates both ways.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use helenus_cql::CqlError;
use helenus_cql::backend::{
    ANALYSED_AT_ONCE_BYTES, Answer, Backend, BatchEntry, BatchKind, BoundValue, Identity, Outcome, Prepared,
    Probe, Request as Asked, Trace, Values,
};
use helenus_engine::Ticket;
use helenus_host::Clock;
use helenus_wire::WireError;
use helenus_wire::native as wire;
use helenus_wire::native::{
    BodyCodec, Compression, Consistency, ErrorCode, ErrorMessage, Outgoing, Request, ResponseHead, Value,
    Version,
};
use parking_lot::Mutex;
use uuid::Uuid;

use super::columns::{ColumnsCache, specs};
use super::errors::{error_message, schema_change};
use super::recent::{OfBatch, Recent};
use super::rows::{Known, RowsAnswer, Unfinished, insert_warnings};
use super::shown::statement_text;
use super::traced::traced_request;
use crate::log::SlowStatements;

/// Values of a request kept on the stack; more go to the heap.
const VALUES_INLINE: usize = 24;

/// Id of no columns at all: the MD5 of nothing (`ResultSet.ResultMetadata.EMPTY`).
const EMPTY_METADATA_ID: [u8; 16] =
    [0xd4, 0x1d, 0x8c, 0xd9, 0x8f, 0x00, 0xb2, 0x04, 0xe9, 0x80, 0x09, 0x98, 0xec, 0xf8, 0x42, 0x7e];

/// Who asks, and on which connection.
pub(super) struct Caller<'a> {
    pub backend: &'a dyn Backend,
    pub identity: &'a Identity,
    /// The session of a request that is traced without having asked for it.
    pub drawn: Option<Uuid>,
    pub client: Option<SocketAddr>,
    /// The session's keyspace.
    pub keyspace: Option<&'a str>,
    pub version: Version,
    /// Compression of bodies (v3, v4).
    pub compression: Option<Compression>,
    /// Whether this thread may wait for the disk.
    pub may_block: bool,
    pub cancelled: &'a AtomicBool,
    /// Whether this connection was warned of prepared statements that depend on its keyspace.
    pub warned_of_use: &'a AtomicBool,
    pub clock: &'a dyn Clock,
    /// Who writes slow and failed statements down.
    pub slow: Option<&'a SlowStatements>,
    /// When the request came, by the coarse clock, if somebody does.
    pub began_ns: Option<u64>,
}

/// What a thread keeps from answer to answer.
#[derive(Default)]
pub(super) struct Tools {
    columns: ColumnsCache,
    statements: Recent,
    /// The coarse clock when the last request was answered, within a poll: the next begins then.
    answered_ns: Option<u64>,
    lz4: Option<BodyCodec>,
    snappy: Option<BodyCodec>,
}

impl Tools {
    /// A poll begins: what was the time before is not now.
    pub fn forget_time(&mut self) {
        self.answered_ns = None;
    }

    /// Lets go of buffers that a large body made grow.
    pub fn trim(&mut self) {
        [&mut self.lz4, &mut self.snappy].into_iter().flatten().for_each(BodyCodec::trim);
    }

    /// The coarse clock, as the request before this one left it: one look a request serves for two.
    pub fn now_ns(&self, clock: &dyn Clock) -> u64 {
        self.answered_ns.unwrap_or_else(|| clock.coarse_ns())
    }

    /// The codec of a connection's bodies; codecs have no state but their buffers, so connections share them.
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

/// What became of a request.
pub(super) enum Reply {
    /// The answer is in the buffer.
    Written,
    /// The answer is in the buffer, and is an error of this code.
    Refused(ErrorCode),
    /// The answer is in the buffer, and the session has another keyspace.
    UsedKeyspace(Arc<str>),
    /// The answer may leave once its ticket is ready.
    Held(Held),
    /// Nothing was done: run the request again where it may block.
    WouldBlock,
    /// The client has gone, and the request ended with it: there is no answer, and nothing has failed.
    Cancelled,
}

/// An answer that waits for the log.
pub(super) struct Held {
    pub ticket: Ticket,
    pub head: ResponseHead<'static>,
    /// The envelope; `None` for a Void that is not encoded yet, the answer to almost every write.
    pub envelope: Option<Vec<u8>>,
    /// Of the request: an error of the write names it.
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
    // A traced request is counted and timed. One that may become slow is counted, and timed where it waits for files: of
    // those on disk threads, each; the others are over at once.
    let is_watched = caller.may_block && caller.began_ns.is_some();
    let new = if began.is_some() { Probe::default } else { Probe::of_disk };
    let probe = (began.is_some() || is_watched).then(|| Mutex::new(new()));
    let mut desk = Desk { caller, head, consistency, tools, out, probe: probe.as_ref() };
    let reply = answer_untraced(&mut desk, request);
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
        // The request itself is answered; that its trace could not be kept shows as a trace that is not there.
        let _kept = caller.backend.record_trace(&trace);
    }
    reply
}

fn answer_untraced(desk: &mut Desk<'_>, request: &Request<'_>) -> Reply {
    let caller = desk.caller;
    let result = match request {
        Request::Query(query) => desk.query(query),
        Request::Prepare(prepare) => desk.prepare(prepare),
        Request::Execute(execute) => desk.execute(execute),
        Request::Batch(batch) => desk.batch(batch),
        Request::Startup(_) | Request::Options | Request::Register(_) | Request::AuthResponse(_) => {
            Err(Failure::Message(ErrorMessage::plain(ErrorCode::Server, "not a request for the backend")))
        }
    };
    match result {
        Ok(reply) => reply,
        Err(Failure::Cql(CqlError::WouldBlock)) if !caller.may_block => Reply::WouldBlock,
        Err(Failure::Cql(CqlError::Cancelled)) => Reply::Cancelled,
        Err(Failure::Cql(error)) => desk.refuse(&error_message(&error), request),
        Err(Failure::Wire(error)) => desk.refuse(&ErrorMessage::from(&error), request),
        Err(Failure::Message(message)) => desk.refuse(&message, request),
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
struct Desk<'a> {
    caller: &'a Caller<'a>,
    head: ResponseHead<'static>,
    consistency: Consistency,
    tools: &'a mut Tools,
    out: &'a mut Vec<u8>,
    /// Of a traced request.
    probe: Option<&'a Mutex<Probe>>,
}

impl Desk<'_> {
    fn query(&mut self, query: &wire::Query<'_>) -> Result<Reply, Failure> {
        query.parameters.check_page_size()?;
        let known = if query.parameters.skip_metadata { Known::Skip } else { Known::Nothing };
        let backend = self.caller.backend;
        self.run(&query.parameters, (known, None), |request, rows| backend.query(query.query, request, rows))
    }

    fn execute(&mut self, execute: &wire::Execute<'_>) -> Result<Reply, Failure> {
        let backend = self.caller.backend;
        let prepared = self.tools.statements.take(backend, execute.id, self.caller.may_block)?;
        execute.parameters.check_page_size()?;
        let known = known_columns(self.caller.version, execute, &prepared);
        let warning = keyspace_warning(self.caller, &prepared, true);
        let reply = self.run(&execute.parameters, (known, warning), |request, rows| {
            backend.execute(&prepared, request, rows)
        });
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
            Ok(self.hold(start, ticket))
        })
    }

    fn batch(&mut self, batch: &wire::Batch<'_>) -> Result<Reply, Failure> {
        let mut known = OfBatch::default();
        let reply = self.run_batch(batch, &mut known);
        known.taken.into_iter().for_each(|taken| self.tools.statements.give_back(taken));
        reply
    }

    /// `known` gets the prepared statements of the batch.
    fn run_batch(&mut self, batch: &wire::Batch<'_>, known: &mut OfBatch) -> Result<Reply, Failure> {
        let backend = self.caller.backend;
        // All values of all statements in one allocation, then a range of them for each statement.
        let mut values = Vec::with_capacity(2 * batch.statements.len());
        let mut statements = Vec::with_capacity(batch.statements.len());
        let (place, may_block) = (&mut self.tools.statements, self.caller.may_block);
        batch.statements.walk(
            |value| values.push(bound(value)),
            |statement, count| {
                let of = match statement {
                    wire::StatementRef::Query(query) => Of::Text(query),
                    wire::StatementRef::Prepared(id) => {
                        Of::Known(place.place(backend, id, may_block, known)?)
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
        // A batch with conditions has rows, whose columns nobody knows before.
        let mut rows = RowsAnswer::new(self.out, cache, self.head, Known::Nothing);
        let Answer { outcome, warnings } = backend.batch(&batch_of_entries, &request, &mut rows)?;
        let Outcome::Rows { columns, paging_state, ticket } = outcome else {
            drop(rows);
            return self.without_rows(outcome, &warnings);
        };
        let codec = codec.filter(|_| warnings.is_empty());
        rows.finish(&columns, paging_state.as_deref(), codec).map_err(unfinished)?;
        self.warn(start, &warnings)?;
        Ok(self.hold(start, ticket))
    }

    fn prepare(&mut self, prepare: &wire::Prepare<'_>) -> Result<Reply, Failure> {
        if !self.caller.may_block && prepare.query.len() > ANALYSED_AT_ONCE_BYTES {
            return Err(Failure::Cql(CqlError::WouldBlock));
        }
        let keyspace = prepare.keyspace.or(self.caller.keyspace);
        let prepared = self.caller.backend.prepare(prepare.query, keyspace, self.caller.identity)?;
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
        Ok(Reply::Written)
    }

    fn without_rows(&mut self, outcome: Outcome, warnings: &[String]) -> Result<Reply, Failure> {
        let start = self.out.len();
        match outcome {
            Outcome::Done(ticket) => {
                // Ready or failed: both are found out where held answers are looked at.
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

    /// Puts warnings into the rows that begin at `start`, which were not compressed for that.
    fn warn(&mut self, start: usize, warnings: &[String]) -> Result<(), WireError> {
        if warnings.is_empty() {
            return Ok(());
        }
        let codec = self.tools.codec(self.caller.compression);
        insert_warnings(self.out, start, warnings, &self.head, codec)
    }

    /// Takes the answer that begins at `start` back out of the buffer if its ticket is not ready.
    fn hold(&mut self, start: usize, ticket: Option<Ticket>) -> Reply {
        match ticket {
            Some(ticket) if !matches!(ticket.is_ready(), Ok(true)) => {
                let envelope = self.out.get(start..).unwrap_or_default().to_vec();
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
        // An error's text is bounded by the statement's, so it always fits.
        let _fits = self.put(&Outgoing::Error(message), &[]);
        let code = message.detail.code();
        // A client that is told to prepare once more has done nothing wrong.
        if let Some(slow) = self.caller.slow.filter(|_| code != ErrorCode::Unprepared) {
            let (backend, values) = (self.caller.backend, slow.shows_values());
            let text = || statement_text(request, backend, values);
            slow.failed(&text, (code.name(), &message.message), is_servers(code), self.caller.client);
        }
        Reply::Refused(code)
    }
}

/// What a statement of a batch is.
enum Of<'a> {
    Text(&'a str),
    /// Its place among the prepared ones.
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

/// What the backend wants to know besides the statement.
fn asked<'r>(caller: &Caller<'r>, parameters: &wire::QueryParameters<'r>, values: Values<'r>) -> Asked<'r> {
    Asked {
        keyspace: parameters.keyspace.or(caller.keyspace),
        identity: caller.identity,
        client: caller.client,
        consistency: parameters.consistency.code(),
        serial_consistency: parameters.serial_consistency.map(wire::Consistency::code),
        values,
        // Less than one row a page means no pages, as in Cassandra; zero has been refused.
        page_size: parameters.page_size.and_then(|rows| u32::try_from(rows).ok()),
        paging_state: parameters.paging_state,
        timestamp_us: parameters.timestamp,
        now_s: parameters.now_in_seconds.map(|now| i64::from(now.cast_unsigned())),
        may_block: caller.may_block,
        deadline_ns: None,
        cancelled: Some(caller.cancelled),
        probe: None,
    }
}

/// `ExecuteMessage.execute`: v5 compares the id that came with the request, the older versions trust what was prepared. A
/// conditional write has no columns when prepared and different ones with each answer: those are always described.
fn known_columns<'a>(version: Version, execute: &wire::Execute<'a>, prepared: &Prepared) -> Known<'a> {
    let skip = execute.parameters.skip_metadata;
    match (&prepared.columns, execute.result_metadata_id) {
        (None, _) => Known::Nothing,
        (Some(_), Some(id)) if version >= Version::V5 => Known::Metadata { id, skip },
        (Some(columns), _) if skip => Known::Skips(columns.id),
        (Some(_), _) => Known::Nothing,
    }
}

/// What Cassandra tells a client, once a connection, whose prepared statement depends on the keyspace in use
/// (`ClientState.warnAboutUseWithPreparedStatements`): when it prepares one, and when it runs one in another keyspace.
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
        Unfinished::Torn => {
            let message = "the schema changed while the statement ran; run it again";
            Failure::Message(ErrorMessage::plain(ErrorCode::Server, message))
        }
    }
}

/// A session id for a traced request.
pub(super) fn tracing_id(host: &helenus_host::Host) -> Uuid {
    let mut noise = [0; 8];
    host.random.fill(&mut noise);
    helenus_cql::backend::tracing_id(host.clock.wall_us(), noise)
}
