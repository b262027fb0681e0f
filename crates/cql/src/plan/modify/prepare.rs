//! From the statement to its plan.

use super::attributes::Attributes;
use super::filter::Filter;
use super::operation::{Operations, assign, delete, set_value};
use crate::analysis::{Markers, Scope, existing_column};
use crate::error::{CqlError, Result};
use crate::plan::select::is_virtual_keyspace;
use crate::syntax::ast::{
    Comparison, Delete, Guard, Ident, Insert, InsertData, QualifiedName, Relation, RelationKind, Update,
};
use helenus_engine::is_system_keyspace;
use helenus_model::schema::{ColumnKind, Table};
use std::sync::Arc;

/// Which statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ModifyKind {
    /// INSERT
    Insert,
    /// UPDATE
    Update,
    /// DELETE
    Delete,
}

impl ModifyKind {
    /// The word.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            ModifyKind::Insert => "INSERT",
            ModifyKind::Update => "UPDATE",
            ModifyKind::Delete => "DELETE",
        }
    }

    /// The word as EXPLAIN has it.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            ModifyKind::Insert => "insert",
            ModifyKind::Update => "update",
            ModifyKind::Delete => "delete",
        }
    }
}

/// An analysed INSERT, UPDATE or DELETE.
#[derive(Debug)]
pub(crate) struct ModifyPlan {
    pub(crate) kind: ModifyKind,
    pub(crate) table: Arc<Table>,
    pub(crate) attributes: Attributes,
    pub(super) filter: Filter,
    pub(super) operations: Operations,
}

fn invalid<T>(message: impl Into<String>) -> Result<T> {
    Err(CqlError::Invalid(message.into()))
}

impl ModifyPlan {
    /// Analyses an INSERT.
    pub(crate) fn insert(
        insert: &Insert<'_>,
        scope: &Scope<'_>,
        markers: &mut Markers,
    ) -> Result<ModifyPlan> {
        let table = table_to_write(&insert.table, scope)?;
        let using = (insert.using.timestamp.as_ref(), insert.using.ttl.as_ref());
        let attributes = Attributes::prepare(using, (&table.keyspace, &table.name), scope, markers)?;
        if table.is_counter() {
            return invalid("INSERT statements are not allowed on counter tables, use UPDATE instead");
        }
        let InsertData::Values { columns, values } = &insert.data else {
            return invalid("INSERT JSON is not supported yet");
        };
        if columns.len() != values.len() {
            return invalid("Unmatched column names/values");
        }
        let repeated =
            |(index, name): (usize, &Ident<'_>)| columns.iter().take(index).any(|other| other == name);
        if columns.iter().enumerate().any(repeated) {
            return invalid("The column names contains duplicates");
        }
        let (mut operations, mut key) = (Operations::default(), Vec::new());
        let mut names_clustering = false;
        for (name, value) in columns.iter().zip(values) {
            let column = existing_column(&table, name)?;
            match column.kind {
                ColumnKind::PartitionKey | ColumnKind::Clustering => {
                    names_clustering |= column.kind == ColumnKind::Clustering;
                    let (column, value) = (name.clone(), value.clone());
                    let kind =
                        RelationKind::Column { column, element: None, comparison: Comparison::Equal, value };
                    key.push(Relation { kind, pos: name.pos });
                }
                ColumnKind::Static | ColumnKind::Regular => {
                    operations.add(column, set_value(&table, column, value, scope, markers)?);
                }
            }
        }
        let statics_only = !names_clustering && operations.are_static_only();
        let filter = Filter::prepare(&key, ModifyKind::Insert, statics_only, (&table, scope), markers)?;
        if insert.if_not_exists {
            return invalid("IF NOT EXISTS of INSERT is not supported yet");
        }
        Ok(ModifyPlan { kind: ModifyKind::Insert, table, attributes, filter, operations })
    }

    /// Analyses an UPDATE.
    pub(crate) fn update(
        update: &Update<'_>,
        scope: &Scope<'_>,
        markers: &mut Markers,
    ) -> Result<ModifyPlan> {
        let table = table_to_write(&update.table, scope)?;
        let using = (update.using.timestamp.as_ref(), update.using.ttl.as_ref());
        let attributes = Attributes::prepare(using, (&table.keyspace, &table.name), scope, markers)?;
        check_guard(&update.guard, attributes.timestamp.is_some())?;
        let mut operations = Operations::default();
        for assignment in &update.assignments {
            let (name, action) = assign(&table, assignment, scope, markers)?;
            if let Some(column) = table.column(&name) {
                operations.add(column, action);
            }
        }
        if table.is_counter() {
            return invalid("counters are not supported yet");
        }
        let statics_only = operations.are_static_only();
        let filter =
            Filter::prepare(&update.filter, ModifyKind::Update, statics_only, (&table, scope), markers)?;
        Ok(ModifyPlan { kind: ModifyKind::Update, table, attributes, filter, operations })
    }

    /// Analyses a DELETE.
    pub(crate) fn delete(
        statement: &Delete<'_>,
        scope: &Scope<'_>,
        markers: &mut Markers,
    ) -> Result<ModifyPlan> {
        let table = table_to_write(&statement.table, scope)?;
        let using = (statement.timestamp.as_ref(), None);
        let attributes = Attributes::prepare(using, (&table.keyspace, &table.name), scope, markers)?;
        check_guard(&statement.guard, attributes.timestamp.is_some())?;
        let mut operations = Operations::default();
        for target in &statement.targets {
            let (name, action) = delete(&table, target, scope, markers)?;
            if let Some(column) = table.column(&name) {
                operations.add(column, action);
            }
        }
        let statics_only = operations.are_static_only();
        let filter =
            Filter::prepare(&statement.filter, ModifyKind::Delete, statics_only, (&table, scope), markers)?;
        Ok(ModifyPlan { kind: ModifyKind::Delete, table, attributes, filter, operations })
    }
}

impl Operations {
    /// Whether something is changed, and nothing but static columns.
    fn are_static_only(&self) -> bool {
        self.regular.is_empty() && !self.statics.is_empty()
    }
}

/// The table of a statement that writes, if users may write to it.
fn table_to_write(name: &QualifiedName<'_>, scope: &Scope<'_>) -> Result<Arc<Table>> {
    let keyspace = scope.keyspace_of(name)?;
    if is_virtual_keyspace(keyspace) {
        let table = scope.table(name)?;
        return invalid(format!("Modification is not supported by table {}.{}", table.keyspace, table.name));
    }
    if is_system_keyspace(keyspace) && keyspace != "system_traces" {
        return Err(CqlError::Unauthorized(format!("{keyspace} keyspace is not user-modifiable.")));
    }
    Ok(scope.table(name)?.clone())
}

fn check_guard(guard: &Guard<'_>, has_timestamp: bool) -> Result<()> {
    match guard {
        Guard::None => Ok(()),
        Guard::Exists | Guard::Conditions(_) if has_timestamp => {
            invalid("Cannot provide custom timestamp for conditional updates")
        }
        Guard::Exists => invalid("IF EXISTS of UPDATE and DELETE is not supported yet"),
        Guard::Conditions(_) => invalid("IF conditions are not supported yet"),
    }
}
