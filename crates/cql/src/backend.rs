//! The interface that every front end (native protocol, RPC, HTTP) uses: prepare a statement, run it, watch the schema.
//!
//! A front end decodes a request, calls a `Backend` and encodes its answer. The local engine is one implementation
//! (`local`); a gateway to another database can be another.

pub use crate::answer::{Answer, NoRows, Outcome, ResultColumn, ResultColumns, RowsOut};
use crate::audit::Subject;
use crate::error::CqlError;
pub use crate::request::{
    AnswerMemory, BatchKind, BoundValue, Identity, InFlight, Request, RoleLimits, Values, is_role_limit,
};
pub use crate::statement_id::StatementId;
use helenus_engine::account;
pub use helenus_engine::read::Probe;
use helenus_engine::{Listening, SchemaChange};
pub use helenus_logins::Room as LoginRoom;
use helenus_model::schema::Schema;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
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

    /// The subject of a statement's text, for the audit log; `None` if it is not a statement. Called after the statement
    /// was run.
    fn subject(&self, _query: &str, _keyspace: Option<&str>) -> Option<Arc<Subject>> {
        None
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

    /// Calls `listener` after each change of the schema, for events, for as long as the result lives.
    fn on_schema_change(&self, listener: Box<dyn Fn(&SchemaChange) + Send + Sync>) -> Listening;

    /// Calls `listener` whenever tickets may have become ready, for as long as the result lives.
    fn on_written(&self, listener: Box<dyn Fn() + Send + Sync>) -> Listening;

    /// The full name of the class by which clients log in; `None` if they need not.
    fn authenticator(&self) -> Option<&'static str> {
        None
    }

    /// Checks that an identity may use the server at this moment: whether its role may still log in, and from where it comes.
    /// Running a statement checks it too; preparing one does not.
    ///
    /// # Errors
    /// It may not; `WouldBlock` if the check needs the disk and may not wait.
    fn check_session(&self, _identity: &Identity, _may_block: bool) -> Result<(), CqlError> {
        Ok(())
    }

    /// Logs in. May block, for tens of milliseconds.
    ///
    /// # Errors
    /// As `LocalBackend::log_in_by_password`.
    fn log_in(&self, _proof: &LoginProof<'_>) -> Result<Identity, LoginRefused> {
        Ok(Identity::default())
    }

    /// How many logins of a client as a role may be checked now. Does not block.
    fn login_room(&self, _client: IpAddr, _role: &str) -> LoginRoom {
        LoginRoom::ANY
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

/// What a client logs in with.
#[derive(Clone, Copy, Debug, Default)]
pub struct LoginProof<'a> {
    /// Its SASL token.
    pub token: &'a [u8],
    /// Its address.
    pub client: Option<SocketAddr>,
    /// Its certificate, if it has shown one.
    pub certificate: Option<&'a ClientCertificate>,
}

/// The names in a client's certificate, which TLS has found to be trusted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientCertificate {
    /// The URIs of its alternative names, in their order.
    pub uris: Vec<String>,
    /// The common name of its subject.
    pub common_name: Option<String>,
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
    /// What it is about, for the audit log; `None` if the backend does not say.
    pub subject: Option<Arc<Subject>>,
    /// Whether its values are decoded or computed with, which takes time in proportion to their bytes: collections,
    /// JSON, calls.
    pub(crate) works_on_values: bool,
    /// The analysed statement.
    pub(crate) plan: crate::plan::Plan,
    /// What its client needs to run it.
    pub(crate) needs: Box<[crate::plan::access::Need]>,
    /// Under which permit of a role it was last allowed to run.
    pub(crate) permitted: crate::request::Permitted,
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
            subject: None,
            works_on_values: false,
            plan: crate::plan::Plan::Elsewhere,
            needs: Box::default(),
            permitted: crate::request::Permitted::default(),
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
