//! Runs LIST ROLES, LIST USERS and LIST PERMISSIONS. A list without rows is answered without a result, as in Cassandra.
//!
//! Source: `ListRolesStatement`, `ListUsersStatement`, `ListPermissionsStatement`.

use super::grants::{Grant, Permissions};
use super::role_statements::Asker;
use super::roles::Role;
use crate::analysis::result_columns;
use crate::backend::{Answer, Outcome, ResultColumn, ResultColumns, RowsOut};
use crate::error::{CqlError, Result};
use crate::local::LocalBackend;
use crate::plan::access::{PermissionList, Resource, Wanted};
use crate::syntax::ast::Permission;
use helenus_model::types::{CqlType, pack};
use std::sync::Arc;

/// A cell; `None` is null.
type Cell = Option<Vec<u8>>;

fn columns(table: &str, columns: &[(&str, CqlType)]) -> Arc<ResultColumns> {
    let column = |(name, ty): &(&str, CqlType)| ResultColumn {
        keyspace: "system_auth".into(),
        table: table.into(),
        name: (*name).into(),
        ty: ty.clone(),
    };
    result_columns(columns.iter().map(column).collect(), |_| false)
}

fn text(text: &str) -> Cell {
    Some(text.as_bytes().to_vec())
}

fn boolean(yes: bool) -> Cell {
    Some(vec![u8::from(yes)])
}

/// Writes rows; an answer without a result if there are none.
fn answer(columns: Arc<ResultColumns>, rows: &[Vec<Cell>], out: &mut dyn RowsOut) -> Answer {
    if rows.is_empty() {
        return LocalBackend::nothing_listed();
    }
    out.columns(&columns);
    for row in rows {
        row.iter().for_each(|cell| out.cell(cell.as_deref()));
        out.end_row();
    }
    Outcome::Rows { columns, paging_state: None, ticket: None }.into()
}

impl LocalBackend {
    /// Whether an asker sees all roles.
    fn describes_roles(&self, asker: &Asker<'_>) -> Result<bool> {
        let wanted = Wanted::granted(Permission::Describe, Resource::AllRoles);
        self.has(asker.identity, &wanted, true)
    }

    /// The role of this name with the roles granted to it: all, or only those granted directly.
    fn granted_to(&self, name: &str, recursive: bool) -> Result<Vec<Role>> {
        let mut roles = self.role_set_now(name, true)?.roles;
        if !recursive {
            let direct = roles.first().map(|role| role.member_of.clone()).unwrap_or_default();
            roles.retain(|role| *role.name == *name || direct.contains(&role.name));
        }
        Ok(roles)
    }

    /// LIST ROLES
    pub(super) fn list_roles(
        &self,
        asker: &Asker<'_>,
        (of, recursive): (Option<&str>, bool),
        out: &mut dyn RowsOut,
    ) -> Result<Answer> {
        self.check_not_anonymous(asker)?;
        if let Some(of) = of {
            self.check_exists(&Resource::Role(of.into()), "")?;
        }
        let mut roles = match (of, self.describes_roles(asker)?) {
            (None, true) => self.all_roles()?,
            (Some(of), true) => self.granted_to(of, recursive)?,
            (None, false) => self.granted_to(asker.name(), recursive)?,
            (Some(of), false) if asker.roles.contains(of) => self.granted_to(of, recursive)?,
            (Some(of), false) => {
                return Err(CqlError::Unauthorized(format!(
                    "You are not authorized to view roles granted to {of} "
                )));
            }
        };
        roles.sort_by(|a, b| a.name.cmp(&b.name));
        let none = || Arc::new(CqlType::Text);
        let columns = columns(
            "roles",
            &[
                ("role", CqlType::Text),
                ("super", CqlType::Boolean),
                ("login", CqlType::Boolean),
                ("options", CqlType::Map { key: none(), value: none(), frozen: false }),
                ("datacenters", CqlType::Text),
            ],
        );
        let row = |role: &Role| -> Result<Vec<Cell>> {
            let limits = self.limits_of(&role.name)?.texts();
            let mut sorted: Vec<(&str, &str)> =
                limits.iter().map(|(name, value)| (*name, &**value)).collect();
            sorted.sort_unstable();
            let elements =
                sorted.iter().flat_map(|(name, value)| [Some(name.as_bytes()), Some(value.as_bytes())]);
            let mut options = Vec::new();
            pack(sorted.len(), elements, &mut options);
            Ok(vec![
                text(&role.name),
                boolean(role.is_superuser),
                boolean(role.can_login),
                Some(options),
                text(&self.datacenters_of(&role.name, true)?.to_string()),
            ])
        };
        let rows = roles.iter().map(row).collect::<Result<Vec<_>>>()?;
        Ok(answer(columns, &rows, out))
    }

    /// LIST USERS: the roles that can log in.
    pub(super) fn list_users(&self, asker: &Asker<'_>, out: &mut dyn RowsOut) -> Result<Answer> {
        self.check_not_anonymous(asker)?;
        let mut roles = match self.describes_roles(asker)? {
            true => self.all_roles()?,
            false => self.granted_to(asker.name(), false)?,
        };
        roles.sort_by(|a, b| a.name.cmp(&b.name));
        let mut rows = Vec::new();
        for role in roles.iter().filter(|role| role.can_login) {
            let is_super = self.role_set_now(&role.name, true)?.is_super();
            let datacenters = self.datacenters_of(&role.name, true)?.to_string();
            rows.push(vec![text(&role.name), boolean(is_super), text(&datacenters)]);
        }
        let columns = columns(
            "users",
            &[("name", CqlType::Text), ("super", CqlType::Boolean), ("datacenters", CqlType::Text)],
        );
        Ok(answer(columns, &rows, out))
    }

    /// LIST PERMISSIONS
    pub(super) fn list_permissions(
        &self,
        asker: &Asker<'_>,
        list: &PermissionList,
        out: &mut dyn RowsOut,
    ) -> Result<Answer> {
        self.check_not_anonymous(asker)?;
        if let Some(resource) = &list.resource {
            self.check_exists(resource, "")?;
        }
        if let Some(role) = &list.role {
            self.check_exists(&Resource::Role(role.clone()), "")?;
        }
        if !self.access().has_permissions() {
            return Err(CqlError::Invalid(
                "LIST PERMISSIONS operation is not supported by AllowAllAuthorizer".to_owned(),
            ));
        }
        let is_allowed = asker.is_super
            || list.role.as_ref().is_some_and(|role| asker.roles.contains(role))
            || self.describes_roles(asker)?
            || match &list.role {
                Some(role) => {
                    let wanted = Wanted::granted(Permission::Describe, Resource::Role(role.clone()));
                    self.has(asker.identity, &wanted, true)?
                }
                None => false,
            };
        if !is_allowed {
            let whose = list.role.as_deref().unwrap_or("everyone");
            return Err(CqlError::Unauthorized(format!(
                "You are not authorized to view {whose}'s permissions"
            )));
        }
        let mut rows = Vec::new();
        for grant in self.listed(list)? {
            let shown = Resource::of_name(&grant.resource)
                .map_or_else(|| format!("<{}>", grant.resource), |resource| resource.to_string());
            for permission in grant.permissions.iter() {
                let (role, name) = (text(&grant.role), permission.as_str());
                rows.push(vec![role.clone(), role, text(&shown), text(name)]);
            }
        }
        let columns = columns(
            "permissions",
            &[
                ("role", CqlType::Text),
                ("username", CqlType::Text),
                ("resource", CqlType::Text),
                ("permission", CqlType::Text),
            ],
        );
        Ok(answer(columns, &rows, out))
    }

    /// The grants that a LIST shows, sorted by role and resource, with the permissions it asks for.
    fn listed(&self, list: &PermissionList) -> Result<Vec<Grant>> {
        let mut grants = Vec::new();
        match &list.role {
            Some(role) => {
                for role in self.role_set_now(role, true)?.roles {
                    grants.extend(self.grants_to(Some(&role.name), true)?);
                }
            }
            None => grants = self.grants_to(None, true)?,
        }
        let resources: Option<Vec<String>> = list.resource.as_ref().map(|resource| {
            let chain = resource.granted_on();
            let count = if list.recursive { chain.len() } else { 1 };
            chain.iter().take(count).map(Resource::name).collect()
        });
        let wanted = Permissions::of(&list.permissions);
        grants.retain_mut(|grant| {
            grant.permissions = grant.permissions.and(wanted);
            let is_on = |names: &Vec<String>| names.iter().any(|name| **name == *grant.resource);
            resources.as_ref().is_none_or(is_on)
        });
        grants.sort_by(|a, b| (&a.role, &a.resource).cmp(&(&b.role, &b.resource)));
        Ok(grants)
    }
}
