//! The prepared statements of the gateway, by ids of its own.
//!
//! The id is the MD5 of keyspace and text, as Cassandra makes it, so that a client finds its statement at another gateway of the
//! same cluster. The cluster's own ids differ between its versions and stay inside.

use std::sync::Arc;

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

    pub fn get(&self, id: &[u8]) -> Option<Arc<GatewayStatement>> {
        self.0.get(&StatementId::try_from(id).ok()?)
    }

    /// Keeps a statement under an id: its own, or another by which clients know it.
    pub fn add(&self, id: StatementId, statement: &Arc<GatewayStatement>) {
        self.0.insert(id, Arc::clone(statement));
    }

    /// Forgets the statements that a schema change concerns; their clients are told to prepare them again, as by Cassandra.
    pub fn forget(&self, change: &SchemaChange<'_>) {
        let concerns = |column: &ColumnSpec| match &change.target {
            SchemaTarget::Table(table) => *column.keyspace == *change.keyspace && *column.table == **table,
            _ => *column.keyspace == *change.keyspace,
        };
        self.0.retain(|_, kept| {
            let statement = &kept.statement;
            !statement.variables.iter().chain(&statement.result_columns).any(concerns)
        });
    }

    /// Forgets all.
    pub fn clear(&self) {
        self.0.clear();
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
