//! The permissions in `system_auth.role_permissions`: of a role with all its roles, and checks of them.
//!
//! The table `resource_role_permissons_index` (Cassandra spells it so) has the roles by resource. Its row of a role
//! stands as long as the role has any permission on the resource; Cassandra deletes it with the first permission that
//! is revoked, and the others then outlive the table.
//!
//! Source: `CassandraAuthorizer`, `AuthenticatedUser`.

use super::state::now_ns;
use super::store::{Changes, Row, text_set};
use crate::backend::Identity;
use crate::error::Result;
use crate::local::LocalBackend;
use crate::plan::access::{Resource, Wanted};
use crate::syntax::ast::Permission;
use std::collections::HashMap;
use std::sync::Arc;

const OF_ROLE: &str = "SELECT role, resource, permissions FROM system_auth.role_permissions WHERE role = ?";
const ALL: &str = "SELECT role, resource, permissions FROM system_auth.role_permissions";
const ON_RESOURCE: &str = "SELECT role FROM system_auth.resource_role_permissons_index WHERE resource = ?";
const ADD: &str =
    "UPDATE system_auth.role_permissions SET permissions = permissions + ? WHERE role = ? AND resource = ?";
const REMOVE: &str =
    "UPDATE system_auth.role_permissions SET permissions = permissions - ? WHERE role = ? AND resource = ?";
const ADD_TO_INDEX: &str =
    "INSERT INTO system_auth.resource_role_permissons_index (resource, role) VALUES (?, ?)";
const REMOVE_FROM_INDEX: &str =
    "DELETE FROM system_auth.resource_role_permissons_index WHERE resource = ? AND role = ?";
const REMOVE_GRANT: &str = "DELETE FROM system_auth.role_permissions WHERE role = ? AND resource = ?";
const REMOVE_RESOURCE: &str = "DELETE FROM system_auth.resource_role_permissons_index WHERE resource = ?";

/// A set of permissions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Permissions(u16);

impl Permissions {
    pub(super) fn of(permissions: &[Permission]) -> Permissions {
        Permissions(permissions.iter().fold(0, |all, permission| all | 1 << *permission as u16))
    }

    pub(super) fn has(self, permission: Permission) -> bool {
        self.0 & 1 << permission as u16 != 0
    }

    /// In Cassandra's order.
    pub(super) fn iter(self) -> impl Iterator<Item = Permission> {
        Permission::ALL.into_iter().filter(move |permission| self.has(*permission))
    }

    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(super) fn and(self, other: Permissions) -> Permissions {
        Permissions(self.0 & other.0)
    }

    pub(super) fn without(self, other: Permissions) -> Permissions {
        Permissions(self.0 & !other.0)
    }

    /// The names as a value of a set.
    fn as_set(self) -> Vec<u8> {
        text_set(self.iter().map(Permission::as_str))
    }
}

/// What is granted to a role, by itself and through its roles: permissions by the name of the resource.
#[derive(Debug, Default)]
pub(super) struct Grants(HashMap<Box<str>, Permissions>);

/// A row of `system_auth.role_permissions`.
pub(super) struct Grant {
    pub(super) role: Box<str>,
    pub(super) resource: Box<str>,
    pub(super) permissions: Permissions,
}

impl Grant {
    fn of_row(row: &Row) -> Grant {
        let names = row.texts(2);
        let named = |permission: &Permission| names.iter().any(|name| **name == *permission.as_str());
        let permissions: Vec<Permission> = Permission::ALL.into_iter().filter(named).collect();
        Grant {
            role: row.text(0).unwrap_or_default().into(),
            resource: row.text(1).unwrap_or_default().into(),
            permissions: Permissions::of(&permissions),
        }
    }
}

impl LocalBackend {
    /// The grants to a role itself; `None`: to all roles.
    pub(super) fn grants_to(&self, role: Option<&str>, may_block: bool) -> Result<Vec<Grant>> {
        let rows = match role {
            Some("") => Vec::new(),
            Some(role) => self.ask(OF_ROLE, &[role], may_block)?,
            None => self.ask(ALL, &[], may_block)?,
        };
        Ok(rows.iter().map(Grant::of_row).collect())
    }

    /// The permissions of a role and its roles, as old as `permissions_validity` at most.
    fn grants(&self, role: &str, may_block: bool) -> Result<Arc<Grants>> {
        let now = now_ns(self.database());
        self.access().grants.get_or_read(role, now, || {
            let mut grants = Grants::default();
            for role in &self.role_set(role, may_block)?.roles {
                for grant in self.grants_to(Some(&role.name), may_block)? {
                    let all = grants.0.entry(grant.resource).or_default();
                    *all = Permissions(all.0 | grant.permissions.0);
                }
            }
            Ok(grants)
        })
    }

    /// Whether an identity has a permission, by a grant or as a superuser.
    pub(super) fn has(&self, identity: &Identity, wanted: &Wanted, may_block: bool) -> Result<bool> {
        let is_super = self.is_super(identity, may_block)?;
        self.role_has((identity.role.as_deref().unwrap_or_default(), is_super), wanted, may_block)
    }

    /// The same for a role of which it is known whether it is a superuser. The only place where a permission is decided.
    pub(super) fn role_has(
        &self,
        (role, is_super): (&str, bool),
        wanted: &Wanted,
        may_block: bool,
    ) -> Result<bool> {
        if is_super {
            return Ok(wanted.resource.applicable().contains(&wanted.permission));
        }
        if !self.access().has_permissions() {
            return Ok(!wanted.is_guarded);
        }
        let grants = self.grants(role, may_block)?;
        let is_granted =
            |name: &str| grants.0.get(name).is_some_and(|granted| granted.has(wanted.permission));
        Ok(wanted.names.iter().any(|name| is_granted(name)))
    }

    /// The permissions of a role itself on a resource itself.
    pub(super) fn permissions_on(&self, role: &str, resource: &str) -> Result<Permissions> {
        let grants = self.grants_to(Some(role), true)?;
        let found = grants.into_iter().find(|grant| *grant.resource == *resource);
        Ok(found.map_or(Permissions::default(), |grant| grant.permissions))
    }

    /// Adds the deletion of all permissions on a resource to `changes`.
    pub(super) fn revoke_all_on(&self, resource: &Resource, changes: &mut Changes) -> Result<()> {
        let name = resource.name();
        let rows = self.ask(ON_RESOURCE, &[&name], true)?;
        for role in rows.iter().filter_map(|row| row.text(0)) {
            changes.add_texts(REMOVE_GRANT, &[role, &name]);
        }
        if !rows.is_empty() {
            changes.add_texts(REMOVE_RESOURCE, &[&name]);
        }
        Ok(())
    }

    /// Adds the deletion of all permissions of a role to `changes`.
    pub(super) fn revoke_all_of(&self, role: &str, changes: &mut Changes) -> Result<()> {
        for grant in self.grants_to(Some(role), true)? {
            changes.add_texts(REMOVE_FROM_INDEX, &[&grant.resource, role]);
        }
        changes.add_texts("DELETE FROM system_auth.role_permissions WHERE role = ?", &[role]);
        Ok(())
    }
}

/// Adds a grant to `changes`.
pub(super) fn grant(role: &str, resource: &Resource, permissions: Permissions, changes: &mut Changes) {
    let name = resource.name();
    changes.add(ADD, &[&permissions.as_set(), role.as_bytes(), name.as_bytes()]);
    changes.add_texts(ADD_TO_INDEX, &[&name, role]);
}

/// Adds the removal of permissions to `changes`. `are_last`: none is left.
pub(super) fn revoke(
    (role, resource): (&str, &Resource),
    permissions: Permissions,
    are_last: bool,
    changes: &mut Changes,
) {
    let name = resource.name();
    changes.add(REMOVE, &[&permissions.as_set(), role.as_bytes(), name.as_bytes()]);
    if are_last {
        changes.add_texts(REMOVE_FROM_INDEX, &[&name, role]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_of_permissions_has_cassandra_s_order() {
        let set = Permissions::of(&[Permission::SelectMasked, Permission::Create, Permission::Modify]);
        let names: Vec<&str> = set.iter().map(Permission::as_str).collect();
        assert_eq!(names, ["CREATE", "MODIFY", "SELECT_MASKED"]);
        assert!(set.without(set).is_empty());
        assert_eq!(set.and(Permissions::of(&[Permission::Create])), Permissions::of(&[Permission::Create]));
    }
}
