//! One connection of an import: parses records, sends them as values of a prepared statement with many requests in
//! flight, and handles the answers.
//!
//! Consecutive rows of one partition are sent as one unlogged batch. Requests that failed for a transient reason, such
//! as an overload, are sent again after a pause, in which the other requests go on (`resend`). Rows that are malformed or
//! refused go to the writer of the error file.

use super::super::refusal::Refused;
use super::super::session::Prepared;
use super::super::value::{TextRules, parse_value};
use super::dialect::Fields;
use super::input::Chunk;
use super::options::Marks;
use super::resend::{Later, Refusal, Window};
use crate::commands::client::{Connection, Received};
use anyhow::{Result, bail};
use helenus_model::types::CqlType;
use helenus_wire::native::{
    Batch, BatchKind, BatchStatement, Consistency, Envelope, ErrorCode, Execute, Opcode, QueryParameters,
    Request, RequestHead, Response, StatementRef, Statements, Value, Values, Version, decode_response,
};
use parking_lot::Mutex;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError};
use std::time::{Duration, Instant};

/// Bytes of output that are assembled before a write.
const FILL: usize = 64 << 10;
/// Maximum time without any answer before the connection is given up.
const PATIENCE: Duration = Duration::from_secs(90);
/// Time after which a rate limit is looked at again.
const RATE_PAUSE: Duration = Duration::from_millis(2);
/// Longest time in which an import that was given up is not noticed.
const PAUSE_MAX: Duration = Duration::from_millis(50);

/// A variable of the statement.
#[derive(Clone, Debug)]
pub struct Target {
    /// The index of the record's field; `None`: the whole record, as JSON.
    pub field: Option<usize>,
    pub name: String,
    pub ty: CqlType,
    pub is_key: bool,
}

/// The parameters that all connections share.
pub struct Plan {
    pub targets: Vec<Target>,
    /// Number of fields in a record.
    pub fields: usize,
    pub marks: Marks,
    pub texts: TextRules,
    pub consistency: Consistency,
    pub batch_rows: usize,
    pub is_counter: bool,
    pub null_as_unset: bool,
    pub attempts_max: u32,
    pub requests_max: usize,
    pub rows_per_second: Option<u64>,
}

/// The state that all connections share.
pub struct Shared {
    pub chunks: Mutex<Receiver<Arc<Chunk>>>,
    pub rows_done: AtomicU64,
    pub rows_sent: AtomicU64,
    pub begun: Instant,
    pub is_aborted: AtomicBool,
    /// Bytes of the chunks that were read, which the connections take at most a few chunks later.
    pub bytes_read: AtomicU64,
    /// Bytes of all files; 0 if they are not known, as of a pipe.
    pub bytes_total: u64,
}

impl Shared {
    /// The share of the input that was read.
    pub fn share(&self) -> Option<f64> {
        let read = self.bytes_read.load(Ordering::Relaxed) as f64;
        (self.bytes_total > 0).then(|| read / self.bytes_total as f64)
    }
}

/// Rows that were not imported.
#[derive(Debug)]
pub struct Failed {
    pub is_parse_error: bool,
    pub message: String,
    pub rows: Vec<Vec<u8>>,
    /// The number of the first row.
    pub first_row: u64,
    pub attempts: u32,
}

/// The serialised values of a row.
#[derive(Clone, Default)]
struct Row {
    bytes: Vec<u8>,
    spans: Vec<Option<(usize, usize)>>,
}

impl Row {
    fn value(&self, at: usize) -> Option<&[u8]> {
        let (start, end) = (*self.spans.get(at)?)?;
        self.bytes.get(start..end)
    }

    fn has_key_of(&self, other: &Row, key: &[u16]) -> bool {
        !key.is_empty() && key.iter().all(|at| self.value(usize::from(*at)) == other.value(usize::from(*at)))
    }
}

/// A request in flight, with its rows.
struct RequestInFlight {
    chunk: Arc<Chunk>,
    first: usize,
    count: usize,
    attempts: u32,
}

impl RequestInFlight {
    /// Its rows in the chunk.
    fn rows(&self) -> Range<usize> {
        self.first..self.first + self.count
    }
}

/// Why rows were not imported.
struct Failure<'a> {
    is_parse_error: bool,
    text: &'a str,
    attempts: u32,
}

/// A connection and its feed of requests.
pub struct Worker<'w> {
    pub connection: Connection,
    pub feed: RequestFeed<'w>,
}

/// The rows to be sent, and the requests in flight.
pub struct RequestFeed<'w> {
    plan: &'w Plan,
    shared: &'w Shared,
    prepared: Prepared,
    version: Version,
    failures: SyncSender<Failed>,
    chunk: Option<Arc<Chunk>>,
    /// The index of the next record of the chunk.
    at: usize,
    is_over: bool,
    fields: Fields,
    rows: Vec<Row>,
    /// The index in the chunk of a row that is already parsed and begins the next group.
    carried: Option<usize>,
    spare: Row,
    flights: Vec<Option<RequestInFlight>>,
    free: Vec<i16>,
    again: Later<RequestInFlight>,
    window: Window,
}

impl<'w> RequestFeed<'w> {
    /// A feed without requests in flight.
    pub fn new(
        plan: &'w Plan,
        shared: &'w Shared,
        prepared: Prepared,
        version: Version,
        failures: SyncSender<Failed>,
    ) -> RequestFeed<'w> {
        let streams = i16::try_from(plan.requests_max).unwrap_or(i16::MAX);
        RequestFeed {
            plan,
            shared,
            prepared,
            version,
            failures,
            chunk: None,
            at: 0,
            is_over: false,
            fields: Fields::default(),
            rows: vec![Row::default(); plan.batch_rows],
            carried: None,
            spare: Row::default(),
            flights: (0..streams).map(|_| None).collect(),
            free: (0..streams).rev().collect(),
            again: Later::default(),
            window: Window::new(plan.requests_max),
        }
    }

    fn in_flight(&self) -> usize {
        self.flights.len() - self.free.len()
    }

    /// Appends requests while there are rows, free stream ids and room in the window. Requests that wait to be sent again take room
    /// from new rows, so that a server that is overloaded gets fewer, and their number is bounded.
    fn fill(&mut self, out: &mut Vec<u8>) -> Result<()> {
        let begin = out.len();
        while !self.free.is_empty() && self.in_flight() < self.window.size() && out.len() - begin < FILL {
            let flight = match self.again.take_due(Instant::now()) {
                Some(flight) => {
                    for at in 0..flight.count {
                        self.parse(&flight.chunk, flight.first + at)?;
                        if let Some(row) = self.rows.get_mut(at) {
                            std::mem::swap(row, &mut self.spare);
                        }
                    }
                    self.carried = None;
                    flight
                }
                None if self.in_flight() + self.again.len() >= self.window.size() => break,
                None if self.is_held_back() => break,
                None => match self.next_group() {
                    Some(flight) => flight,
                    None => break,
                },
            };
            self.put(flight, out)?;
        }
        Ok(())
    }

    /// Whether the rate that the user set demands a pause.
    fn is_held_back(&self) -> bool {
        self.plan.rows_per_second.is_some_and(|rate| {
            let allowed = self.shared.begun.elapsed().as_secs_f64() * rate as f64;
            self.shared.rows_sent.load(Ordering::Relaxed) as f64 > allowed
        })
    }

    /// The next group of rows for one request, parsed into `rows`.
    fn next_group(&mut self) -> Option<RequestInFlight> {
        loop {
            let chunk = match &self.chunk {
                Some(chunk) if self.at < chunk.len() => Arc::clone(chunk),
                _ => {
                    self.chunk = self.receive();
                    (self.at, self.carried) = (0, None);
                    self.chunk.as_ref()?;
                    continue;
                }
            };
            let (mut first, mut count) = (self.at, 0);
            while self.at < chunk.len() && count < self.plan.batch_rows {
                if self.carried.take() != Some(self.at)
                    && let Err(error) = self.parse(&chunk, self.at)
                {
                    let text = format!("ParseError - {error:#}");
                    self.fail(
                        &chunk,
                        self.at..self.at + 1,
                        &Failure { is_parse_error: true, text: &text, attempts: 1 },
                    );
                    self.at += 1;
                    if count > 0 {
                        break;
                    }
                    first = self.at;
                    continue;
                }
                let belongs = match self.rows.first() {
                    Some(row) if count > 0 => row.has_key_of(&self.spare, &self.prepared.partition_key),
                    _ => true,
                };
                if !belongs {
                    self.carried = Some(self.at);
                    break;
                }
                if let Some(row) = self.rows.get_mut(count) {
                    std::mem::swap(row, &mut self.spare);
                }
                self.at += 1;
                count += 1;
            }
            if count > 0 {
                self.shared.rows_sent.fetch_add(count as u64, Ordering::Relaxed);
                return Some(RequestInFlight { chunk, first, count, attempts: 0 });
            }
        }
    }

    /// The next chunk. Blocks only if no request is in flight or waits to be sent again.
    fn receive(&mut self) -> Option<Arc<Chunk>> {
        if self.is_over {
            return None;
        }
        // Another connection may hold the lock and wait for a chunk; answers in flight must not wait for that.
        let received = match (self.in_flight() + self.again.len(), self.shared.chunks.try_lock()) {
            (0, Some(chunks)) => chunks.recv().map_err(|_| TryRecvError::Disconnected),
            (0, None) => self.shared.chunks.lock().recv().map_err(|_| TryRecvError::Disconnected),
            (_, Some(chunks)) => chunks.try_recv(),
            (_, None) => Err(TryRecvError::Empty),
        };
        match received {
            Ok(chunk) => Some(chunk),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => {
                self.is_over = true;
                None
            }
        }
    }

    /// Parses a record into `spare`.
    fn parse(&mut self, chunk: &Chunk, at: usize) -> Result<()> {
        let record = match std::str::from_utf8(chunk.record(at)) {
            Ok(record) => record,
            Err(error) => bail!("no UTF-8 at byte {}", error.valid_up_to()),
        };
        let row = &mut self.spare;
        row.bytes.clear();
        row.spans.clear();
        if self.plan.fields > 0 {
            self.fields.read(record, self.plan.marks);
            if self.fields.len() != self.plan.fields {
                bail!("Invalid row length {} should be {}", self.fields.len(), self.plan.fields);
            }
        }
        for target in &self.plan.targets {
            let text = match target.field {
                Some(field) => self.fields.get(record, field).unwrap_or_default(),
                None => record,
            };
            let start = row.bytes.len();
            let is_text = matches!(target.ty, CqlType::Text | CqlType::Ascii);
            if target.field.is_some_and(|field| !(is_text && self.fields.is_quoted(field)))
                && text == self.plan.texts.null
            {
                match (target.is_key, &target.ty) {
                    (true, _) => bail!("{}", null_key(&target.name, &self.plan.texts.null)),
                    // A missing counter value adds zero.
                    (false, CqlType::Counter) => {
                        row.bytes.extend_from_slice(&0_i64.to_be_bytes());
                        row.spans.push(Some((start, row.bytes.len())));
                    }
                    (false, _) => row.spans.push(None),
                }
                continue;
            }
            if text.is_empty() && target.field.is_some() && is_null_if_empty(&target.ty) {
                if target.is_key {
                    bail!("Failed to parse an empty field for primary key column {}", target.name);
                }
                row.spans.push(None);
                continue;
            }
            if let Err(error) = parse_value(&target.ty, text, &self.plan.texts, &mut row.bytes) {
                bail!("Failed to parse {text} for column {}: {error}", target.name);
            }
            row.spans.push(Some((start, row.bytes.len())));
        }
        Ok(())
    }

    /// Appends the request of a flight, whose rows are in `rows`.
    fn put(&mut self, flight: RequestInFlight, out: &mut Vec<u8>) -> Result<()> {
        let Some(stream) = self.free.pop() else { return Ok(()) };
        let missing = match self.plan.null_as_unset && self.version >= Version::V4 {
            true => Value::Unset,
            false => Value::Null,
        };
        let variables = self.plan.targets.len();
        let values: Vec<Value<'_>> = self
            .rows
            .iter()
            .take(flight.count)
            .flat_map(|row| (0..variables).map(|at| row.value(at).map_or(missing, Value::Bytes)))
            .collect();
        let parameters = QueryParameters { consistency: self.plan.consistency, ..QueryParameters::default() };
        let head = RequestHead::new(self.version, stream);
        let count = flight.count;
        // Before anything can fail: its rows are told of then.
        if let Some(place) = self.flights.get_mut(usize::try_from(stream)?) {
            *place = Some(flight);
        }
        if count == 1 {
            let parameters = QueryParameters { values: Values::positional(&values), ..parameters };
            let metadata_id = self.prepared.metadata_id.as_deref();
            let execute = Execute { id: &self.prepared.id, result_metadata_id: metadata_id, parameters };
            Request::Execute(execute).encode(&head, out)?;
        } else {
            let statements: Vec<BatchStatement<'_>> = values
                .chunks(variables.max(1))
                .map(|values| BatchStatement {
                    statement: StatementRef::Prepared(&self.prepared.id),
                    values: Values::positional(values),
                })
                .collect();
            let kind = if self.plan.is_counter { BatchKind::Counter } else { BatchKind::Unlogged };
            let batch = Batch { kind, statements: Statements::Slice(&statements), parameters };
            Request::Batch(batch).encode(&head, out)?;
        }
        Ok(())
    }

    /// Handles an answer.
    fn answered(&mut self, envelope: &Envelope<'_>) -> Result<()> {
        let header = envelope.header;
        let place = usize::try_from(header.stream).ok().and_then(|stream| self.flights.get_mut(stream));
        let Some(place) = place.filter(|flight| flight.is_some()) else { return Ok(()) };
        // Before it is taken from those in flight: if the answer cannot be read, its rows are told of with the others.
        let refused = match header.opcode {
            Opcode::Result => None,
            _ => {
                match decode_response(header.version, header.opcode, header.flags, envelope.body)?.response {
                    Response::Error(error) => Some(error),
                    other => bail!("an answer that does not fit: {other:?}"),
                }
            }
        };
        let Some(mut flight) = place.take() else { return Ok(()) };
        self.free.push(header.stream);
        let Some(error) = refused else {
            self.shared.rows_done.fetch_add(flight.count as u64, Ordering::Relaxed);
            self.window.done();
            return Ok(());
        };
        let refusal = Refusal::of(error.detail.code(), self.plan.is_counter);
        let now = Instant::now();
        if error.detail.code() == ErrorCode::Overloaded {
            self.window.overloaded(now);
        }
        let text = Refused(error).to_string();
        flight.attempts += 1;
        let failed = |attempts| Failure { is_parse_error: false, text: &text, attempts };
        match refusal {
            Refusal::Transient if flight.attempts < self.plan.attempts_max => {
                self.again.put(now + Later::<()>::pause(flight.attempts), flight);
            }
            // The server refused a batch because of one of its rows: each row is sent alone to find it.
            Refusal::OfTheRow if flight.count > 1 => {
                for at in 0..flight.count {
                    let chunk = Arc::clone(&flight.chunk);
                    let alone = RequestInFlight { chunk, first: flight.first + at, count: 1, attempts: 0 };
                    self.again.put(now, alone);
                }
            }
            Refusal::Transient | Refusal::OfTheRow => {
                self.fail(&flight.chunk, flight.rows(), &failed(flight.attempts));
            }
            Refusal::InDoubt => {
                let text = format!("{text}; {IN_DOUBT}");
                let failure = Failure { text: &text, ..failed(flight.attempts) };
                self.fail(&flight.chunk, flight.rows(), &failure);
            }
        }
        Ok(())
    }

    /// How long to wait for answers, or for something to send. `None`: until there is an answer.
    fn wait(&self) -> Option<Duration> {
        let due = self.again.next_due()?;
        Some(due.saturating_duration_since(Instant::now()).clamp(Duration::from_millis(1), PAUSE_MAX))
    }

    fn fail(&self, chunk: &Chunk, rows: Range<usize>, failure: &Failure<'_>) {
        let failed = Failed {
            is_parse_error: failure.is_parse_error,
            message: failure.text.to_owned(),
            first_row: chunk.first_row + rows.start as u64,
            rows: rows.map(|at| chunk.record(at).to_vec()).collect(),
            attempts: failure.attempts,
        };
        // The receiver is gone if the import was given up.
        _ = self.failures.send(failed);
    }

    /// Reports the requests in flight as failed after the connection was lost. The server may have received them or
    /// not.
    fn lose(&mut self, error: &anyhow::Error) {
        let text = format!("{error:#}; {IN_DOUBT}");
        for flight in std::mem::take(&mut self.flights).into_iter().flatten() {
            let attempts = flight.attempts + 1;
            self.fail(
                &flight.chunk,
                flight.rows(),
                &Failure { is_parse_error: false, text: &text, attempts },
            );
        }
        self.fail_waiting(&text);
    }

    /// Reports the requests that wait to be sent again as failed.
    fn fail_waiting(&mut self, text: &str) {
        for flight in std::mem::take(&mut self.again).into_all() {
            let attempts = flight.attempts;
            self.fail(&flight.chunk, flight.rows(), &Failure { is_parse_error: false, text, attempts });
        }
    }
}

/// Whether an empty field is null although another text stands for null: cqlsh inserts null where the text of a value
/// cannot be empty (`ImportConversion.convert_row`, CASSANDRA-12794). It takes an empty text, blob and boolean (false), and
/// refuses an empty address and counter.
fn is_null_if_empty(ty: &CqlType) -> bool {
    !matches!(
        ty,
        CqlType::Text
            | CqlType::Ascii
            | CqlType::Blob
            | CqlType::Boolean
            | CqlType::Inet
            | CqlType::Counter
            | CqlType::Custom(_)
    )
}

fn null_key(name: &str, null: &str) -> String {
    let advice =
        " If you want to insert empty strings, consider using the WITH NULL=<marker> option for COPY.";
    let advice = if null.is_empty() { advice } else { "" };
    format!("Cannot insert null value for primary key column '{name}'.{advice}")
}

/// Said of rows that may have been written or not.
const IN_DOUBT: &str = "whether the server has these rows is not known";

/// Said of rows that were refused for a transient reason before the import was given up.
const GIVEN_UP: &str = "the import was given up before these rows were sent again";

impl Worker<'_> {
    /// Sends rows until there are none left.
    ///
    /// # Errors
    /// The connection is lost; the rows in flight are reported as failed.
    pub fn run(mut self) -> Result<()> {
        let done = self.pump();
        if let Err(error) = &done {
            self.feed.lose(error);
        }
        done
    }

    fn pump(&mut self) -> Result<()> {
        let (mut heard, mut waits) = (Instant::now(), Duration::ZERO);
        loop {
            let Worker { connection, feed } = self;
            if !feed.shared.is_aborted.load(Ordering::Relaxed) {
                connection.put(|out| feed.fill(out))?;
                connection.write_blocking()?;
            } else if feed.in_flight() == 0 {
                feed.fail_waiting(GIVEN_UP);
                return Ok(());
            }
            if feed.in_flight() == 0 {
                if feed.is_over && feed.again.is_empty() {
                    return Ok(());
                }
                // The rate limit demands a pause, or all that is left is sent again later.
                std::thread::sleep(feed.wait().unwrap_or(RATE_PAUSE));
                heard = Instant::now();
                continue;
            }
            // What is due is sent even if no answer comes.
            let wait = feed.wait().unwrap_or(PATIENCE);
            if std::mem::replace(&mut waits, wait) != wait {
                connection.socket().set_read_timeout(Some(wait))?;
            }
            match connection.read()? {
                Received::Bytes => heard = Instant::now(),
                Received::Nothing if heard.elapsed() > PATIENCE => {
                    bail!("the server has not answered for {} s", PATIENCE.as_secs())
                }
                Received::Nothing => {}
            }
            connection.envelopes(|envelope| feed.answered(envelope))?;
        }
    }
}

#[cfg(test)]
mod tests;
