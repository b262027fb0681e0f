//! The prepared statements of the gateway, by ids of its own.
//!
//! The id is the MD5 of keyspace and text, or of the text alone if it names its keyspaces, as Cassandra makes it, so that a client finds its statement at another gateway of the
//! same cluster. The cluster's own ids differ between its versions and stay inside.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use helenus_cluster::Statement;
use helenus_wire::native::{ColumnSpec, SchemaChange, SchemaTarget};
use quick_cache::Weighter;
use quick_cache::sync::Cache;

use crate::statement_text::StatementText;

/// The memory of all statements, and what one is taken to need at least.
const BYTES_MAX: u64 = 64 << 20;
const STATEMENT_BYTES: u64 = 1 << 10;

pub(crate) type StatementId = [u8; 16];

/// A prepared statement.
pub(crate) struct GatewayStatement {
    pub id: StatementId,
    pub statement: Arc<Statement>,
    pub text: StatementText,
    /// The id of its result's columns that v5 clients get.
    pub metadata_id: Vec<u8>,
    /// Set when the schema has changed since: the statement is prepared again before it is used.
    is_doubtful: AtomicBool,
}

impl GatewayStatement {
    pub fn new(
        id: StatementId,
        statement: Arc<Statement>,
        text: StatementText,
        metadata_id: Vec<u8>,
    ) -> GatewayStatement {
        GatewayStatement { id, statement, text, metadata_id, is_doubtful: AtomicBool::new(false) }
    }

    /// Whether clients that have prepared one of these can use the other: they bind and read the same.
    pub fn is_like(&self, other: &Statement) -> bool {
        self.statement.variables == other.variables
            && self.statement.result_columns == other.result_columns
            && self.statement.partition_key == other.partition_key
    }

    fn concerns(&self, change: &SchemaChange<'_>) -> bool {
        let concerns = |column: &ColumnSpec| match &change.target {
            SchemaTarget::Table(table) => *column.keyspace == *change.keyspace && *column.table == **table,
            _ => *column.keyspace == *change.keyspace,
        };
        self.statement.variables.iter().chain(&self.statement.result_columns).any(concerns)
    }
}

#[derive(Clone)]
struct ByText;

impl Weighter<StatementId, Arc<GatewayStatement>> for ByText {
    fn weight(&self, _id: &StatementId, statement: &Arc<GatewayStatement>) -> u64 {
        let columns = statement.statement.variables.len() + statement.statement.result_columns.len();
        STATEMENT_BYTES + 2 * statement.statement.text.len() as u64 + 128 * columns as u64
    }
}

/// All of them.
pub(crate) struct Statements(Cache<StatementId, Arc<GatewayStatement>, ByText>);

impl Statements {
    pub fn new() -> Statements {
        let estimated = (BYTES_MAX / STATEMENT_BYTES / 4) as usize;
        Statements(Cache::with_weighter(estimated, BYTES_MAX, ByText))
    }

    /// The statement, unless it is doubtful.
    pub fn get(&self, id: &[u8]) -> Option<Arc<GatewayStatement>> {
        self.find(id).filter(|kept| !kept.is_doubtful.load(Ordering::Relaxed))
    }

    /// The statement, doubtful or not.
    pub fn find(&self, id: &[u8]) -> Option<Arc<GatewayStatement>> {
        self.0.get(&StatementId::try_from(id).ok()?)
    }

    /// Keeps a statement under an id: its own, or another by which clients know it.
    pub fn add(&self, id: StatementId, statement: &Arc<GatewayStatement>) {
        self.0.insert(id, Arc::clone(statement));
    }

    /// Forgets the statements that a client's change of the schema concerns; their clients are told to prepare them again, as by
    /// Cassandra. Called before that client has its answer.
    pub fn forget(&self, change: &SchemaChange<'_>) {
        self.0.retain(|_, kept| !kept.concerns(change));
    }

    /// Forgets a statement.
    pub fn remove(&self, id: &StatementId) {
        self.0.remove(id);
    }

    /// Doubts the statements that a change of the schema concerns, of which a node has told; without a change all. They may have been
    /// prepared before it or after it.
    pub fn doubt(&self, change: Option<&SchemaChange<'_>>) {
        self.0.retain(|_, kept| {
            if change.is_none_or(|change| kept.concerns(change)) {
                kept.is_doubtful.store(true, Ordering::Relaxed);
            }
            true
        });
    }
}

/// The id of a statement.
pub(crate) fn statement_id(keyspace: Option<&str>, text: &str) -> StatementId {
    let mut context = md5::Context::new();
    context.consume(keyspace.unwrap_or_default());
    context.consume(text);
    *context.finalize()
}

/// The id of columns, for a cluster that has none (before v5).
pub(crate) fn metadata_id(columns: &[ColumnSpec]) -> Vec<u8> {
    let mut context = md5::Context::new();
    for column in columns {
        context.consume(format!("{}.{}.{} {:?}\n", column.keyspace, column.table, column.name, column.ty));
    }
    context.finalize().to_vec()
}
