//! The roles in `system_auth.roles`: each by itself, and a role together with all roles that are granted to it.
//!
//! Source: `CassandraRoleManager`, `Roles`.

use super::state::now_ns;
use super::store::Row;
use crate::backend::Identity;
use crate::error::{CqlError, Result};
use crate::local::LocalBackend;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The role that a new server has.
pub(super) const DEFAULT_ROLE: &str = "cassandra";

const ONE: &str = "SELECT role, is_superuser, can_login, member_of, salted_hash, writetime(salted_hash) \
     FROM system_auth.roles WHERE role = ?";
const ALL: &str = "SELECT role, is_superuser, can_login, member_of, salted_hash, writetime(salted_hash) \
     FROM system_auth.roles";

/// A row of `system_auth.roles`.
#[derive(Clone, Debug)]
pub(super) struct Role {
    pub(super) name: Box<str>,
    pub(super) is_superuser: bool,
    pub(super) can_login: bool,
    /// The roles that are granted to it directly.
    pub(super) member_of: Vec<Box<str>>,
    pub(super) salted_hash: Option<String>,
    /// When its password was set, microseconds.
    pub(super) hash_written_us: Option<i64>,
}

impl Role {
    fn of_row(row: &Row) -> Result<Role> {
        let name = row.text(0).unwrap_or_default();
        let (Some(is_superuser), Some(can_login)) = (row.boolean(1), row.boolean(2)) else {
            return Err(CqlError::Server(format!(
                "java.lang.RuntimeException: Invalid metadata has been detected for role {name}"
            )));
        };
        Ok(Role {
            name: name.into(),
            is_superuser,
            can_login,
            member_of: row.texts(3),
            salted_hash: row.text(4).map(str::to_owned),
            hash_written_us: row.bigint(5),
        })
    }
}

/// A role and the roles that are granted to it, directly or not. Empty if the role does not exist.
#[derive(Debug, Default)]
pub(super) struct RoleSet {
    /// The role itself comes first.
    pub(super) roles: Vec<Role>,
}

impl RoleSet {
    /// Whether the role, or one that is granted to it, is a superuser.
    pub(super) fn is_super(&self) -> bool {
        self.roles.iter().any(|role| role.is_superuser)
    }

    /// Whether the role itself may log in.
    pub(super) fn can_login(&self) -> bool {
        self.roles.first().is_some_and(|role| role.can_login)
    }

    /// Whether a role is the role itself or is granted to it.
    pub(super) fn contains(&self, name: &str) -> bool {
        self.roles.iter().any(|role| *role.name == *name)
    }
}

impl LocalBackend {
    /// The row of a role.
    pub(super) fn role(&self, name: &str, may_block: bool) -> Result<Option<Role>> {
        // A key must not be empty.
        if name.is_empty() {
            return Ok(None);
        }
        self.ask(ONE, &[name], may_block)?.first().map(Role::of_row).transpose()
    }

    /// The rows of all roles, sorted by name.
    pub(super) fn all_roles(&self) -> Result<Vec<Role>> {
        let rows = self.ask(ALL, &[], true)?;
        let mut roles = rows.iter().map(Role::of_row).collect::<Result<Vec<_>>>()?;
        roles.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(roles)
    }

    /// A role and the roles that are granted to it, as the tables say now.
    pub(super) fn role_set_now(&self, name: &str, may_block: bool) -> Result<RoleSet> {
        let mut set = RoleSet::default();
        let mut wanted: Vec<Box<str>> = vec![name.into()];
        let mut seen: BTreeSet<Box<str>> = BTreeSet::new();
        while let Some(name) = wanted.pop() {
            if !seen.insert(name.clone()) {
                continue;
            }
            if let Some(role) = self.role(&name, may_block)? {
                wanted.extend(role.member_of.iter().cloned());
                set.roles.push(role);
            }
        }
        Ok(set)
    }

    /// As `role_set_now`, but it may be as old as `roles_validity`.
    pub(super) fn role_set(&self, name: &str, may_block: bool) -> Result<Arc<RoleSet>> {
        let now = now_ns(self.database());
        self.access().roles.get_or_read(name, now, || self.role_set_now(name, may_block))
    }

    /// Whether an identity is that of a role which is no superuser (`ClientState.isOrdinaryUser`).
    pub(in crate::local) fn is_ordinary(&self, identity: &Identity) -> Result<bool> {
        Ok(self.access().has_logins() && identity.role.is_some() && !self.is_super(identity, true)?)
    }

    /// Whether an identity has the rights of a superuser.
    pub(super) fn is_super(&self, identity: &Identity, may_block: bool) -> Result<bool> {
        match &identity.role {
            _ if identity.is_server() => Ok(true),
            Some(role) => Ok(self.role_set(role, may_block)?.is_super()),
            None => Ok(false),
        }
    }
}
