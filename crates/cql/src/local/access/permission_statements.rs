//! Runs GRANT and REVOKE of permissions, and changes permissions when an object is created or dropped.
//!
//! Source: `PermissionsManagementStatement`, `GrantPermissionsStatement`, `RevokePermissionsStatement`.

use super::authorize::refusal;
use super::grants::{Permissions, grant, revoke};
use super::role_statements::Asker;
use super::store::Changes;
use crate::backend::Identity;
use crate::error::{CqlError, Result};
use crate::local::LocalBackend;
use crate::plan::access::{PermissionChange, Resource, Wanted};
use crate::syntax::ast::Permission;
use helenus_engine::{SchemaChange, SchemaChangeKind, is_system_keyspace};

/// The permissions that may be granted on a system keyspace (`Permission.GRANTABLE_ON_SYSTEM`, with DESCRIBE, which
/// data cannot have).
const ON_SYSTEM: [Permission; 2] = [Permission::Select, Permission::Alter];

impl LocalBackend {
    /// What GRANT and REVOKE check before they change anything.
    fn check_change(&self, asker: &Asker<'_>, change: &PermissionChange) -> Result<()> {
        for permission in [Permission::Authorize].iter().chain(&change.permissions) {
            let wanted = Wanted::granted(*permission, change.resource.clone());
            if !self.has(asker.identity, &wanted, true)? {
                return Err(CqlError::Unauthorized(refusal(asker.name(), &wanted)));
            }
        }
        self.check_not_anonymous(asker)?;
        if self.role(&change.role, true)?.is_none() {
            return Err(CqlError::Invalid(format!("Role {} doesn't exist", change.role)));
        }
        if let Resource::FunctionsIn(keyspace) | Resource::Function(keyspace, ..) = &change.resource
            && **keyspace == *"system"
        {
            return Err(CqlError::Invalid(
                "Altering permissions on builtin functions is not supported".to_owned(),
            ));
        }
        self.check_exists(&change.resource, "Resource ")
    }

    /// Refuses a resource that does not exist; the message begins with `prefix`.
    pub(super) fn check_exists(&self, resource: &Resource, prefix: &str) -> Result<()> {
        let schema = self.virtual_tables().shown_in(&self.database().schema());
        let is_role = match resource {
            Resource::Role(role) => self.role(role, true)?.is_some(),
            _ => false,
        };
        match resource.exists(&schema, |_| is_role) {
            true => Ok(()),
            false => Err(CqlError::Invalid(format!("{prefix}{resource} doesn't exist"))),
        }
    }

    fn check_authorizer(&self, operation: &str) -> Result<()> {
        match self.access().has_permissions() {
            true => Ok(()),
            false => Err(CqlError::Server(format!(
                "java.lang.UnsupportedOperationException: {operation} operation is not supported by AllowAllAuthorizer"
            ))),
        }
    }

    /// Adds a grant to `changes`; returns a warning if some of it had been granted.
    pub(super) fn grant_permissions(
        &self,
        asker: &Asker<'_>,
        change: &PermissionChange,
        changes: &mut Changes,
    ) -> Result<Option<String>> {
        self.check_change(asker, change)?;
        let is_limited = change.resource.data_keyspace().is_some_and(|keyspace| {
            is_system_keyspace(keyspace) && !matches!(keyspace, "system_views" | "system_virtual_schema")
        });
        if is_limited && change.permissions.iter().any(|permission| !ON_SYSTEM.contains(permission)) {
            return Err(CqlError::Unauthorized(
                "Granting permissions on system keyspaces is strictly limited, this operation is not permitted"
                    .to_owned(),
            ));
        }
        self.check_authorizer("GRANT")?;
        let asked = Permissions::of(&change.permissions);
        let known = self.permissions_on(&change.role, &change.resource.name())?.and(asked);
        let new = asked.without(known);
        if !new.is_empty() {
            grant(&change.role, &change.resource, new, changes);
        }
        Ok(warning(change, known, "already granted"))
    }

    /// Adds a revocation to `changes`; returns a warning if some of it had not been granted.
    pub(super) fn revoke_permissions(
        &self,
        asker: &Asker<'_>,
        change: &PermissionChange,
        changes: &mut Changes,
    ) -> Result<Option<String>> {
        self.check_change(asker, change)?;
        self.check_authorizer("REVOKE")?;
        let asked = Permissions::of(&change.permissions);
        let present = self.permissions_on(&change.role, &change.resource.name())?;
        let removed = present.and(asked);
        if !removed.is_empty() {
            let are_last = present.without(removed).is_empty();
            revoke((&change.role, &change.resource), removed, are_last, changes);
        }
        Ok(warning(change, asked.without(present), "not granted"))
    }

    /// Deletes the permissions that stand on objects which are not there and are about to be created: a server that ended between a
    /// DROP and the write that follows it has left them. `changing` is held.
    ///
    /// # Errors
    /// Those of a read and a write. Nothing may be created then.
    pub(crate) fn forget_grants_on(&self, created: &[&SchemaChange]) -> Result<()> {
        if !self.access().has_logins() {
            return Ok(());
        }
        let (schema, mut changes) = (self.database().schema(), Changes::default());
        for change in created {
            let is_there = match &change.name {
                Some(table) => schema.table(&change.keyspace, table).is_some(),
                None => schema.keyspaces.contains_key(&change.keyspace),
            };
            if !is_there {
                self.revoke_all_of_object(change, &mut changes)?;
            }
        }
        if changes.is_empty() {
            return Ok(());
        }
        self.change_and_wait(&changes, None)
    }

    fn revoke_all_of_object(&self, object: &SchemaChange, changes: &mut Changes) -> Result<()> {
        for resource in &resources_of(object) {
            self.revoke_all_on(resource, changes)?;
        }
        if object.name.is_none() {
            self.revoke_all_on(&Resource::AllTables((*object.keyspace).into()), changes)?;
        }
        Ok(())
    }

    /// Grants everything on a new object to its creator, and revokes everything on dropped objects. `changing` is held.
    ///
    /// # Errors
    /// Those of a read and a write. The schema has changed all the same.
    pub(crate) fn follow_schema(&self, changed: &[SchemaChange], identity: &Identity) -> Result<()> {
        if !self.access().has_logins() {
            return Ok(());
        }
        let mut changes = Changes::default();
        for change in changed.iter().filter(|change| !change.is_type) {
            match (change.kind, &identity.role) {
                (SchemaChangeKind::Created, Some(creator)) if self.access().has_permissions() => {
                    for resource in &resources_of(change) {
                        grant(creator, resource, Permissions::of(resource.applicable()), &mut changes);
                    }
                }
                (SchemaChangeKind::Dropped, _) => self.revoke_all_of_object(change, &mut changes)?,
                _ => {}
            }
        }
        self.change_and_wait(&changes, None)
    }
}

/// The resources of a keyspace or table on which its creator has everything.
fn resources_of(object: &SchemaChange) -> Vec<Resource> {
    let keyspace: Box<str> = (*object.keyspace).into();
    match &object.name {
        Some(table) => vec![Resource::table(&keyspace, table)],
        None => vec![Resource::Keyspace(keyspace.clone()), Resource::FunctionsIn(keyspace)],
    }
}

/// The warning that some of the permissions were in the wanted state already.
fn warning(change: &PermissionChange, unchanged: Permissions, state: &str) -> Option<String> {
    if unchanged.is_empty() {
        return None;
    }
    let names: Vec<&str> = unchanged.iter().map(Permission::as_str).collect();
    Some(format!("Role '{}' was {state} {} on {}", change.role, names.join(", "), change.resource))
}
