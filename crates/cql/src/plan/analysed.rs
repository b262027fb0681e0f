//! From a parsed statement to its plan: which kind of plan it becomes, and the metadata that drivers get.

use super::access::AccessStatement;
use super::batch::BatchPlan;
use super::ddl::DdlPlan;
use super::describe::DescribePlan;
use super::explain::ExplainPlan;
use super::modify::ModifyPlan;
use super::select::SelectPlan;
use super::timeout::Timeout;
use crate::analysis::{Markers, Scope};
use crate::answer::{ResultColumn, ResultColumns};
use crate::error::{CqlError, Result};
use crate::syntax::ast::{Statement, StatementKind};
use crate::virtual_table::is_virtual_keyspace;
use helenus_engine::{is_replicated_system_keyspace, is_system_keyspace};
use helenus_model::schema::Table;
use std::sync::Arc;

/// An analysed statement.
#[derive(Debug)]
pub(crate) enum Plan {
    /// SELECT.
    Select(SelectPlan),
    /// DESCRIBE.
    Describe(DescribePlan),
    /// INSERT, UPDATE, DELETE.
    Modify(ModifyPlan),
    /// BATCH.
    Batch(BatchPlan),
    /// EXPLAIN.
    Explain(Box<ExplainPlan>),
    /// CREATE, ALTER and DROP of keyspaces, tables and types.
    Ddl(DdlPlan),
    /// A statement about roles, identities or permissions.
    Access(AccessStatement),
    /// USE.
    Use(Arc<str>),
    /// TRUNCATE.
    Truncate(Arc<Table>),
    /// Not run here: another backend keeps the statement (`Prepared::elsewhere`).
    Elsewhere,
}

impl Plan {
    /// The time that the statement allows itself.
    pub(crate) fn timeout(&self) -> Option<&Timeout> {
        match self {
            Plan::Select(plan) => plan.timeout.as_ref(),
            Plan::Modify(plan) => plan.attributes.timeout.as_ref(),
            Plan::Batch(plan) => plan.attributes.timeout.as_ref(),
            _ => None,
        }
    }
}

/// A plan, and the metadata of the statement for drivers.
#[derive(Debug)]
pub(crate) struct Analysed {
    /// The plan.
    pub(crate) plan: Plan,
    /// The bind markers in order.
    pub(crate) markers: Vec<ResultColumn>,
    /// The indexes of the markers that bind the partition key; empty unless all of the key is bound.
    pub(crate) partition_key_markers: Vec<u16>,
    /// The result's columns; `None` for statements without rows.
    pub(crate) columns: Option<Arc<ResultColumns>>,
    /// Whether the session's keyspace is left out of the statement's id, because it names its own
    /// (`QualifiedStatement`).
    pub(crate) is_qualified: bool,
}

/// Analyses a statement.
///
/// # Errors
/// Everything that is wrong with the statement under this schema.
pub(crate) fn analyse(statement: &Statement<'_>, scope: &Scope<'_>) -> Result<Analysed> {
    if statement.markers.len() > usize::from(u16::MAX) {
        return Err(CqlError::Invalid(format!(
            "Too many markers(?). {} markers exceed the allowed maximum of {}",
            statement.markers.len(),
            u16::MAX
        )));
    }
    Markers::room_for(statement.markers.len())?;
    let mut markers = Markers::new(&statement.markers);
    let (plan, key_columns) = plan_of(statement, &statement.kind, (scope, &mut markers))?;
    let columns = match &plan {
        Plan::Select(plan) => Some(plan.columns().clone()),
        Plan::Describe(plan) => Some(plan.columns().clone()),
        Plan::Explain(plan) => Some(plan.columns().clone()),
        _ => None,
    };
    let (markers, partition_key_markers) = markers.finish(key_columns);
    Ok(Analysed {
        plan,
        markers,
        partition_key_markers,
        columns,
        is_qualified: is_qualified(&statement.kind),
    })
}

/// The plan, and the number of columns in the partition key of its table.
///
/// `kind` is the kind of the statement, or of the statement that it explains.
fn plan_of(
    statement: &Statement<'_>,
    kind: &StatementKind<'_>,
    (scope, markers): (&Scope<'_>, &mut Markers),
) -> Result<(Plan, usize)> {
    let modify = |plan: ModifyPlan| {
        plan.validate()?;
        let key_columns = plan.table.partition_key.len();
        Ok::<_, CqlError>((Plan::Modify(plan), key_columns))
    };
    Ok(match kind {
        StatementKind::Select(select) => {
            let plan = SelectPlan::prepare(select, scope, markers)?;
            let key_columns = plan.key_columns();
            (Plan::Select(plan), key_columns)
        }
        StatementKind::Describe(describe) => (Plan::Describe(DescribePlan::prepare(describe, scope)?), 0),
        StatementKind::Insert(insert) => modify(ModifyPlan::insert(insert, scope, markers)?)?,
        StatementKind::Update(update) => modify(ModifyPlan::update(update, scope, markers)?)?,
        StatementKind::Delete(delete) => modify(ModifyPlan::delete(delete, scope, markers)?)?,
        StatementKind::Batch(batch) => {
            let plan = BatchPlan::prepare(batch, scope, markers)?;
            let key_columns = plan.key_columns();
            (Plan::Batch(plan), key_columns)
        }
        StatementKind::Explain(explain) => {
            let (plan, key_columns) = plan_of(statement, &explain.statement, (scope, markers))?;
            (Plan::Explain(Box::new(ExplainPlan::new(plan, explain.analyze, explain.json))), key_columns)
        }
        StatementKind::Use(name) => (Plan::Use(name.as_str().into()), 0),
        StatementKind::Truncate(name) => {
            let table = scope.table(name)?;
            if is_virtual_keyspace(&table.keyspace) {
                let text = format!("Truncation is not supported by table {}.{}", table.keyspace, table.name);
                return Err(CqlError::Invalid(text));
            }
            if is_system_keyspace(&table.keyspace) && !is_replicated_system_keyspace(&table.keyspace) {
                let text = format!("{} keyspace is not user-modifiable.", table.keyspace);
                return Err(CqlError::Unauthorized(text));
            }
            (Plan::Truncate(table.clone()), 0)
        }
        _ => match AccessStatement::of(kind, scope)? {
            Some(statement) => (Plan::Access(statement), 0),
            None => match DdlPlan::prepare(statement, scope)? {
                Some(plan) => (Plan::Ddl(plan), 0),
                None => return Err(unsupported(kind)),
            },
        },
    })
}

fn is_qualified(kind: &StatementKind<'_>) -> bool {
    use crate::syntax::ast::BatchItem;
    match kind {
        StatementKind::Select(select) => select.table.keyspace.is_some(),
        StatementKind::Insert(insert) => insert.table.keyspace.is_some(),
        StatementKind::Update(update) => update.table.keyspace.is_some(),
        StatementKind::Delete(delete) => delete.table.keyspace.is_some(),
        StatementKind::Truncate(name) => name.keyspace.is_some(),
        StatementKind::Explain(explain) => is_qualified(&explain.statement),
        StatementKind::Batch(batch) => batch.items.iter().all(|item| match item {
            BatchItem::Insert(insert, _) => insert.table.keyspace.is_some(),
            BatchItem::Update(update, _) => update.table.keyspace.is_some(),
            BatchItem::Delete(delete, _) => delete.table.keyspace.is_some(),
        }),
        _ => false,
    }
}

/// The error for statements that parse but are not implemented: what is missing, and what to do instead. Cassandra's
/// texts name settings that switch these statements on (`CreateViewStatement`, `UDFunction`); here no setting does.
fn unsupported(kind: &StatementKind<'_>) -> CqlError {
    let (what, instead) = match kind {
        StatementKind::CreateView(_) => (
            "CREATE MATERIALIZED VIEW",
            "create a table with the primary key that the view has, and write both tables in one batch",
        ),
        StatementKind::CreateFunction(_) => ("CREATE FUNCTION", "compute its results in the client"),
        StatementKind::CreateAggregate(_) => ("CREATE AGGREGATE", "compute its results in the client"),
        _ => ("this statement", "leave it out"),
    };
    CqlError::Invalid(format!("{what} is not supported yet: {instead}"))
}
