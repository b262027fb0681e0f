//! The interface that every front end (native protocol, RPC, HTTP) uses: prepare a statement, run it, watch the schema.
//!
//! A front end decodes a request, calls a `Backend` and encodes its answer. The local engine is one implementation
//! (`local`); a gateway to another database can be another.

use crate::error::CqlError;
use helenus_engine::account::{self, Refusal};
pub use helenus_engine::read::Probe;
use helenus_engine::read::Stage;
use helenus_engine::{Database, SchemaChange, Ticket};
use helenus_model::row_batch::{BatchColumn, RowBatch};
use helenus_model::schema::Schema;
use helenus_model::types::CqlType;
use parking_lot::Mutex;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use uuid::Uuid;

/// A database as the front ends see it.
pub trait Backend: Send + Sync {
    /// The current schema.
    fn schema(&self) -> Arc<Schema>;

    /// The epoch of the current schema: a statement that was prepared under it is still valid. Called for each request.
    fn schema_epoch(&self) -> u64;

    /// Prepares a statement. `keyspace` is the keyspace of the request (v5) or of the session.
    ///
    /// # Errors
    /// Syntax and analysis errors, the same that running the statement would give.
    fn prepare(
        &self,
        query: &str,
        keyspace: Option<&str>,
        identity: &Identity,
    ) -> Result<Arc<Prepared>, CqlError>;

    /// Finds a prepared statement by its id; analyses it again if the schema has changed since. `None`: the client must
    /// prepare it (UNPREPARED).
    fn prepared(&self, id: &StatementId) -> Result<Option<Arc<Prepared>>, CqlError>;

    /// Whether `prepared` has the statement without analysing a long text again. Not called for each request.
    fn has_analysed(&self, _id: &StatementId) -> bool {
        true
    }

    /// Runs a query from its text. Rows go to `out`.
    ///
    /// # Errors
    /// `CqlError::WouldBlock` when `request.may_block` is false and a read needs the disk: the caller clears `out` and
    /// runs the same request again where it may block. Nothing has been written then.
    fn query(&self, query: &str, request: &Request<'_>, out: &mut dyn RowsOut) -> Result<Answer, CqlError>;

    /// Runs a prepared statement. Rows go to `out`.
    ///
    /// # Errors
    /// As `query`.
    fn execute(
        &self,
        statement: &Prepared,
        request: &Request<'_>,
        out: &mut dyn RowsOut,
    ) -> Result<Answer, CqlError>;

    /// Runs a batch. Rows go to `out`; only a batch with conditions has any.
    ///
    /// # Errors
    /// As `query`; a batch is applied whole or not at all.
    fn batch(
        &self,
        batch: &Batch<'_>,
        request: &Request<'_>,
        out: &mut dyn RowsOut,
    ) -> Result<Answer, CqlError>;

    /// Calls `listener` after each change of the schema, for events.
    fn on_schema_change(&self, listener: Box<dyn Fn(&SchemaChange) + Send + Sync>);

    /// Calls `listener` whenever tickets may have become ready.
    fn on_written(&self, listener: Box<dyn Fn() + Send + Sync>);

    /// The full name of the class by which clients log in; `None` if they need not.
    fn authenticator(&self) -> Option<&'static str> {
        None
    }

    /// Logs in with a SASL token. May block, for tens of milliseconds.
    ///
    /// # Errors
    /// As `LocalBackend::log_in_by_password`.
    fn log_in(&self, _token: &[u8], _client: Option<SocketAddr>) -> Result<Identity, LoginRefused> {
        Ok(Identity::default())
    }

    /// Writes what a traced request did into `system_traces`, where its client looks for it.
    ///
    /// # Errors
    /// As for a write.
    fn record_trace(&self, trace: &Trace<'_>) -> Result<(), CqlError>;

    /// Hands all writes so far to the operating system. Called once for all requests that arrived together, before
    /// their answers are sent.
    ///
    /// # Errors
    /// The log has failed.
    fn write_out(&self) -> Result<(), CqlError>;
}

/// The longest text, in bytes, that is analysed on a thread that may not wait: a few milliseconds of work at worst.
pub const ANALYSED_AT_ONCE_BYTES: usize = 2 << 10;

/// The most bytes of values that are decoded, or computed with, on a thread that may not wait.
pub(crate) const VALUES_AT_ONCE_BYTES: usize = 8 << 10;

/// The most statements of a batch that run on a thread that may not wait.
pub(crate) const STATEMENTS_AT_ONCE: usize = 256;

/// The identity behind a request: a role, or anonymous. Every statement carries it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// The role that logged in. `None`: nobody has; where clients have to log in, such an identity may do nothing.
    pub role: Option<Arc<str>>,
    /// Whether the server itself asks: it may do everything.
    is_server: bool,
}

impl Identity {
    /// The identity of a role.
    pub fn of_role(role: &str) -> Identity {
        Identity { role: Some(role.into()), is_server: false }
    }

    /// The identity of the server itself, for its own statements.
    pub fn server() -> Identity {
        Identity { role: None, is_server: true }
    }

    /// Whether it is that of the server itself.
    #[inline]
    pub(crate) fn is_server(&self) -> bool {
        self.is_server
    }
}

/// A login that failed.
#[derive(Debug)]
pub struct LoginRefused {
    /// Why, for the client.
    pub error: CqlError,
    /// How long its answer is to wait, so that guessing passwords takes time.
    pub wait: Duration,
}

impl From<CqlError> for LoginRefused {
    fn from(error: CqlError) -> LoginRefused {
        LoginRefused { error, wait: Duration::ZERO }
    }
}

/// The id of a prepared statement: the MD5 of keyspace and text, as Cassandra computes it.
pub type StatementId = [u8; 16];

/// A bound value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoundValue<'a> {
    /// A serialised value.
    Bytes(&'a [u8]),
    /// Null.
    Null,
    /// Unset: the column keeps its value (v4 and later).
    Unset,
}

/// The values of a request, by position or by name.
#[derive(Clone, Copy, Debug)]
pub enum Values<'a> {
    /// In the order of the bind markers.
    Positional(&'a [BoundValue<'a>]),
    /// By name; markers may be in another order.
    Named(&'a [(&'a str, BoundValue<'a>)]),
}

/// What is sent with a statement that is to be run.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// The keyspace of the session or, in v5, of the request.
    pub keyspace: Option<&'a str>,
    /// The identity of the client.
    pub identity: &'a Identity,
    /// The client's address, for tracing and logs.
    pub client: Option<SocketAddr>,
    /// The consistency level, numbered as in the protocol. One node holds every replica, so it only decides errors.
    pub consistency: u16,
    /// Serial consistency level, if given.
    pub serial_consistency: Option<u16>,
    /// The bound values.
    pub values: Values<'a>,
    /// The number of rows in a page; `None` for all.
    pub page_size: Option<u32>,
    /// The paging state of the last page.
    pub paging_state: Option<&'a [u8]>,
    /// The timestamp of the writes, microseconds; `None`: the server's.
    pub timestamp_us: Option<i64>,
    /// The client's current time (v5), seconds.
    pub now_s: Option<i64>,
    /// Whether reads may wait for the disk.
    pub may_block: bool,
    /// Monotonic time (of the host's clock, ns) at which the request is given up; `None`: the backend's own limit.
    pub deadline_ns: Option<u64>,
    /// Set when the client has disconnected.
    pub cancelled: Option<&'a AtomicBool>,
    /// Counts what the request touches and where its time is spent; `None`: not counted. It sums over requests, so a
    /// request that is run again after `WouldBlock` takes a fresh one.
    pub probe: Option<&'a Mutex<Probe>>,
}

/// Consistency level ONE, as the protocol numbers it.
const CONSISTENCY_ONE: u16 = 1;

impl<'a> Request<'a> {
    /// A request with these values and nothing else: no keyspace, no paging, level ONE, and it may wait for the disk.
    pub fn plain(identity: &'a Identity, values: &'a [BoundValue<'a>]) -> Request<'a> {
        Request {
            keyspace: None,
            identity,
            client: None,
            consistency: CONSISTENCY_ONE,
            serial_consistency: None,
            values: Values::Positional(values),
            page_size: None,
            paging_state: None,
            timestamp_us: None,
            now_s: None,
            may_block: true,
            deadline_ns: None,
            cancelled: None,
            probe: None,
        }
    }
}

impl Values<'_> {
    /// The total size of the values in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let of = |value: &BoundValue<'_>| match value {
            BoundValue::Bytes(bytes) => bytes.len(),
            BoundValue::Null | BoundValue::Unset => 0,
        };
        match self {
            Values::Positional(values) => values.iter().map(of).sum(),
            Values::Named(values) => values.iter().map(|(_, value)| of(value)).sum(),
        }
    }
}

impl Request<'_> {
    /// Whether the consistency level is SERIAL or LOCAL_SERIAL.
    pub(crate) fn is_serial(&self) -> bool {
        matches!(self.consistency, 0x08 | 0x09)
    }

    /// The clock, if the request has a probe; pass it to `spent`.
    pub(crate) fn began_ns(&self, database: &Database) -> Option<u64> {
        self.probe.map(|_| database.host().clock.monotonic_ns())
    }

    /// Adds the time since `began_ns` to a stage of the request's probe.
    pub(crate) fn spent(&self, database: &Database, stage: Stage, began_ns: Option<u64>) {
        if let (Some(probe), Some(began_ns)) = (self.probe, began_ns) {
            let passed_ns = database.host().clock.monotonic_ns().saturating_sub(began_ns);
            probe.lock().times.add(stage, passed_ns);
        }
    }
}

/// A statement that changes the schema, together with a further change, made in the same step, that CQL cannot express.
pub struct SchemaStep<'a> {
    /// The statement.
    pub query: String,
    /// Makes the further change; takes the timestamp of the change.
    pub beyond: Box<SchemaBeyond<'a>>,
}

/// A further change of a schema, given the timestamp at which it is made.
pub type SchemaBeyond<'a> = dyn Fn(&mut Schema, i64) -> Result<(), CqlError> + 'a;

/// A session id for a request that began at `wall_us`: a time UUID, as Cassandra's. The random `noise` replaces node
/// and clock sequence.
pub fn tracing_id(wall_us: i64, noise: [u8; 8]) -> Uuid {
    /// 100 ns ticks from the beginning of the Gregorian calendar to 1970.
    const EPOCH_TICKS: u64 = 0x01B2_1DD2_1381_4000;
    let [s0, s1, node @ ..] = noise;
    let ticks = EPOCH_TICKS + u64::try_from(wall_us).unwrap_or_default() * 10;
    let stamp = uuid::Timestamp::from_gregorian_time(ticks, u16::from_be_bytes([s0, s1]) & 0x3FFF);
    Uuid::new_v1(stamp, &node)
}

/// A traced request that has been answered.
#[derive(Clone, Debug)]
pub struct Trace<'a> {
    /// The session's id, which was sent with the answer.
    pub session: Uuid,
    /// The client's address.
    pub client: Option<SocketAddr>,
    /// What was asked, in Cassandra's words: `Execute CQL3 query`.
    pub request: &'static str,
    /// The parameters of the request by name: `query`, `consistency_level`.
    pub parameters: Vec<(&'a str, &'a str)>,
    /// When it began, wall clock, microseconds.
    pub started_us: i64,
    /// The time until its answer was made, microseconds.
    pub duration_us: i64,
    /// What it touched: the probe that was passed with the request.
    pub probe: &'a Probe,
}

/// What a statement did, and the warnings for its client.
pub struct Answer {
    /// What it did.
    pub outcome: Outcome,
    /// Cassandra's `ClientWarn`: texts for the client. Protocol v3 cannot carry them.
    pub warnings: Vec<String>,
}

impl From<Outcome> for Answer {
    /// Without a warning.
    fn from(outcome: Outcome) -> Answer {
        Answer { outcome, warnings: Vec::new() }
    }
}

/// What a statement did.
pub enum Outcome {
    /// It is done once the ticket is ready; there are no rows.
    Done(Ticket),
    /// The rows went to `out`.
    Rows {
        /// The columns.
        columns: Arc<ResultColumns>,
        /// Where the next page begins; `None` after the last row.
        paging_state: Option<Vec<u8>>,
        /// When the rows may be sent (conditional writes); `None`: at once.
        ticket: Option<Ticket>,
    },
    /// The session's keyspace changes to this one.
    UsedKeyspace(Arc<str>),
    /// The schema changed, or nothing had to change (`IF NOT EXISTS`: `None`).
    SchemaChanged(Option<SchemaChange>, Ticket),
}

/// The columns of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultColumns {
    /// The columns in order.
    pub columns: Vec<ResultColumn>,
    /// The MD5 over the columns, as v5 identifies them; `EMPTY_METADATA_ID` for statements without rows.
    pub id: [u8; 16],
}

/// One column of a result, or one bind marker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultColumn {
    /// The keyspace of its table.
    pub keyspace: Arc<str>,
    /// Its table.
    pub table: Arc<str>,
    /// Name, alias or expression.
    pub name: Arc<str>,
    /// Type.
    pub ty: CqlType,
}

/// A prepared statement.
pub struct Prepared {
    /// Its id.
    pub id: StatementId,
    /// Its text.
    pub query: Arc<str>,
    /// The keyspace in which it was prepared.
    pub keyspace: Option<Arc<str>>,
    /// The bind markers in order.
    pub markers: Vec<ResultColumn>,
    /// The indexes of the markers that bind the partition key, in the key's order; empty unless all of the key is
    /// bound.
    pub partition_key_markers: Vec<u16>,
    /// The result's columns; `None` for statements without rows.
    pub columns: Option<Arc<ResultColumns>>,
    /// Whether it names its own keyspace, and so means the same in every session.
    pub is_qualified: bool,
    /// Whether its values are decoded or computed with, which takes time in proportion to their bytes: collections,
    /// JSON, calls.
    pub(crate) works_on_values: bool,
    /// The analysed statement.
    pub(crate) plan: crate::plan::Plan,
    /// What its client needs to run it.
    pub(crate) needs: Box<[crate::plan::access::Need]>,
    /// The epoch of the schema under which it was analysed.
    pub(crate) epoch: u64,
    /// The memory that it holds, charged to the account; `None` where memory is not accounted for.
    pub(crate) memory: Option<account::Charge>,
}

impl Prepared {
    /// A statement that a backend other than the local one keeps, with what front ends need of it. The local backend
    /// does not run it.
    pub fn elsewhere(id: StatementId, query: &str, markers: Vec<ResultColumn>) -> Prepared {
        Prepared {
            id,
            query: query.into(),
            keyspace: None,
            markers,
            partition_key_markers: Vec::new(),
            columns: None,
            is_qualified: true,
            works_on_values: false,
            plan: crate::plan::Plan::Elsewhere,
            needs: Box::default(),
            epoch: 0,
            memory: None,
        }
    }

    /// Whether it was analysed under the schema of this epoch.
    pub fn is_of_epoch(&self, epoch: u64) -> bool {
        self.epoch == epoch
    }

    /// Whether it is a BATCH.
    pub fn is_batch(&self) -> bool {
        matches!(self.plan, crate::plan::Plan::Batch(_))
    }
}

/// Kind of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchKind {
    /// Atomic across partitions.
    Logged,
    /// Atomic within each partition (here across partitions too).
    Unlogged,
    /// Counter updates.
    Counter,
}

/// One statement of a batch.
pub enum BatchEntry<'a> {
    /// By text.
    Query(&'a str, Values<'a>),
    /// Prepared.
    Prepared(&'a Prepared, Values<'a>),
}

/// A batch as the protocol carries it.
pub struct Batch<'a> {
    /// Its kind.
    pub kind: BatchKind,
    /// Its statements.
    pub entries: Vec<BatchEntry<'a>>,
}

/// Receives the rows of a result: writes them directly into the front end's answer. Cells arrive row by row, in column
/// order.
pub trait RowsOut {
    /// The columns of the rows that follow; called once, before the first cell.
    fn columns(&mut self, columns: &Arc<ResultColumns>);
    /// A cell: a serialised value, or null.
    fn cell(&mut self, value: Option<&[u8]>);
    /// Several consecutive cells.
    fn cells(&mut self, values: &[Option<&[u8]>]) {
        for value in values {
            self.cell(*value);
        }
    }
    /// The row is complete.
    fn end_row(&mut self);
    /// All rows of a row batch; `columns` selects the cells of each.
    fn rows(&mut self, run: &RowBatch<'_>, columns: &[BatchColumn<'_>]) {
        for row in run.rows() {
            for column in columns {
                self.cell(match *column {
                    BatchColumn::Value(place) => row.get(place).map(|value| run.bytes(value)),
                    BatchColumn::Fixed(value) => value,
                });
            }
            self.end_row();
        }
    }
    /// Reserves memory for this many more bytes, on the account.
    ///
    /// # Errors
    /// There is not enough memory.
    fn make_room(&mut self, bytes: usize) -> std::result::Result<(), Refusal> {
        account::grow(bytes)
    }
    /// The bytes written so far, for cutting pages.
    fn bytes(&self) -> usize;
    /// Discards everything, for a second run.
    fn clear(&mut self);
}
