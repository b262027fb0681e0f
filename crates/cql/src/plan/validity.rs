//! Decides whether a prepared statement survives a schema change, or its clients must prepare it again.

use super::analysed::Plan;
use helenus_model::schema::{Schema, Table};

impl Plan {
    /// Whether the metadata that drivers got of the statement is still correct under a newer schema. If not, the answer
    /// is UNPREPARED: drivers of protocol v3 and v4 decode rows by the columns they got at preparation, and have no
    /// other way to learn of a change (`QueryProcessor.removeInvalidPreparedStatements`).
    pub(crate) fn is_valid_in(&self, schema: &Schema) -> bool {
        let holds = |table: &Table| {
            schema.table(&table.keyspace, &table.name).is_some_and(|now| !affects_statements(table, now))
        };
        match self {
            Plan::Select(plan) => holds(plan.table()),
            Plan::Modify(plan) => holds(&plan.table),
            Plan::Batch(plan) => plan.statements.iter().all(|statement| holds(&statement.table)),
            Plan::Explain(plan) => plan.statement.is_valid_in(schema),
            Plan::Truncate(_)
            | Plan::Describe(_)
            | Plan::Ddl(_)
            | Plan::Access(_)
            | Plan::Use(_)
            | Plan::Elsewhere => true,
        }
    }
}

/// Cassandra's rule (`TableMetadata.changeAffectsPreparedStatements`), plus tables that were dropped and created again.
fn affects_statements(before: &Table, now: &Table) -> bool {
    before.id != now.id
        || before.partition_key != now.partition_key
        || before.clustering != now.clustering
        || before.statics != now.statics
        || before.regulars != now.regulars
        || before.indexes != now.indexes
        || before.flags != now.flags
        || before.options.default_time_to_live_s != now.options.default_time_to_live_s
        || before.options.gc_grace_seconds != now.options.gc_grace_seconds
}
