//! Runs a statement that changes the schema.
//!
//! A plan keeps only the statement's text, because its meaning depends on the schema at the time it runs, under the
//! lock of schema changes. Such statements are rare, so parsing again is cheap enough.

use super::create_table::invalid;
use super::replication::{more_replicas, too_many_replicas};
use super::{alter_table, create_table, index, keyspace, unsupported, user_type};
use crate::analysis::{Scope, check_class};
use crate::budget::{RequestBudget, room_for};
use crate::error::{CqlError, Result};
use crate::guardrails::{Guarded, has_zero_ttl_on_twcs};
use crate::syntax::ast::{QualifiedName, StatementKind};
use crate::syntax::{ast, parse, parse_within, print};
use helenus_engine::{Database, DdlError, SchemaChange, SchemaChangeKind, Ticket, is_system_keyspace};
use helenus_model::schema::{Schema, TableOptions};
use std::fmt;
use std::sync::Arc;
use uuid::Uuid;

/// The server's settings that schema changes depend on.
pub(crate) struct DdlSettings {
    /// The server's datacenter.
    pub(crate) datacenter: Arc<str>,
    /// The default options of a new table.
    pub(crate) table_options: TableOptions,
    /// Makes the id of a new table: a time UUID.
    pub(crate) new_id: Box<dyn Fn() -> Uuid + Send + Sync>,
    /// Whether columns may be masked (`dynamic_data_masking_enabled`).
    pub(crate) masks_columns: bool,
    /// Whether tables may lose COMPACT STORAGE (`drop_compact_storage_enabled`).
    pub(crate) drops_compact_storage: bool,
    /// The guardrails on schemas.
    pub(crate) guarded: Arc<Guarded>,
}

impl fmt::Debug for DdlSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DdlSettings").field("datacenter", &self.datacenter).finish_non_exhaustive()
    }
}

/// A statement that changes the schema.
#[derive(Debug)]
pub(crate) struct DdlPlan {
    text: String,
    /// The event for clients when it has changed something; its keyspace is the keyspace that is changed.
    event: SchemaChange,
    /// Whether it gives a table time windows and no TTL.
    pub(crate) has_zero_ttl_on_twcs: bool,
    /// The permission it needs.
    pub(crate) permission: ast::Permission,
}

/// Rejects names of classes that are not types (`check_class`).
fn check_classes(statement: &StatementKind<'_>) -> Result<()> {
    use ast::{TableChange, TypeChange};
    let types: Vec<&ast::DataType<'_>> = match statement {
        StatementKind::CreateTable(create) => create.columns.iter().map(|def| &def.data_type).collect(),
        StatementKind::AlterTable(alter) => match &alter.change {
            TableChange::Add { columns, .. } => columns.iter().map(|def| &def.data_type).collect(),
            _ => return Ok(()),
        },
        StatementKind::CreateType(create) => create.fields.iter().map(|(_, ty)| ty).collect(),
        StatementKind::AlterType(alter) => match &alter.change {
            TypeChange::Add { data_type, .. } => vec![data_type],
            _ => return Ok(()),
        },
        _ => return Ok(()),
    };
    types.into_iter().try_for_each(check_class)
}

/// A change of the schema that CQL cannot express; takes the timestamp of the change.
pub(crate) type SchemaEdit<'a> = dyn Fn(&mut Schema, i64) -> Result<()> + 'a;

/// The result of running a schema statement.
pub(crate) struct DdlOutcome {
    /// The change for the answer; `None` if nothing changed.
    pub(crate) event: Option<SchemaChange>,
    /// All changes, for listeners.
    pub(crate) changes: Vec<SchemaChange>,
    pub(crate) ticket: Ticket,
    pub(crate) warnings: Vec<String>,
}

impl DdlPlan {
    /// Makes a plan of a statement, if it is one that changes the schema.
    ///
    /// # Errors
    /// Errors that Cassandra reports when such a statement is prepared; unsupported kinds.
    pub(crate) fn prepare(statement: &ast::Statement<'_>, scope: &Scope<'_>) -> Result<Option<DdlPlan>> {
        use SchemaChangeKind::{Created, Dropped, Updated};
        use ast::Permission as P;
        // Before the permission, because Cassandra's parser resolves classes.
        check_classes(&statement.kind)?;
        let (name, kind, permission, is_type) = match &statement.kind {
            StatementKind::CreateKeyspace(create) => {
                return Ok(Some(Self::of_keyspace(statement, create.name.as_str(), Created, P::Create)));
            }
            StatementKind::AlterKeyspace { name, .. } => {
                return Ok(Some(Self::of_keyspace(statement, name.as_str(), Updated, P::Alter)));
            }
            StatementKind::DropKeyspace { name, .. } => {
                return Ok(Some(Self::of_keyspace(statement, name.as_str(), Dropped, P::Drop)));
            }
            StatementKind::CreateTable(create) => {
                scope.keyspace_of(&create.name)?;
                create_table::check_raw(create)?;
                (&create.name, Created, P::Create, false)
            }
            StatementKind::AlterTable(alter) => (&alter.name, Updated, P::Alter, false),
            StatementKind::DropTable(drop) => (&drop.name, Dropped, P::Drop, false),
            StatementKind::CreateType(create) => (&create.name, Created, P::Create, true),
            StatementKind::AlterType(alter) => (&alter.name, Updated, P::Alter, true),
            StatementKind::DropType(drop) => (&drop.name, Dropped, P::Drop, true),
            StatementKind::CreateIndex(create) => (&create.table, Updated, P::Alter, false),
            // The table is found by the index when the statement runs.
            StatementKind::DropIndex(drop) => (&drop.name, Updated, P::Alter, false),
            other => {
                let change = unsupported::change_of(other, scope)?;
                return Ok(change.map(|(event, permission)| Self::of(statement, event, permission)));
            }
        };
        let keyspace = scope.keyspace_of(name)?.into();
        let event = SchemaChange { kind, keyspace, name: Some(name.name.as_str().into()), is_type };
        Ok(Some(Self::of(statement, event, permission)))
    }

    fn of(statement: &ast::Statement<'_>, event: SchemaChange, permission: ast::Permission) -> DdlPlan {
        let has_zero_ttl_on_twcs = has_zero_ttl_on_twcs(&statement.kind);
        DdlPlan { text: print(statement), event, has_zero_ttl_on_twcs, permission }
    }

    fn of_keyspace(
        statement: &ast::Statement<'_>,
        name: &str,
        kind: SchemaChangeKind,
        permission: ast::Permission,
    ) -> DdlPlan {
        let event = SchemaChange { kind, keyspace: name.into(), name: None, is_type: false };
        Self::of(statement, event, permission)
    }

    /// The keyspace or table that it creates.
    pub(crate) fn creates(&self) -> Option<&SchemaChange> {
        Some(&self.event).filter(|event| event.kind == SchemaChangeKind::Created && !event.is_type)
    }

    /// The keyspace it changes.
    pub(crate) fn keyspace(&self) -> &str {
        &self.event.keyspace
    }

    /// Runs the statement. `beyond` then changes the resulting schema further, in the same step.
    ///
    /// # Errors
    /// The statement is not valid under the current schema; the errors of a write.
    pub(crate) fn execute(
        &self,
        database: &Database,
        settings: &DdlSettings,
        work: &RequestBudget<'_>,
        beyond: Option<&SchemaEdit<'_>>,
    ) -> Result<DdlOutcome> {
        let mut statement = parse_within(&self.text, work).map_err(|error| work.parse_error(error))?;
        room_for(self.text.len() * DEFINITION_BYTES)?;
        self.check_keyspace()?;
        let is_index = matches!(statement.kind, StatementKind::CreateIndex(_) | StatementKind::DropIndex(_));
        let (mut warnings, mut within) = (Vec::new(), Vec::new());
        let guardrails = settings.guarded.get();
        if let Some(guardrails) = &guardrails {
            warnings.extend(guardrails.ignore_properties(&mut statement.kind));
        }
        let changed = database.change_schema(|schema, timestamp_us| {
            let mut next = schema.clone();
            within = self.dropped_within(schema);
            self.apply(&statement.kind, &mut next, (settings, timestamp_us), &mut warnings)?;
            if let Some(beyond) = beyond {
                beyond(&mut next, timestamp_us)?;
            }
            warnings.extend(self.warnings(schema, &next, settings));
            if let Some(guardrails) = &guardrails {
                warnings.extend(guardrails.schema(&statement.kind, schema, &next)?);
            }
            // The last point at which the statement can end without effect.
            work.check()?;
            Ok(next)
        });
        let (mut changes, ticket) = changed.map_err(|error| match error {
            DdlError::Refused(error) => error,
            DdlError::Engine(error) => CqlError::from(error),
        })?;
        // An ALTER is checked, and gives warnings, even if it changes nothing (`KeyspaceParams.validate`).
        if changes.is_empty() && self.event.kind != SchemaChangeKind::Updated {
            warnings.clear();
        }
        let event = match changes.first() {
            Some(change) if is_index => Some(change.clone()),
            first => first.map(|_| self.event.clone()),
        };
        if event.is_some() {
            changes.splice(0..0, within);
        }
        Ok(DdlOutcome { event, changes, ticket, warnings })
    }

    /// Applies the statement to a schema that another statement has made, in the same step. Its warnings are dropped.
    ///
    /// # Errors
    /// The statement is not valid under that schema.
    pub(crate) fn apply_after(
        &self,
        schema: &mut Schema,
        settings: &DdlSettings,
        timestamp_us: i64,
    ) -> Result<()> {
        let statement = parse(&self.text)?;
        self.check_keyspace()?;
        self.apply(&statement.kind, schema, (settings, timestamp_us), &mut Vec::new())
    }

    /// The tables and types of a keyspace that is dropped: listeners get these first (`SchemaChangeNotifier`).
    fn dropped_within(&self, schema: &Schema) -> Vec<SchemaChange> {
        let drops_keyspace = self.event.name.is_none() && self.event.kind == SchemaChangeKind::Dropped;
        let Some(keyspace) = schema.keyspaces.get(&self.event.keyspace).filter(|_| drops_keyspace) else {
            return Vec::new();
        };
        let change = |name: &Arc<str>, is_type| SchemaChange {
            name: Some(name.clone()),
            is_type,
            ..self.event.clone()
        };
        let tables = keyspace.tables.keys().map(|name| change(name, false));
        tables.chain(keyspace.types.keys().map(|name| change(name, true))).collect()
    }

    fn check_keyspace(&self) -> Result<()> {
        let name = &*self.event.keyspace;
        let creates_keyspace = self.event.name.is_none() && self.event.kind == SchemaChangeKind::Created;
        match name {
            // Creating a keyspace needs a permission on all keyspaces, so the check of permissions does not reject it.
            "system" | "system_schema" if creates_keyspace => {
                return invalid(format!("System keyspace '{name}' is not user-modifiable"));
            }
            "system_virtual_schema" | "system_views" if creates_keyspace => {
                return invalid(format!("Virtual keyspace '{name}' is not user-modifiable"));
            }
            _ if creates_keyspace => {}
            "system" | "system_schema" | "system_virtual_schema" | "system_views" => {
                return Err(CqlError::Unauthorized(format!("{name} keyspace is not user-modifiable.")));
            }
            // Their replication may be altered by the operator.
            _ if is_system_keyspace(name)
                && self.event.name.is_none()
                && self.permission == ast::Permission::Alter => {}
            _ if is_system_keyspace(name) => {
                let resource = match &self.event.name {
                    None => format!("<keyspace {name}>"),
                    Some(table) if self.permission != ast::Permission::Create && !self.event.is_type => {
                        format!("<table {name}.{table}>")
                    }
                    Some(_) => format!("<all tables in {name}>"),
                };
                let permission = self.permission.as_str();
                return Err(CqlError::Unauthorized(format!("Cannot {permission} {resource}")));
            }
            _ => {}
        }
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            return invalid(format!(
                "Keyspace name must not be empty and must contain alphanumeric or underscore characters only (got \
                 \"{name}\")"
            ));
        }
        if name.len() > KEYSPACE_NAME_MAX {
            return invalid(format!(
                "Keyspace name must not be more than {KEYSPACE_NAME_MAX} characters long (got {} characters for \
                 \"{name}\")",
                name.len()
            ));
        }
        Ok(())
    }

    /// Applies the statement to a schema, which may be another than the database's.
    ///
    /// # Errors
    /// The statement is not valid under that schema.
    pub(crate) fn apply(
        &self,
        statement: &StatementKind<'_>,
        schema: &mut Schema,
        (settings, timestamp_us): (&DdlSettings, i64),
        warnings: &mut Vec<String>,
    ) -> Result<()> {
        let in_keyspace = &*self.event.keyspace;
        let plain = |name: &QualifiedName<'_>| name.name.as_str().to_owned();
        match statement {
            StatementKind::CreateKeyspace(create) => keyspace::create(create, schema, settings),
            StatementKind::AlterKeyspace { name, if_exists, properties } => {
                keyspace::alter((name.as_str(), *if_exists), properties, schema, settings)
            }
            StatementKind::DropKeyspace { name, if_exists } => {
                keyspace::drop(name.as_str(), *if_exists, schema)
            }
            StatementKind::CreateTable(create) => create_table::create(create, in_keyspace, schema, settings),
            StatementKind::AlterTable(alter) => {
                alter_table::alter(alter, in_keyspace, schema, (settings, timestamp_us))?;
                if let ast::TableChange::Add { .. } = alter.change
                    && let Some(table) = schema.table(in_keyspace, alter.name.name.as_str())
                {
                    warnings.extend(index::vector_warnings(table));
                }
                Ok(())
            }
            StatementKind::DropTable(drop) => {
                create_table::drop(&plain(&drop.name), drop.if_exists, in_keyspace, schema)
            }
            StatementKind::CreateType(create) => user_type::create(create, in_keyspace, schema),
            StatementKind::AlterType(alter) => user_type::alter(alter, in_keyspace, schema),
            StatementKind::DropType(drop) => {
                user_type::drop(&plain(&drop.name), drop.if_exists, in_keyspace, schema)
            }
            StatementKind::CreateIndex(create) => {
                index::create(create, in_keyspace, schema, timestamp_us, warnings)
            }
            StatementKind::DropIndex(drop) => {
                index::drop(&plain(&drop.name), drop.if_exists, in_keyspace, schema)
            }
            other => unsupported::run(other, in_keyspace, schema),
        }
    }

    /// The warnings after a keyspace was created or altered.
    fn warnings(&self, before: &Schema, after: &Schema, settings: &DdlSettings) -> Vec<String> {
        let name = &self.event.keyspace;
        let Some(now) = after.keyspaces.get(name).filter(|_| self.event.name.is_none()) else {
            return Vec::new();
        };
        let more =
            before.keyspaces.get(name).and_then(|old| more_replicas(&old.replication, &now.replication));
        too_many_replicas(&now.replication, name, &settings.datacenter).into_iter().chain(more).collect()
    }
}

/// Bytes of a definition, and of the copy that replaces it, for each byte of the statement's text.
const DEFINITION_BYTES: usize = 16;

/// The greatest length of a keyspace's name (`SchemaConstants.NAME_LENGTH`).
const KEYSPACE_NAME_MAX: usize = 48;
