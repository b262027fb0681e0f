//! Runs statements about roles and identities: who may, what is valid, what changes.
//!
//! Each statement is checked as Cassandra checks it: first the permission, so that a role without it does not learn
//! what exists, then the statement, then its effect. A statement changes all its tables in one write.
//!
//! Source: `CreateRoleStatement` and its siblings, `CassandraRoleManager`.

use super::authorize::ANONYMOUS;
use super::grants::{Permissions, grant};
use super::options::NetworkAuthorizer;
use super::passwords;
use super::roles::RoleSet;
use super::store::{Changes, text_set};
use crate::backend::{Answer, Identity, Outcome, Request, RowsOut};
use crate::error::{CqlError, Result};
use crate::local::{LocalBackend, may_block};
use crate::plan::access::Resource;
use crate::plan::access::{AccessStatement, Limits, RoleChange, RoleOptions};
use crate::syntax::ast::Permission;
use helenus_engine::Ticket;
use std::sync::Arc;

const ADD_MEMBERSHIP: &str = "UPDATE system_auth.roles SET member_of = member_of + ? WHERE role = ?";
const REMOVE_MEMBERSHIP: &str = "UPDATE system_auth.roles SET member_of = member_of - ? WHERE role = ?";
const ADD_MEMBER: &str = "INSERT INTO system_auth.role_members (role, member) VALUES (?, ?)";
const REMOVE_MEMBER: &str = "DELETE FROM system_auth.role_members WHERE role = ? AND member = ?";
const REMOVE_IDENTITY: &str = "DELETE FROM system_auth.identity_to_role WHERE identity = ?";
const SET_DATACENTERS: &str = "INSERT INTO system_auth.network_permissions (role, dcs) VALUES (?, ?)";
const SET_CIDRS: &str = "INSERT INTO system_auth.cidr_permissions (role, cidr_groups) VALUES (?, ?)";

/// Who runs a statement.
pub(super) struct Asker<'a> {
    pub(super) identity: &'a Identity,
    /// The roles of the identity; empty for an anonymous one.
    pub(super) roles: Arc<RoleSet>,
    pub(super) is_super: bool,
}

impl Asker<'_> {
    /// The name in messages.
    pub(super) fn name(&self) -> &str {
        self.identity.role.as_deref().unwrap_or("anonymous")
    }
}

fn unauthorized<T>(text: impl Into<String>) -> Result<T> {
    Err(CqlError::Unauthorized(text.into()))
}

fn invalid<T>(text: impl Into<String>) -> Result<T> {
    Err(CqlError::Invalid(text.into()))
}

impl LocalBackend {
    /// Runs a statement.
    ///
    /// # Errors
    /// The identity may not, or the statement is not valid, in Cassandra's words.
    pub(crate) fn run_access(
        &self,
        statement: &AccessStatement,
        request: &Request<'_>,
        out: &mut dyn RowsOut,
    ) -> Result<Answer> {
        may_block(request)?;
        let _changing = self.access().changing.lock();
        let asker = self.asker(request.identity)?;
        let mut changes = Changes::default();
        let mut warnings = Vec::new();
        match statement {
            AccessStatement::CreateRole(change) => self.create_role(&asker, change, &mut changes)?,
            AccessStatement::AlterRole(change) => self.alter_role(&asker, change, &mut changes)?,
            AccessStatement::DropRole { name, if_exists } => {
                self.drop_role(&asker, (name, *if_exists), &mut changes)?;
            }
            AccessStatement::GrantRole { role, grantee } => {
                self.check_grant_of_role(&asker, (role, grantee))?;
                self.grant_role((role, grantee), &mut changes)?;
            }
            AccessStatement::RevokeRole { role, grantee } => {
                self.check_grant_of_role(&asker, (role, grantee))?;
                self.revoke_role((role, grantee), &mut changes)?;
            }
            AccessStatement::AddIdentity { identity, role, if_not_exists } => {
                self.add_identity(&asker, (identity, role, *if_not_exists), &mut changes)?;
            }
            AccessStatement::DropIdentity { identity, if_exists } => {
                self.drop_identity(&asker, (identity, *if_exists), &mut changes)?;
            }
            AccessStatement::Grant(change) => {
                warnings.extend(self.grant_permissions(&asker, change, &mut changes)?);
            }
            AccessStatement::Revoke(change) => {
                warnings.extend(self.revoke_permissions(&asker, change, &mut changes)?);
            }
            AccessStatement::ListRoles { of, recursive } => {
                return self.list_roles(&asker, (of.as_deref(), *recursive), out);
            }
            AccessStatement::ListUsers => return self.list_users(&asker, out),
            AccessStatement::ListPermissions(list) => return self.list_permissions(&asker, list, out),
        }
        let ticket = self.change(&changes, None)?;
        self.access().forget();
        Ok(Answer { outcome: Outcome::Done(ticket), warnings })
    }

    fn asker<'a>(&self, identity: &'a Identity) -> Result<Asker<'a>> {
        let roles = match &identity.role {
            Some(role) => Arc::new(self.role_set_now(role, true)?),
            None => Arc::default(),
        };
        let is_super = roles.is_super() || identity.is_server();
        Ok(Asker { identity, roles, is_super })
    }

    /// Refuses anonymous users (`ClientState.ensureNotAnonymous`).
    pub(super) fn check_not_anonymous(&self, asker: &Asker<'_>) -> Result<()> {
        match asker.identity.role.is_some() || asker.identity.is_server() {
            true => Ok(()),
            false => unauthorized(ANONYMOUS),
        }
    }

    /// Checks a permission on a role or on all roles; the refusal does not say which.
    fn check_sufficient(&self, asker: &Asker<'_>, permission: Permission, resource: &Resource) -> Result<()> {
        match self.has(asker, permission, resource)? {
            true => Ok(()),
            false => unauthorized(format!(
                "User {} does not have sufficient privileges to perform the requested operation",
                asker.name()
            )),
        }
    }

    fn exists(&self, role: &str) -> Result<bool> {
        Ok(self.role(role, true)?.is_some())
    }

    fn create_role(&self, asker: &Asker<'_>, change: &RoleChange, changes: &mut Changes) -> Result<()> {
        let (name, options) = (&*change.name, &change.options);
        self.check_sufficient(asker, Permission::Create, &Resource::AllRoles)?;
        if options.superuser == Some(true) && !asker.is_super {
            return unauthorized("Only superusers can create a role with superuser status");
        }
        self.check_options(asker, options)?;
        if name.is_empty() {
            return invalid("Role name can't be an empty string");
        }
        self.check_limits(options)?;
        self.check_not_anonymous(asker)?;
        if self.exists(name)? {
            return if change.guarded { Ok(()) } else { invalid(format!("{name} already exists")) };
        }
        if self.identities()?.iter().any(|(_, role)| **role == *name) {
            return Err(CqlError::Server(format!(
                "java.lang.IllegalStateException: Cannot create a role '{name}' when identities already exists for it"
            )));
        }
        let flag = |option: Option<bool>| [u8::from(option.unwrap_or(false))];
        changes.add(
            "INSERT INTO system_auth.roles (role, is_superuser, can_login) VALUES (?, ?, ?)",
            &[name.as_bytes(), &flag(options.superuser), &flag(options.login)],
        );
        self.set_password(name, options, changes)?;
        changes.add(SET_CIDRS, &[name.as_bytes(), &limit_set(options.cidrs.as_ref())]);
        if self.access().options.network == NetworkAuthorizer::Cassandra {
            self.set_datacenters(name, options, changes);
        }
        if let Some(creator) = asker.identity.role.as_deref().filter(|_| self.access().has_permissions()) {
            let resource = Resource::Role(name.into());
            grant(creator, &resource, Permissions::of(resource.applicable()), changes);
        }
        Ok(())
    }

    fn alter_role(&self, asker: &Asker<'_>, change: &RoleChange, changes: &mut Changes) -> Result<()> {
        let (name, options) = (&*change.name, &change.options);
        self.may_alter(asker, name, options)?;
        self.check_options(asker, options)?;
        let is_empty = options.password.is_none()
            && options.hashed_password.is_none()
            && options.superuser.is_none()
            && options.login.is_none()
            && options.datacenters.is_none()
            && options.cidrs.is_none();
        if is_empty {
            return invalid("ALTER [ROLE|USER] can't be empty");
        }
        self.check_limits(options)?;
        self.check_not_anonymous(asker)?;
        let Some(role) = self.role(name, true)? else {
            return if change.guarded { Ok(()) } else { invalid(format!("Role {name} doesn't exist")) };
        };
        if options.password.is_some() {
            self.check_interval(name, role.hash_written_us)?;
        }
        self.set_password(name, options, changes)?;
        if let Some(superuser) = options.superuser {
            let statement = "UPDATE system_auth.roles SET is_superuser = ? WHERE role = ?";
            changes.add(statement, &[&[u8::from(superuser)], name.as_bytes()]);
        }
        if let Some(login) = options.login {
            let statement = "UPDATE system_auth.roles SET can_login = ? WHERE role = ?";
            changes.add(statement, &[&[u8::from(login)], name.as_bytes()]);
        }
        if options.cidrs.is_some() {
            changes.add(SET_CIDRS, &[name.as_bytes(), &limit_set(options.cidrs.as_ref())]);
        }
        if options.datacenters.is_some() {
            if self.access().options.network == NetworkAuthorizer::AllowAll {
                // Cassandra says so after it has changed the rest; here nothing has changed.
                return invalid(
                    "ACCESS TO DATACENTERS operations not supported by AllowAllNetworkAuthorizer",
                );
            }
            self.set_datacenters(name, options, changes);
        }
        Ok(())
    }

    /// Limits a role to datacenters. The key of the table is the name of the role as a resource.
    fn set_datacenters(&self, name: &str, options: &RoleOptions, changes: &mut Changes) {
        let key = Resource::Role(name.into()).name();
        changes.add(SET_DATACENTERS, &[key.as_bytes(), &limit_set(options.datacenters.as_ref())]);
    }

    /// `AlterRoleStatement.authorize`
    fn may_alter(&self, asker: &Asker<'_>, name: &str, options: &RoleOptions) -> Result<()> {
        if options.superuser.is_some() && asker.roles.contains(name) {
            return unauthorized(
                "You aren't allowed to alter your own superuser status or that of a role granted to you",
            );
        }
        if asker.is_super {
            return Ok(());
        }
        if options.superuser.is_some() {
            return unauthorized("Only superusers are allowed to alter superuser status");
        }
        if options.datacenters.is_some() {
            return unauthorized("Only superusers are allowed to alter access to datacenters.");
        }
        if options.cidrs.is_some() {
            return unauthorized("Only superusers are allowed to alter access from CIDR groups.");
        }
        if asker.identity.role.as_deref() != Some(name) {
            return self.check_sufficient(asker, Permission::Alter, &Resource::Role(name.into()));
        }
        match (options.login, options.has_options) {
            (Some(_), _) => unauthorized("You aren't allowed to alter LOGIN"),
            (None, true) => unauthorized("You aren't allowed to alter OPTIONS"),
            (None, false) => Ok(()),
        }
    }

    /// `RoleOptions.validate`, and a limit on the cost of a hash, which Cassandra does not have.
    fn check_options(&self, asker: &Asker<'_>, options: &RoleOptions) -> Result<()> {
        let unsupported = |option: &str| {
            invalid(format!("org.apache.cassandra.auth.CassandraRoleManager doesn't support {option}"))
        };
        if options.has_options {
            return unsupported("OPTIONS");
        }
        if options.password.is_some() && !self.access().takes_passwords() {
            return unsupported("PASSWORD");
        }
        let Some(hash) = &options.hashed_password else { return Ok(()) };
        if !self.access().takes_passwords() {
            return unsupported("HASHED_PASSWORD");
        }
        match passwords::cost(&hash.0) {
            None => invalid("Invalid hashed password value. Please use jBcrypt."),
            Some(cost) if cost > passwords::COST_OF_ROLES_MAX && !asker.is_super => unauthorized(format!(
                "Only superusers may set a hash of cost {cost}, because each login of its role occupies the server for long; \
                 make one of cost {} or less",
                passwords::COST_OF_ROLES_MAX
            )),
            Some(_) => Ok(()),
        }
    }

    /// Checks the names of datacenters and of groups of networks.
    fn check_limits(&self, options: &RoleOptions) -> Result<()> {
        if let Some(Limits::Only(names)) = &options.datacenters
            && names.iter().any(|name| **name != *self.ddl_settings().datacenter)
        {
            let names = names.join(", ");
            return invalid(format!(
                "Invalid value(s) for DATACENTERS '[{names}]',All values must be valid datacenters"
            ));
        }
        let Some(Limits::Only(asked)) = &options.cidrs else { return Ok(()) };
        let rows = self.ask("SELECT cidr_group FROM system_auth.cidr_groups", &[], true)?;
        let known: Vec<&str> = rows.iter().filter_map(|row| row.text(0)).collect();
        let unknown: Vec<&str> =
            asked.iter().map(|name| &**name).filter(|name| !known.contains(name)).collect();
        if unknown.is_empty() {
            return Ok(());
        }
        invalid(format!(
            "Invalid CIDR group(s): [{}]. Available CIDR Groups are: [{}]",
            unknown.join(", "),
            known.join(", ")
        ))
    }

    /// Refuses a change of a password soon after the last one.
    fn check_interval(&self, name: &str, written_us: Option<i64>) -> Result<()> {
        let interval = self.access().options.password_interval;
        // The server's timestamps may be a little ahead of its clock.
        let passed_us = written_us.map(|written_us| self.database().wall_us().abs_diff(written_us));
        match passed_us {
            Some(passed_us) if u128::from(passed_us) < interval.as_micros() => {
                let ms = interval.as_millis();
                Err(CqlError::Overloaded(format!(
                    "Password for role {name} can only be changed every {ms}ms."
                )))
            }
            _ => Ok(()),
        }
    }

    fn set_password(&self, name: &str, options: &RoleOptions, changes: &mut Changes) -> Result<()> {
        let hash = match (&options.password, &options.hashed_password) {
            (Some(password), _) => passwords::hash(&password.0, self.database())
                .ok_or_else(|| CqlError::Invalid(passwords::NO_HASH.to_owned()))?,
            (None, Some(hash)) => hash.0.to_string(),
            (None, None) => return Ok(()),
        };
        changes.add_texts("UPDATE system_auth.roles SET salted_hash = ? WHERE role = ?", &[&hash, name]);
        Ok(())
    }

    fn drop_role(
        &self,
        asker: &Asker<'_>,
        (name, if_exists): (&str, bool),
        changes: &mut Changes,
    ) -> Result<()> {
        let resource = Resource::Role(name.into());
        self.check_sufficient(asker, Permission::Drop, &resource)?;
        let set = self.role_set_now(name, true)?;
        if set.is_super() && !asker.is_super {
            return unauthorized("Only superusers can drop a role with superuser status");
        }
        self.check_not_anonymous(asker)?;
        let Some(role) = set.roles.first() else {
            return if if_exists { Ok(()) } else { invalid(format!("{name} doesn't exist")) };
        };
        if asker.identity.role.as_deref() == Some(name) {
            return invalid("Cannot DROP primary role for current login");
        }
        let members =
            self.ask("SELECT member FROM system_auth.role_members WHERE role = ?", &[name], true)?;
        for member in members.iter().filter_map(|row| row.text(0)) {
            changes.add(REMOVE_MEMBERSHIP, &[&text_set([name]), member.as_bytes()]);
        }
        for granted in &role.member_of {
            changes.add_texts(REMOVE_MEMBER, &[granted, name]);
        }
        for (identity, _) in self.identities()?.iter().filter(|(_, role)| **role == *name) {
            changes.add_texts(REMOVE_IDENTITY, &[identity]);
        }
        self.revoke_all_of(name, changes)?;
        self.revoke_all_on(&resource, changes)?;
        changes.add_texts("DELETE FROM system_auth.role_members WHERE role = ?", &[name]);
        changes.add_texts("DELETE FROM system_auth.network_permissions WHERE role = ?", &[&resource.name()]);
        changes.add_texts("DELETE FROM system_auth.cidr_permissions WHERE role = ?", &[name]);
        changes.add_texts("DELETE FROM system_auth.roles WHERE role = ?", &[name]);
        Ok(())
    }

    /// What GRANT and REVOKE of a role have in common.
    fn check_grant_of_role(&self, asker: &Asker<'_>, (role, grantee): (&str, &str)) -> Result<()> {
        self.check_sufficient(asker, Permission::Authorize, &Resource::Role(role.into()))?;
        self.check_not_anonymous(asker)?;
        for name in [role, grantee] {
            if !self.exists(name)? {
                return invalid(format!("{name} doesn't exist"));
            }
        }
        Ok(())
    }

    fn grant_role(&self, (role, grantee): (&str, &str), changes: &mut Changes) -> Result<()> {
        if self.role_set_now(grantee, true)?.contains(role) {
            return invalid(format!("{grantee} is a member of {role}"));
        }
        if self.role_set_now(role, true)?.contains(grantee) {
            return invalid(format!("{role} is a member of {grantee}"));
        }
        changes.add(ADD_MEMBERSHIP, &[&text_set([role]), grantee.as_bytes()]);
        changes.add_texts(ADD_MEMBER, &[role, grantee]);
        Ok(())
    }

    fn revoke_role(&self, (role, grantee): (&str, &str), changes: &mut Changes) -> Result<()> {
        let row = self.role(grantee, true)?;
        if !row.is_some_and(|row| row.member_of.iter().any(|name| **name == *role)) {
            return invalid(format!("{grantee} is not a member of {role}"));
        }
        changes.add(REMOVE_MEMBERSHIP, &[&text_set([role]), grantee.as_bytes()]);
        changes.add_texts(REMOVE_MEMBER, &[role, grantee]);
        Ok(())
    }

    /// All identities with their roles.
    fn identities(&self) -> Result<Vec<(Box<str>, Box<str>)>> {
        let rows = self.ask("SELECT identity, role FROM system_auth.identity_to_role", &[], true)?;
        let text = |text: Option<&str>| Box::<str>::from(text.unwrap_or_default());
        Ok(rows.iter().map(|row| (text(row.text(0)), text(row.text(1)))).collect())
    }

    fn add_identity(
        &self,
        asker: &Asker<'_>,
        (identity, role, if_not_exists): (&str, &str, bool),
        changes: &mut Changes,
    ) -> Result<()> {
        self.check_sufficient(asker, Permission::Create, &Resource::AllRoles)?;
        let row = self.role(role, true)?;
        if row.as_ref().is_some_and(|row| row.is_superuser) && !asker.is_super {
            return unauthorized("Only superusers can bind identities to a role with superuser status");
        }
        self.check_not_anonymous(asker)?;
        if row.is_none() {
            return invalid(format!("Can not add identity for non-existent role '{role}'"));
        }
        if self.identities()?.iter().any(|(known, _)| **known == *identity) {
            return if if_not_exists { Ok(()) } else { invalid(format!("{identity} already exists")) };
        }
        changes.add_texts(
            "INSERT INTO system_auth.identity_to_role (identity, role) VALUES (?, ?)",
            &[identity, role],
        );
        Ok(())
    }

    fn drop_identity(
        &self,
        asker: &Asker<'_>,
        (identity, if_exists): (&str, bool),
        changes: &mut Changes,
    ) -> Result<()> {
        let identities = self.identities()?;
        let role = identities.iter().find(|(known, _)| **known == *identity).map(|(_, role)| role);
        let resource = role.map_or(Resource::AllRoles, |role| Resource::Role(role.clone()));
        self.check_sufficient(asker, Permission::Drop, &resource)?;
        if let Some(role) = role
            && !asker.is_super
            && self.role_set_now(role, true)?.is_super()
        {
            return unauthorized(
                "Only superusers can remove identity bindings from a role with superuser status",
            );
        }
        self.check_not_anonymous(asker)?;
        match role {
            Some(_) => changes.add_texts(REMOVE_IDENTITY, &[identity]),
            None if if_exists => {}
            None => return invalid(format!("identity '{identity}' doesn't exist")),
        }
        Ok(())
    }

    /// Whether a change left nothing to wait for: the answer of a listing.
    pub(super) fn nothing_listed() -> Answer {
        Outcome::Done(Ticket::ready()).into()
    }
}

/// The value of `cidr_permissions.cidr_groups` or `network_permissions.dcs`; empty for all.
fn limit_set(limits: Option<&Limits>) -> Vec<u8> {
    match limits {
        Some(Limits::Only(names)) => text_set(names.iter().map(|name| &**name)),
        Some(Limits::All) | None => text_set([]),
    }
}
