//! Finds the subject of a parsed statement for the audit log.
//!
//! It needs no schema: the audit log names what a statement asks for, also of statements that fail. Source: the methods
//! `getAuditLogContext` of `org.apache.cassandra.cql3.statements`.

use super::access::resource_of;
use crate::audit::{EventType, Subject};
use crate::scope::Scope;
use crate::syntax::ast::{Ident, QualifiedName, StatementKind};

/// The subject of a statement.
pub(crate) fn subject(kind: &StatementKind<'_>, scope: &Scope<'_>) -> Subject {
    let bare = |event| Subject { event, keyspace: None, scope: None };
    let of_keyspace =
        |event, name: &Ident<'_>| Subject { event, keyspace: Some(name.as_str().into()), scope: None };
    let of_object = |event, keyspace: Option<&Ident<'_>>, name: Option<&Ident<'_>>| Subject {
        event,
        keyspace: keyspace.map(Ident::as_str).or(scope.keyspace).map(Into::into),
        scope: name.map(|name| name.as_str().into()),
    };
    let of_table =
        |event, name: &QualifiedName<'_>| of_object(event, name.keyspace.as_ref(), Some(&name.name));
    match kind {
        StatementKind::Select(select) => of_table(EventType::Select, &select.table),
        StatementKind::Insert(insert) => of_table(EventType::Update, &insert.table),
        StatementKind::Update(update) => of_table(EventType::Update, &update.table),
        StatementKind::Delete(delete) => of_table(EventType::Delete, &delete.table),
        StatementKind::Batch(_) => bare(EventType::Batch),
        StatementKind::Use(name) => of_keyspace(EventType::UseKeyspace, name),
        StatementKind::Truncate(name) => of_table(EventType::Truncate, name),
        StatementKind::Explain(explain) => subject(&explain.statement, scope),
        StatementKind::Describe(_) => bare(EventType::Describe),
        StatementKind::CreateKeyspace(create) => of_keyspace(EventType::CreateKeyspace, &create.name),
        StatementKind::AlterKeyspace { name, .. } => of_keyspace(EventType::AlterKeyspace, name),
        StatementKind::DropKeyspace { name, .. } => of_keyspace(EventType::DropKeyspace, name),
        StatementKind::CreateTable(create) => of_table(EventType::CreateTable, &create.name),
        StatementKind::AlterTable(alter) => of_table(EventType::AlterTable, &alter.name),
        StatementKind::DropTable(drop) => of_table(EventType::DropTable, &drop.name),
        StatementKind::CreateType(create) => of_table(EventType::CreateType, &create.name),
        StatementKind::AlterType(alter) => of_table(EventType::AlterType, &alter.name),
        StatementKind::DropType(drop) => of_table(EventType::DropType, &drop.name),
        StatementKind::CreateIndex(create) => {
            of_object(EventType::CreateIndex, create.table.keyspace.as_ref(), create.name.as_ref())
        }
        StatementKind::DropIndex(drop) => of_table(EventType::DropIndex, &drop.name),
        StatementKind::CreateView(create) => of_table(EventType::CreateView, &create.name),
        StatementKind::AlterView(alter) => of_table(EventType::AlterView, &alter.name),
        StatementKind::DropView(drop) => of_table(EventType::DropView, &drop.name),
        StatementKind::CreateTrigger(create) => {
            of_object(EventType::CreateTrigger, create.table.keyspace.as_ref(), Some(&create.name))
        }
        StatementKind::DropTrigger(drop) => {
            of_object(EventType::DropTrigger, drop.table.keyspace.as_ref(), Some(&drop.name))
        }
        StatementKind::CreateFunction(create) => {
            of_object(EventType::CreateFunction, create.name.keyspace.as_ref(), Some(&create.name.name))
        }
        StatementKind::DropFunction(drop) => {
            of_object(EventType::DropFunction, drop.name.keyspace.as_ref(), Some(&drop.name.name))
        }
        StatementKind::CreateAggregate(create) => {
            of_object(EventType::CreateAggregate, create.name.keyspace.as_ref(), Some(&create.name.name))
        }
        StatementKind::DropAggregate(drop) => {
            of_object(EventType::DropAggregate, drop.name.keyspace.as_ref(), Some(&drop.name.name))
        }
        StatementKind::GrantPermissions(grant) | StatementKind::RevokePermissions(grant) => {
            let event = match kind {
                StatementKind::GrantPermissions(_) => EventType::Grant,
                _ => EventType::Revoke,
            };
            match resource_of(&grant.resource, scope) {
                Ok(resource) => Subject {
                    event,
                    keyspace: Some(resource.parent().as_ref().unwrap_or(&resource).name().into()),
                    scope: Some(resource.name().into()),
                },
                Err(_) => bare(event),
            }
        }
        StatementKind::GrantRole(_) => bare(EventType::Grant),
        StatementKind::RevokeRole(_) => bare(EventType::Revoke),
        StatementKind::ListPermissions(_) => bare(EventType::ListPermissions),
        StatementKind::ListRoles(_) | StatementKind::ListUsers => bare(EventType::ListRoles),
        StatementKind::CreateRole(_) | StatementKind::CreateUser(_) => bare(EventType::CreateRole),
        StatementKind::AlterRole(_) | StatementKind::AlterUser(_) => bare(EventType::AlterRole),
        StatementKind::DropRole { .. } | StatementKind::DropUser { .. } => bare(EventType::DropRole),
        StatementKind::AddIdentity { .. } => bare(EventType::CreateIdentity),
        StatementKind::DropIdentity { .. } => bare(EventType::DropIdentity),
    }
}
