//! From a parsed INSERT, UPDATE or DELETE to its plan.

use super::attributes::Attributes;
use super::fast_path::FastPath;
use super::filter::Filter;
use super::operation::{Action, Operations, assign, delete, set_value};
use crate::analysis::{Markers, Scope, Term, existing_column, json_columns};
use crate::error::{CqlError, Result};
use crate::plan::conditional::Conditions;
use crate::super_family::{check_entry, is_super};
use crate::syntax::ast::{
    Comparison, Delete, Insert, InsertData, QualifiedName, Relation, RelationKind, Update,
};
use crate::virtual_table::is_virtual_keyspace;
use helenus_engine::{is_replicated_system_keyspace, is_system_keyspace};
use helenus_model::schema::{Column, ColumnKind, Table};
use helenus_model::types::CqlType;
use std::collections::HashSet;
use std::sync::Arc;

/// The kind of a write.
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
    /// Its keyword.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            ModifyKind::Insert => "INSERT",
            ModifyKind::Update => "UPDATE",
            ModifyKind::Delete => "DELETE",
        }
    }

    /// Its keyword as EXPLAIN prints it.
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
    pub(crate) conditions: Conditions,
    /// Whether the row, or the static row, must be read before it is written.
    pub(super) reads: Reads,
    /// Whether elements are appended or prepended to a list.
    pub(super) adds_to_lists: bool,
    /// The value that a row of a compact table must have and the statement lacks; an error when it is run.
    pub(super) missing_value: Option<Arc<str>>,
    /// Whether the table is a counter table.
    pub(crate) counts: bool,
    /// Whether the table has compact storage.
    pub(super) is_compact: bool,
    /// Its fast path, if it is of the commonest kind.
    pub(super) fast_path: Option<FastPath>,
}

/// Which rows a statement without conditions reads before it writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reads {
    pub(super) regulars: bool,
    pub(super) statics: bool,
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
        let attributes = Attributes::prepare(&insert.using, (&table.keyspace, &table.name), scope, markers)?;
        if table.is_counter() {
            return invalid("INSERT statements are not allowed on counter tables, use UPDATE instead");
        }
        let (names, terms);
        let (columns, values) = match &insert.data {
            InsertData::Values { columns, values } => (&columns[..], &values[..]),
            InsertData::Json { value, default_unset } => {
                (names, terms) = json_columns((value, *default_unset), &table, markers, scope.work)?;
                (&names[..], &terms[..])
            }
        };
        if columns.len() != values.len() {
            return invalid("Unmatched column names/values");
        }
        let mut seen = HashSet::with_capacity(columns.len());
        if !columns.iter().all(|name| seen.insert(name.as_str())) {
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
                    operations.add(&table, column, set_value(&table, column, value, scope, markers)?);
                }
            }
        }
        let is_named = |entry: &Column| seen.contains(&*entry.name);
        check_entry(&table, !operations.regular.is_empty(), is_named)?;
        let conditions = if insert.if_not_exists { Conditions::NotExists } else { Conditions::None };
        let statics_only =
            !names_clustering && applies_to_statics_only(ModifyKind::Insert, &operations, &conditions);
        let filter = Filter::prepare(&key, ModifyKind::Insert, statics_only, (&table, scope), markers)?;
        ModifyPlan {
            kind: ModifyKind::Insert,
            table,
            attributes,
            filter,
            operations,
            conditions,
            reads: Reads::default(),
            adds_to_lists: false,
            missing_value: None,
            counts: false,
            is_compact: false,
            fast_path: None,
        }
        .checked()
    }

    /// Analyses an UPDATE.
    pub(crate) fn update(
        update: &Update<'_>,
        scope: &Scope<'_>,
        markers: &mut Markers,
    ) -> Result<ModifyPlan> {
        let table = table_to_write(&update.table, scope)?;
        let attributes = Attributes::prepare(&update.using, (&table.keyspace, &table.name), scope, markers)?;
        let has_timestamp = attributes.timestamp.is_some();
        let conditions = Conditions::prepare(&update.guard, has_timestamp, (&table, scope), markers)?;
        let mut operations = Operations::default();
        for assignment in &update.assignments {
            let (name, action) = assign((&table, !conditions.is_none()), assignment, scope, markers)?;
            if let Some(column) = table.column(&name) {
                operations.add(&table, column, action);
            }
        }
        check_entry(&table, true, |entry| {
            update.filter.iter().any(|relation| match &relation.kind {
                RelationKind::Column { column, .. } => column.as_str() == &*entry.name,
                _ => true,
            })
        })?;
        let statics_only = applies_to_statics_only(ModifyKind::Update, &operations, &conditions);
        let filter =
            Filter::prepare(&update.filter, ModifyKind::Update, statics_only, (&table, scope), markers)?;
        let reads = operations.reads();
        ModifyPlan {
            kind: ModifyKind::Update,
            table,
            attributes,
            filter,
            operations,
            conditions,
            reads,
            adds_to_lists: false,
            missing_value: None,
            counts: false,
            is_compact: false,
            fast_path: None,
        }
        .checked()
    }

    /// Analyses a DELETE.
    pub(crate) fn delete(
        statement: &Delete<'_>,
        scope: &Scope<'_>,
        markers: &mut Markers,
    ) -> Result<ModifyPlan> {
        let table = table_to_write(&statement.table, scope)?;
        let attributes =
            Attributes::prepare(&statement.using, (&table.keyspace, &table.name), scope, markers)?;
        let has_timestamp = attributes.timestamp.is_some();
        let conditions = Conditions::prepare(&statement.guard, has_timestamp, (&table, scope), markers)?;
        let mut operations = Operations::default();
        for target in &statement.targets {
            let (name, action) = delete(&table, target, scope, markers)?;
            if let Some(column) = table.column(&name) {
                operations.add(&table, column, action);
            }
        }
        let statics_only = applies_to_statics_only(ModifyKind::Delete, &operations, &conditions);
        let filter =
            Filter::prepare(&statement.filter, ModifyKind::Delete, statics_only, (&table, scope), markers)?;
        let reads = operations.reads();
        ModifyPlan {
            kind: ModifyKind::Delete,
            table,
            attributes,
            filter,
            operations,
            conditions,
            reads,
            adds_to_lists: false,
            missing_value: None,
            counts: false,
            is_compact: false,
            fast_path: None,
        }
        .checked()
    }

    /// Checks the plan as a whole (the constructor of `ModificationStatement`).
    fn checked(mut self) -> Result<ModifyPlan> {
        (self.counts, self.is_compact) = (self.table.is_counter(), self.table.is_compact());
        self.complete_compact()?;
        self.operations.arrange();
        let attributes = &self.attributes;
        self.conditions.check(&self.table, attributes.timestamp.is_some())?;
        if self.kind == ModifyKind::Delete
            && !self.conditions.is_none()
            && !self.filter.names_one_row(&self.table)
        {
            if applies_to_regulars(self.kind, &self.operations) {
                return invalid(
                    "DELETE statements must restrict all PRIMARY KEY columns with equality relations in order to delete \
                     non static columns",
                );
            }
            if self.conditions.asks_regulars() {
                return invalid(
                    "DELETE statements must restrict all PRIMARY KEY columns with equality relations in order to use IF \
                     condition on non static columns",
                );
            }
        }
        self.adds_to_lists = self.operations.add_to_lists();
        self.fast_path = FastPath::of(&self);
        Ok(self)
    }

    /// The last checks of a statement; for a batch they run when all its statements are known
    /// (`ModificationStatement.validate`).
    ///
    /// # Errors
    /// A timestamp or TTL for a counter.
    pub(crate) fn validate(&self) -> Result<()> {
        if self.counts && self.attributes.timestamp.is_some() {
            return invalid("Cannot provide custom timestamp for counter updates");
        }
        if self.counts && self.attributes.ttl.is_some() {
            return invalid("Cannot provide custom TTL for counter updates");
        }
        Ok(())
    }

    /// Adds the value that a row of a compact table needs in order to exist (`UpdateStatement.addUpdateForKey`).
    fn complete_compact(&mut self) -> Result<()> {
        let writes_row = self.kind != ModifyKind::Delete && self.updates_regulars();
        if !writes_row || !self.operations.regular.is_empty() || !self.is_compact || is_super(&self.table) {
            return Ok(());
        }
        let table = self.table.clone();
        let Some(value) = table.compact_value() else { return Ok(()) };
        if value.ty != CqlType::Empty {
            self.missing_value = Some(value.name.clone());
            return Ok(());
        }
        self.operations.add(&table, value, Action::Set(Term::Value(Box::default())));
        Ok(())
    }

    /// Whether rows are changed, not only the static one (`updatesRegularRows`).
    pub(crate) fn updates_regulars(&self) -> bool {
        self.table.clustering.is_empty() || !self.filter.clustering.is_empty()
    }

    /// Whether static columns are changed.
    pub(crate) fn changes_statics(&self) -> bool {
        !self.operations.statics.is_empty()
    }

    /// Whether it depends only on its values: no condition, no row that is read first, no counter.
    pub(crate) fn is_plain(&self) -> bool {
        self.conditions.is_none() && !self.reads_first() && !self.counts
    }

    /// Whether an operation depends on present values.
    pub(crate) fn reads_first(&self) -> bool {
        self.reads != Reads::default()
    }

    /// Whether it appends or prepends elements to a list.
    pub(crate) fn adds_to_lists(&self) -> bool {
        self.adds_to_lists
    }

    /// Describes the operations on lists that read first, in Cassandra's words (`Lists`).
    pub(crate) fn list_operations(&self) -> impl Iterator<Item = &'static str> {
        let operations = self.operations.statics.iter().chain(&self.operations.regular);
        operations.filter_map(|operation| match operation.action {
            Action::SetIndex(..) => Some("Setting of list items by index requiring read before write"),
            Action::DiscardValues(_) => Some("Removal of list items requiring read before write"),
            Action::DeleteIndex(_) => Some("Removal of list items by index requiring read before write"),
            _ => None,
        })
    }

    /// Whether it concerns only the static row and names no other.
    pub(super) fn is_about_statics(&self) -> bool {
        self.filter.clustering.is_empty()
            && applies_to_statics_only(self.kind, &self.operations, &self.conditions)
    }
}

/// Whether regular columns are changed; a DELETE that names no columns deletes whole rows.
fn applies_to_regulars(kind: ModifyKind, operations: &Operations) -> bool {
    !operations.regular.is_empty() || kind == ModifyKind::Delete && operations.statics.is_empty()
}

/// Whether changes and conditions, of which there is at least one, are on static columns only
/// (`appliesOnlyToStaticColumns`).
fn applies_to_statics_only(kind: ModifyKind, operations: &Operations, conditions: &Conditions) -> bool {
    !applies_to_regulars(kind, operations)
        && !conditions.asks_regulars()
        && (!operations.statics.is_empty() || conditions.asks_statics())
}

/// The table of a write, if users may write to it.
fn table_to_write(name: &QualifiedName<'_>, scope: &Scope<'_>) -> Result<Arc<Table>> {
    let keyspace = scope.keyspace_of(name)?;
    if is_virtual_keyspace(keyspace) {
        let table = scope.table(name)?;
        return invalid(format!("Modification is not supported by table {}.{}", table.keyspace, table.name));
    }
    if is_system_keyspace(keyspace) && !is_replicated_system_keyspace(keyspace) {
        return Err(CqlError::Unauthorized(format!("{keyspace} keyspace is not user-modifiable.")));
    }
    Ok(scope.table(name)?.clone())
}
