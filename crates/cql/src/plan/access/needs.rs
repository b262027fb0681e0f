//! What a statement needs, named for every kind of statement in one place. `LocalBackend::authorize` checks it each time
//! before one runs.
//!
//! The needs are computed when a statement is analysed, which happens again when the schema has changed. Source: the
//! `authorize` methods of `org.apache.cassandra.cql3.statements`.

use super::resource::Resource;
use crate::analysis::Scope;
use crate::error::Result;
use crate::syntax::ast::{
    BatchItem, FunctionName, Guard, Permission, QualifiedName, Relation, RelationKind, Select, StatementKind,
};
use helenus_engine::{is_replicated_system_keyspace, is_system_keyspace};
use helenus_model::schema::Schema;

/// One thing that a statement needs. Every statement needs a login.
#[derive(Clone, Debug)]
pub(crate) enum Need {
    /// A permission.
    Permission(Wanted),
    /// The rights of a superuser; the text is the refusal.
    Superuser(&'static str),
    /// A read of a table with masked columns. Without UNMASK their values are masked.
    Unmasked(Box<MaskedRead>),
}

/// A read of a table with masked columns.
#[derive(Clone, Debug)]
pub(crate) struct MaskedRead {
    /// Shows the values.
    pub(crate) unmask: Wanted,
    /// Lets masked columns be restricted.
    pub(crate) select_masked: Wanted,
    /// The masked columns that the statement restricts, in the order of the table.
    pub(crate) restricted: Vec<Box<str>>,
}

/// A permission on a resource, with where it may come from. Statements, GRANT, REVOKE, the statements about roles and calls
/// without statements ask for it; `LocalBackend::has` answers.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) permission: Permission,
    pub(crate) resource: Resource,
    /// The names of the resources on which the permission may have been granted; none if only superusers have it.
    pub(crate) names: Box<[Box<str>]>,
    /// Whether it is a superuser's where no permissions are checked, as what has all passwords and rights must be.
    pub(crate) is_guarded: bool,
}

impl Wanted {
    /// A permission that must have been granted, on the resource or on one above it.
    pub(crate) fn granted(permission: Permission, resource: Resource) -> Wanted {
        let is_guarded = resource.is_access_data();
        // A role that writes these tables makes itself a superuser. GRANT refuses MODIFY of them, but files of an older Cassandra
        // may have it.
        let is_supers = is_guarded && permission == Permission::Modify;
        let names = match is_supers {
            true => Box::default(),
            false => resource.granted_on().iter().map(|part| part.name().into()).collect(),
        };
        Wanted { permission, resource, names, is_guarded }
    }

    /// What a statement on data needs. `None` if everybody has the permission, or if the change refuses everybody with a message
    /// of its own.
    pub(crate) fn new(permission: Permission, resource: Resource) -> Option<Wanted> {
        if let Some(keyspace) = resource.data_keyspace().filter(|keyspace| is_system_keyspace(keyspace)) {
            let is_schema = matches!(permission, Permission::Create | Permission::Alter | Permission::Drop);
            let is_open = permission == Permission::Alter
                && matches!(resource, Resource::Keyspace(_))
                && is_replicated_system_keyspace(keyspace);
            // `DdlPlan::check_keyspace` refuses these.
            if is_schema && !is_open {
                return None;
            }
            if permission == Permission::Select && is_readable(&resource) {
                return None;
            }
        }
        Some(Wanted::granted(permission, resource))
    }
}

/// Whether every role may read a table (`ClientState.READABLE_SYSTEM_RESOURCES`).
fn is_readable(resource: &Resource) -> bool {
    let Resource::Table(keyspace, table) = resource else { return false };
    match &**keyspace {
        "system" => matches!(&**table, "local" | "peers" | "peers_v2" | "size_estimates" | "table_estimates"),
        "system_traces" => matches!(&**table, "events" | "sessions"),
        "system_schema" | "system_virtual_schema" => true,
        _ => false,
    }
}

/// Whether a table has masked columns. EXPLAIN, writes with conditions and calls of the RPC interface show values as they
/// are, so who reads such a table with them must have UNMASK.
pub(crate) fn has_masks(schema: &Schema, keyspace: &str, table: &str) -> bool {
    schema.table(keyspace, table).is_some_and(|table| !table.masks.is_empty())
}

/// What a statement needs. The statements about roles and permissions check their own needs when they run
/// (`LocalBackend::run_access`), because these depend on what their tables hold.
///
/// # Errors
/// A name without a keyspace, in a session without one.
pub(crate) fn needs(kind: &StatementKind<'_>, scope: &Scope<'_>) -> Result<Vec<Need>> {
    let mut needs = Needs { scope, found: Vec::new() };
    match kind {
        StatementKind::Select(select) => needs.on_select(select)?,
        kind => needs.of(kind)?,
    }
    Ok(needs.found)
}

/// The columns that a relation restricts.
fn restricted_columns<'r>(relation: &'r Relation<'_>) -> Vec<&'r str> {
    match &relation.kind {
        RelationKind::Column { column, .. }
        | RelationKind::In(column, _)
        | RelationKind::IsNotNull(column) => {
            vec![column.as_str()]
        }
        RelationKind::Token(columns, ..)
        | RelationKind::Tuple(columns, ..)
        | RelationKind::TupleIn(columns, _) => columns.iter().map(|column| column.as_str()).collect(),
        // It names an index.
        RelationKind::Custom(..) => Vec::new(),
    }
}

struct Needs<'a> {
    scope: &'a Scope<'a>,
    found: Vec<Need>,
}

impl Needs<'_> {
    fn add(&mut self, permission: Permission, resource: Resource) {
        self.found.extend(Wanted::new(permission, resource).map(Need::Permission));
    }

    fn on_table(&mut self, permission: Permission, name: &QualifiedName<'_>) -> Result<()> {
        let keyspace = self.scope.keyspace_of(name)?;
        self.add(permission, Resource::table(keyspace, name.name.as_str()));
        if permission == Permission::Select {
            self.on_data_of_others(keyspace, name.name.as_str());
        }
        if permission == Permission::Select && has_masks(self.scope.schema, keyspace, name.name.as_str()) {
            self.add(Permission::Unmask, Resource::table(keyspace, name.name.as_str()));
        }
        Ok(())
    }

    /// What a virtual table needs beside itself that shows, unmasked, what is in other tables: the feed of changes, which has what
    /// was written, and the partitions that are used most, which has their keys. Those of the tables of access are names of roles.
    fn on_data_of_others(&mut self, keyspace: &str, name: &str) {
        let shows_access = match (keyspace, name) {
            ("system_views", "changes") => false,
            ("system_views", "top_partitions") => true,
            _ => return,
        };
        self.add(Permission::Select, Resource::AllKeyspaces);
        self.add(Permission::Unmask, Resource::AllKeyspaces);
        if shows_access {
            self.add(Permission::Select, Resource::Keyspace("system_auth".into()));
        }
    }

    /// A SELECT, which masks values for who has no UNMASK (`SelectStatement.authorize`).
    fn on_select(&mut self, select: &Select<'_>) -> Result<()> {
        let keyspace = self.scope.keyspace_of(&select.table)?;
        let name = select.table.name.as_str();
        self.add(Permission::Select, Resource::table(keyspace, name));
        self.on_data_of_others(keyspace, name);
        let Some(table) = self.scope.schema.table(keyspace, name).filter(|table| !table.masks.is_empty())
        else {
            return Ok(());
        };
        let of = |permission| Wanted::new(permission, Resource::table(keyspace, name));
        let (Some(unmask), Some(select_masked)) = (of(Permission::Unmask), of(Permission::SelectMasked))
        else {
            return Ok(());
        };
        // The order by similarity tells of the values too, and is a restriction in Cassandra (`addOrderingRestrictions`).
        let nearest = select.order_by.iter().filter(|by| by.ann_of.is_some()).map(|by| by.column.as_str());
        let named: Vec<&str> = select.filter.iter().flat_map(restricted_columns).chain(nearest).collect();
        let is_restricted = |name: &str| table.masks.contains_key(name) && named.contains(&name);
        let columns = table.columns_in_select_order().filter(|column| is_restricted(&column.name));
        let restricted = columns.map(|column| (*column.name).into()).collect();
        self.found.push(Need::Unmasked(Box::new(MaskedRead { unmask, select_masked, restricted })));
        Ok(())
    }

    fn on_tables_of(&mut self, permission: Permission, name: &QualifiedName<'_>) -> Result<()> {
        let keyspace = self.scope.keyspace_of(name)?;
        self.add(permission, Resource::AllTables(keyspace.into()));
        Ok(())
    }

    /// Creating a function or aggregate. There is none that could be replaced.
    fn on_functions_of(&mut self, name: &FunctionName<'_>) -> Result<()> {
        let keyspace = match &name.keyspace {
            Some(keyspace) => keyspace.as_str(),
            None => self.scope.session_keyspace()?,
        };
        self.add(Permission::Create, Resource::FunctionsIn(keyspace.into()));
        Ok(())
    }

    /// A write; with conditions it reveals rows.
    fn on_write(&mut self, table: &QualifiedName<'_>, is_conditional: bool) -> Result<()> {
        self.on_table(Permission::Modify, table)?;
        if is_conditional { self.on_table(Permission::Select, table) } else { Ok(()) }
    }

    fn on_index(&mut self, name: &QualifiedName<'_>) -> Result<()> {
        let keyspace = self.scope.keyspace_of(name)?;
        let tables =
            self.scope.schema.keyspaces.get(keyspace).into_iter().flat_map(|found| found.tables.values());
        // An index that does not exist needs nothing: the statement says so.
        let table = tables.into_iter().find(|table| table.indexes.contains_key(name.name.as_str()));
        if let Some(table) = table {
            self.add(Permission::Alter, Resource::table(keyspace, &table.name));
        }
        Ok(())
    }

    fn of(&mut self, kind: &StatementKind<'_>) -> Result<()> {
        let is_conditional = |guard: &Guard<'_>| *guard != Guard::None;
        let keyspace = |name: &str| Resource::Keyspace(name.into());
        match kind {
            StatementKind::Select(select) => self.on_table(Permission::Select, &select.table)?,
            StatementKind::Insert(insert) => self.on_write(&insert.table, insert.if_not_exists)?,
            StatementKind::Update(update) => self.on_write(&update.table, is_conditional(&update.guard))?,
            StatementKind::Delete(delete) => self.on_write(&delete.table, is_conditional(&delete.guard))?,
            StatementKind::Batch(batch) => {
                for item in &batch.items {
                    match item {
                        BatchItem::Insert(insert, _) => self.on_write(&insert.table, insert.if_not_exists)?,
                        BatchItem::Update(update, _) => {
                            self.on_write(&update.table, is_conditional(&update.guard))?;
                        }
                        BatchItem::Delete(delete, _) => {
                            self.on_write(&delete.table, is_conditional(&delete.guard))?;
                        }
                    }
                }
            }
            StatementKind::Truncate(name) => self.on_table(Permission::Modify, name)?,
            // It tells about the rows, and ANALYZE runs the statement.
            StatementKind::Explain(explain) => self.of(&explain.statement)?,
            StatementKind::CreateKeyspace(_) => self.add(Permission::Create, Resource::AllKeyspaces),
            StatementKind::AlterKeyspace { name, .. } => self.add(Permission::Alter, keyspace(name.as_str())),
            StatementKind::DropKeyspace { name, .. } => self.add(Permission::Drop, keyspace(name.as_str())),
            StatementKind::CreateTable(create) => self.on_tables_of(Permission::Create, &create.name)?,
            StatementKind::AlterTable(alter) => self.on_table(Permission::Alter, &alter.name)?,
            StatementKind::DropTable(drop) => self.on_table(Permission::Drop, &drop.name)?,
            StatementKind::CreateType(create) => self.on_tables_of(Permission::Create, &create.name)?,
            StatementKind::AlterType(alter) => self.on_tables_of(Permission::Alter, &alter.name)?,
            StatementKind::DropType(drop) => self.on_tables_of(Permission::Drop, &drop.name)?,
            StatementKind::CreateIndex(create) => self.on_table(Permission::Alter, &create.table)?,
            StatementKind::DropIndex(drop) => self.on_index(&drop.name)?,
            StatementKind::CreateView(create) => self.on_table(Permission::Alter, &create.base)?,
            StatementKind::CreateFunction(create) => self.on_functions_of(&create.name)?,
            StatementKind::CreateAggregate(create) => self.on_functions_of(&create.name)?,
            StatementKind::CreateTrigger(_) => {
                let refusal = "Only superusers are allowed to perform CREATE TRIGGER queries";
                self.found.push(Need::Superuser(refusal));
            }
            StatementKind::DropTrigger(_) => {
                let refusal = "Only superusers are allowed to perfrom DROP TRIGGER queries";
                self.found.push(Need::Superuser(refusal));
            }
            // There are no views and functions: these statements say so.
            StatementKind::AlterView(_)
            | StatementKind::DropView(_)
            | StatementKind::DropFunction(_)
            | StatementKind::DropAggregate(_) => {}
            StatementKind::Use(_) | StatementKind::Describe(_) => {}
            StatementKind::GrantPermissions(_)
            | StatementKind::RevokePermissions(_)
            | StatementKind::ListPermissions(_)
            | StatementKind::GrantRole(_)
            | StatementKind::RevokeRole(_)
            | StatementKind::ListRoles(_)
            | StatementKind::ListUsers
            | StatementKind::CreateRole(_)
            | StatementKind::AlterRole(_)
            | StatementKind::DropRole { .. }
            | StatementKind::CreateUser(_)
            | StatementKind::AlterUser(_)
            | StatementKind::DropUser { .. }
            | StatementKind::AddIdentity { .. }
            | StatementKind::DropIdentity { .. } => {}
        }
        Ok(())
    }
}
