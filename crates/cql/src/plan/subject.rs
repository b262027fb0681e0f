//! Finds the subject of a parsed statement for the audit log.
//!
//! It needs no schema: the audit log names what a statement asks for, also of statements that fail. Source: the methods
//! `getAuditLogContext` of `org.apache.cassandra.cql3.statements`.

use super::access::resource_of;
use crate::audit::{EventType, Part, Subject};
use crate::scope::Scope;
use crate::syntax::ast::{Batch, BatchItem, Ident, QualifiedName, StatementKind};
use crate::syntax::end_of_batch;

/// The subject of a statement with this text.
pub(crate) fn subject(text: &str, kind: &StatementKind<'_>, scope: &Scope<'_>) -> Subject {
    let bare = Subject::bare;
    let of_keyspace =
        |event, name: &Ident<'_>| Subject { keyspace: Some(name.as_str().into()), ..Subject::bare(event) };
    let of_object = |event, keyspace: Option<&Ident<'_>>, name: Option<&Ident<'_>>| Subject {
        keyspace: keyspace.map(Ident::as_str).or(scope.keyspace).map(Into::into),
        scope: name.map(|name| name.as_str().into()),
        ..Subject::bare(event)
    };
    let of_table =
        |event, name: &QualifiedName<'_>| of_object(event, name.keyspace.as_ref(), Some(&name.name));
    match kind {
        StatementKind::Select(select) => of_table(EventType::Select, &select.table),
        StatementKind::Insert(insert) => of_table(EventType::Update, &insert.table),
        StatementKind::Update(update) => of_table(EventType::Update, &update.table),
        StatementKind::Delete(delete) => of_table(EventType::Delete, &delete.table),
        StatementKind::Batch(batch) => Subject { parts: parts(text, batch, scope), ..bare(EventType::Batch) },
        StatementKind::Use(name) => of_keyspace(EventType::UseKeyspace, name),
        StatementKind::Truncate(name) => of_table(EventType::Truncate, name),
        StatementKind::Explain(explain) => subject(text, &explain.statement, scope),
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
                    keyspace: Some(resource.parent().as_ref().unwrap_or(&resource).name().into()),
                    scope: Some(resource.name().into()),
                    ..bare(event)
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

/// The statements of a BATCH. The text of one ends where the next one begins.
fn parts(text: &str, batch: &Batch<'_>, scope: &Scope<'_>) -> Box<[Part]> {
    let of = |item: &BatchItem<'_>| {
        let (event, table, begin) = match item {
            BatchItem::Insert(insert, begin) => (EventType::Update, &insert.table, begin),
            BatchItem::Update(update, begin) => (EventType::Update, &update.table, begin),
            BatchItem::Delete(delete, begin) => (EventType::Delete, &delete.table, begin),
        };
        let keyspace = table.keyspace.as_ref().map(Ident::as_str).or(scope.keyspace).map(Into::into);
        let scope = Some(table.name.as_str().into());
        let begin = begin.0 as usize;
        Part { event, keyspace, scope, place: (begin, begin) }
    };
    let mut parts: Box<[Part]> = batch.items.iter().map(of).collect();
    let last = parts.last().map_or(0, |part| part.place.0);
    let mut end = end_of_batch(text, last);
    for part in parts.iter_mut().rev() {
        part.place.1 = end;
        end = part.place.0;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Backend;
    use crate::{LocalBackend, LocalOptions};
    use helenus_engine::{Database, DatabaseOptions};
    use helenus_host::sim::Machine;

    #[test]
    fn a_batch_has_the_subject_and_the_text_of_each_part() {
        let machine = Machine::new(1);
        let (database, _) = Database::open(machine.host(), DatabaseOptions::new("/db")).unwrap();
        let backend = LocalBackend::new(database, LocalOptions::default());
        let text = "/* é */ BEGIN UNLOGGED BATCH USING TIMESTAMP 5 UPDATE system_auth.roles SET can_login = true WHERE role = 'APPLY BATCH;'; \
                    INSERT INTO t (p) VALUES (1) DELETE FROM k.u WHERE p = 1 ; APPLY BATCH;";
        let subject = backend.subject(text, Some("s")).unwrap();
        let found: Vec<_> = subject
            .parts
            .iter()
            .map(|part| {
                let text = text.get(part.place.0..part.place.1).unwrap().trim_end_matches([' ', ';']);
                (part.event, part.keyspace.as_deref().unwrap(), part.scope.as_deref().unwrap(), text)
            })
            .collect();
        assert_eq!(
            found,
            [
                (
                    EventType::Update,
                    "system_auth",
                    "roles",
                    "UPDATE system_auth.roles SET can_login = true WHERE role = 'APPLY BATCH;'"
                ),
                (EventType::Update, "s", "t", "INSERT INTO t (p) VALUES (1)"),
                (EventType::Delete, "k", "u", "DELETE FROM k.u WHERE p = 1"),
            ]
        );
        assert!(backend.subject("SELECT * FROM t", Some("s")).unwrap().parts.is_empty());
    }

    #[test]
    fn a_table_of_roles_that_is_named_without_a_keyspace_may_have_secrets() {
        let machine = Machine::new(1);
        let (database, _) = Database::open(machine.host(), DatabaseOptions::new("/db")).unwrap();
        let backend = LocalBackend::new(database, LocalOptions::default());
        let has_secrets = |text: &str, keyspace| backend.subject(text, keyspace).unwrap().has_secret_values();
        let update = "UPDATE roles SET salted_hash = '$2a$10$x' WHERE role = 'app'";
        let batch = format!("BEGIN BATCH {update}; APPLY BATCH");
        for text in [update, &batch] {
            assert!(has_secrets(text, None) && has_secrets(text, Some("system_auth")), "{text}");
            assert!(!has_secrets(text, Some("k")), "{text}");
        }
        assert!(has_secrets("SELECT * FROM system_auth.t", Some("k")));
        assert!(!has_secrets("SELECT * FROM t", None) && !has_secrets("SELECT * FROM k.roles", None));
    }
}
