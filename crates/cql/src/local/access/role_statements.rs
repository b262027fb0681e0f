//! Runs statements about roles and identities: who may, what is valid, what changes.
//!
//! Each statement is checked as Cassandra checks it: first the permission, so that a role without it does not learn
//! what exists, then the statement, then its effect. A statement changes all its tables in one write.
//!
//! Source: `CreateRoleStatement` and its siblings, `CassandraRoleManager`.

use super::authorize::ANONYMOUS;
use super::grants::{Permissions, grant};
use super::left_of_roles::rows_of_role;
use super::options::NetworkAuthorizer;
use super::passwords;
use super::role_limits::{LIMITS_OF, set_all, set_limits};
use super::roles::RoleSet;
use super::store::{Changes, text_set};
use crate::backend::{Answer, Identity, Outcome, Request, RowsOut};
use crate::error::{CqlError, Result};
use crate::local::{LocalBackend, may_block};
use crate::plan::access::{AccessStatement, Limits, Need, Resource, RoleChange, RoleOptions, Wanted};
use crate::request::RoleLimits;
use crate::syntax::ast::Permission;
use helenus_engine::Ticket;
use std::sync::Arc;

const ADD_MEMBERSHIP: &str = "UPDATE system_auth.roles SET member_of = member_of + ? WHERE role = ?";
pub(super) const REMOVE_MEMBERSHIP: &str =
    "UPDATE system_auth.roles SET member_of = member_of - ? WHERE role = ?";
const ADD_MEMBER: &str = "INSERT INTO system_auth.role_members (role, member) VALUES (?, ?)";
const REMOVE_MEMBER: &str = "DELETE FROM system_auth.role_members WHERE role = ? AND member = ?";
pub(super) const REMOVE_IDENTITY: &str = "DELETE FROM system_auth.identity_to_role WHERE identity = ?";
const SET_DATACENTERS: &str = "INSERT INTO system_auth.network_permissions (role, dcs) VALUES (?, ?)";
pub(super) const SET_CIDRS: &str =
    "INSERT INTO system_auth.cidr_permissions (role, cidr_groups) VALUES (?, ?)";

/// The most roles of a role, with itself and those that it has through others. Each is read, with its grants, when what a role may
/// do is read again (`permissions_validity`), which holds up the statement that asks. Cassandra has no bound.
const ROLES_OF_A_ROLE_MAX: usize = 1000;

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
    /// Runs a statement. `needs` are checked once more when no other statement changes roles: while this one waited, the session may
    /// have ended with its role, whose name another role may have by now.
    ///
    /// # Errors
    /// The identity may not, or the statement is not valid, in Cassandra's words.
    pub(crate) fn run_access(
        &self,
        (statement, needs): (&AccessStatement, &[Need]),
        request: &Request<'_>,
        out: &mut dyn RowsOut,
    ) -> Result<Answer> {
        may_block(request)?;
        let hash = self.hash_for(statement, request.identity)?;
        let _changing = self.access().changing();
        self.authorize(request.identity, needs, true)?;
        let asker = self.asker(request.identity)?;
        let mut changes = Changes::default();
        let mut warnings = Vec::new();
        match statement {
            AccessStatement::CreateRole(change) => {
                self.create_role(&asker, (change, hash.as_deref()), &mut changes)?;
                warnings.extend(self.warning_of_hash(&change.options));
            }
            AccessStatement::AlterRole(change) => {
                self.alter_role(&asker, (change, hash.as_deref()), &mut changes)?;
                warnings.extend(self.warning_of_hash(&change.options));
            }
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
        self.remove_left(&changes)?;
        let ticket = self.change(&changes, None)?;
        for (role, limits) in &changes.limits {
            self.access().uses.set(role, limits);
        }
        self.access().forget();
        // Behind the caches: a login that takes its place after this finds nothing of before in them.
        for role in &changes.ended {
            self.access().uses.end(role);
        }
        Ok(Answer { outcome: Outcome::Done(ticket), warnings })
    }

    /// The hash for a statement that sets a password. It takes from tens of milliseconds to a second to make, so it is made before other
    /// changes of roles and of the schema are held up; but for those alone who may set it, so the statement is first tried without
    /// effect.
    ///
    /// # Errors
    /// Those of the statement.
    fn hash_for(&self, statement: &AccessStatement, identity: &Identity) -> Result<Option<String>> {
        let (AccessStatement::CreateRole(change) | AccessStatement::AlterRole(change)) = statement else {
            return Ok(None);
        };
        let Some(password) = &change.options.password else { return Ok(None) };
        let (asker, mut tried) = (self.asker(identity)?, Changes::default());
        match statement {
            AccessStatement::CreateRole(_) => self.create_role(&asker, (change, None), &mut tried)?,
            _ => self.alter_role(&asker, (change, None), &mut tried)?,
        }
        self.hash_of(&password.0).map(Some)
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
        match self.has(asker.identity, &Wanted::granted(permission, resource.clone()), true)? {
            true => Ok(()),
            false => unauthorized(format!(
                "User {} does not have sufficient privileges to perform the requested operation",
                asker.name()
            )),
        }
    }

    /// Refuses whoever is no superuser a change by which a role that is one, or inherits from one, could be taken over, whatever
    /// was granted and whatever the authorizer. Cassandra has this rule for DROP ROLE and looks at the role alone for ADD
    /// IDENTITY; PostgreSQL 16 has it for CREATEROLE.
    fn check_not_above(&self, asker: &Asker<'_>, role: &str, refusal: &str) -> Result<()> {
        match asker.is_super || !self.role_set_now(role, true)?.is_super() {
            true => Ok(()),
            false => unauthorized(refusal),
        }
    }

    fn exists(&self, role: &str) -> Result<bool> {
        Ok(self.role(role, true)?.is_some())
    }

    fn create_role(
        &self,
        asker: &Asker<'_>,
        (change, hash): (&RoleChange, Option<&str>),
        changes: &mut Changes,
    ) -> Result<()> {
        let (name, options) = (&*change.name, &change.options);
        self.check_sufficient(asker, Permission::Create, &Resource::AllRoles)?;
        if options.superuser == Some(true) && !asker.is_super {
            return unauthorized("Only superusers can create a role with superuser status");
        }
        self.check_options(asker, options)?;
        if name.is_empty() {
            return invalid("Role name can't be an empty string");
        }
        if name.starts_with(LIMITS_OF) {
            return invalid(format!("names that begin with {LIMITS_OF} are the server's own; give another"));
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
        self.note_left(name, changes)?;
        let flag = |option: Option<bool>| [u8::from(option.unwrap_or(false))];
        changes.add(
            "INSERT INTO system_auth.roles (role, is_superuser, can_login) VALUES (?, ?, ?)",
            &[name.as_bytes(), &flag(options.superuser), &flag(options.login)],
        );
        set_password(name, (options, hash), changes);
        set_limits((name, RoleLimits::default()), options, changes)?;
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

    fn alter_role(
        &self,
        asker: &Asker<'_>,
        (change, hash): (&RoleChange, Option<&str>),
        changes: &mut Changes,
    ) -> Result<()> {
        let (name, options) = (&*change.name, &change.options);
        self.may_alter(asker, name, options)?;
        self.check_options(asker, options)?;
        let is_empty = options.password.is_none()
            && options.hashed_password.is_none()
            && options.superuser.is_none()
            && options.login.is_none()
            && options.datacenters.is_none()
            && options.cidrs.is_none()
            && options.options.is_none();
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
        set_password(name, (options, hash), changes);
        if options.options.is_some() {
            set_limits((name, self.limits_of(name)?), options, changes)?;
        }
        if let Some(superuser) = options.superuser {
            let statement = "UPDATE system_auth.roles SET is_superuser = ? WHERE role = ?";
            changes.add(statement, &[&[u8::from(superuser)], name.as_bytes()]);
        }
        if let Some(login) = options.login {
            let statement = "UPDATE system_auth.roles SET can_login = ? WHERE role = ?";
            changes.add(statement, &[&[u8::from(login)], name.as_bytes()]);
            changes.ended.extend((!login).then(|| name.into()));
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
            self.check_sufficient(asker, Permission::Alter, &Resource::Role(name.into()))?;
            return self.check_not_above(
                asker,
                name,
                "Only superusers can alter a role with superuser status",
            );
        }
        match (options.login, options.options.is_some()) {
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
        if let Some(pairs) = &options.options {
            // Options that look like none of ours get Cassandra's words.
            let is_ours = |(name, _): &(Box<str>, Box<str>)| name.contains('_');
            if !self.access().has_logins() || !pairs.iter().any(is_ours) {
                return unsupported("OPTIONS");
            }
            set_all(&mut RoleLimits::default(), pairs)?;
        }
        if options.password.is_some() && !self.access().takes_passwords() {
            return unsupported("PASSWORD");
        }
        let Some(hash) = &options.hashed_password else { return Ok(()) };
        if !self.access().takes_passwords() {
            return unsupported("HASHED_PASSWORD");
        }
        // Cassandra takes 4 to 30 of everybody. A role could make its own logins costly for all, or its hash cheap to guess.
        let (least, most) = (passwords::COST_OF_ROLES_MIN, passwords::COST_OF_ROLES_MAX);
        match passwords::cost(&hash.0) {
            None => invalid("Invalid hashed password value. Please use jBcrypt."),
            Some(cost) if cost > most && !asker.is_super => unauthorized(format!(
                "Only superusers may set a hash of cost {cost}, because each login of its role occupies the server for long; \
                 make one of cost {most} or less"
            )),
            Some(cost) if cost < least && !asker.is_super => unauthorized(format!(
                "Only superusers may set a hash of cost {cost}, because a stolen one is guessed fast; make one of cost {least} or more"
            )),
            Some(_) => Ok(()),
        }
    }

    /// The warning for a superuser that sets a hash of low cost, as a copy of roles from elsewhere does.
    fn warning_of_hash(&self, options: &RoleOptions) -> Option<String> {
        let cost = passwords::cost(&options.hashed_password.as_ref()?.0)?;
        (cost < passwords::COST_OF_ROLES_MIN).then(|| {
            format!(
                "The hash has cost {cost}: a stolen one is guessed fast. The next login of the role stores one of cost {}",
                self.access().options.password_cost
            )
        })
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

    fn drop_role(
        &self,
        asker: &Asker<'_>,
        (name, if_exists): (&str, bool),
        changes: &mut Changes,
    ) -> Result<()> {
        let resource = Resource::Role(name.into());
        self.check_sufficient(asker, Permission::Drop, &resource)?;
        self.check_not_above(asker, name, "Only superusers can drop a role with superuser status")?;
        let set = self.role_set_now(name, true)?;
        self.check_not_anonymous(asker)?;
        let Some(role) = set.roles.first() else {
            return if if_exists { Ok(()) } else { invalid(format!("{name} doesn't exist")) };
        };
        if asker.identity.role.as_deref() == Some(name) {
            return invalid("Cannot DROP primary role for current login");
        }
        self.remove_members(name, changes)?;
        for granted in &role.member_of {
            changes.add_texts(REMOVE_MEMBER, &[granted, name]);
        }
        for (identity, _) in self.identities()?.iter().filter(|(_, role)| **role == *name) {
            changes.add_texts(REMOVE_IDENTITY, &[identity]);
        }
        self.revoke_all_of(name, changes)?;
        self.revoke_all_on(&resource, changes)?;
        for (statement, key) in rows_of_role(name) {
            changes.add_texts(statement, &[&key]);
        }
        changes.ended.push(name.into());
        changes.add_texts("DELETE FROM system_auth.roles WHERE role = ?", &[name]);
        Ok(())
    }

    /// What GRANT and REVOKE of a role have in common.
    fn check_grant_of_role(&self, asker: &Asker<'_>, (role, grantee): (&str, &str)) -> Result<()> {
        self.check_sufficient(asker, Permission::Authorize, &Resource::Role(role.into()))?;
        let refusal = "Only superusers can grant or revoke a role with superuser status";
        self.check_not_above(asker, role, refusal)?;
        let refusal = "Only superusers can change the roles of a role with superuser status";
        self.check_not_above(asker, grantee, refusal)?;
        self.check_not_anonymous(asker)?;
        for name in [role, grantee] {
            if !self.exists(name)? {
                return invalid(format!("{name} doesn't exist"));
            }
        }
        Ok(())
    }

    fn grant_role(&self, (role, grantee): (&str, &str), changes: &mut Changes) -> Result<()> {
        let (of_grantee, of_role) = (self.role_set_now(grantee, true)?, self.role_set_now(role, true)?);
        if of_grantee.contains(role) {
            return invalid(format!("{grantee} is a member of {role}"));
        }
        if of_role.contains(grantee) {
            return invalid(format!("{role} is a member of {grantee}"));
        }
        if of_grantee.roles.len() + of_role.roles.len() > ROLES_OF_A_ROLE_MAX {
            return invalid(format!(
                "{grantee} would have more than {ROLES_OF_A_ROLE_MAX} roles, itself and those granted to its roles among them: all of \
                 them are read when its permissions are checked"
            ));
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
    pub(super) fn identities(&self) -> Result<Vec<(Box<str>, Box<str>)>> {
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
        self.check_not_above(
            asker,
            role,
            "Only superusers can bind identities to a role with superuser status",
        )?;
        self.check_not_anonymous(asker)?;
        if row.is_none() {
            return invalid(format!("Can not add identity for non-existent role '{role}'"));
        }
        // Cassandra does not ask for this: who may make roles logs in there as any other by a certificate.
        self.check_sufficient(asker, Permission::Alter, &Resource::Role(role.into()))?;
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
        if let Some(role) = role {
            let refusal = "Only superusers can remove identity bindings from a role with superuser status";
            self.check_not_above(asker, role, refusal)?;
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

/// Adds a new password to `changes`. `hash`: that of the password which is given as it is.
fn set_password(name: &str, (options, hash): (&RoleOptions, Option<&str>), changes: &mut Changes) {
    let given = options.hashed_password.as_ref().map(|hash| &*hash.0);
    if let Some(hash) = hash.or(given) {
        changes.add_texts("UPDATE system_auth.roles SET salted_hash = ? WHERE role = ?", &[hash, name]);
    }
}

/// The value of `cidr_permissions.cidr_groups` or `network_permissions.dcs`; empty for all.
fn limit_set(limits: Option<&Limits>) -> Vec<u8> {
    match limits {
        Some(Limits::Only(names)) => text_set(names.iter().map(|name| &**name)),
        Some(Limits::All) | None => text_set([]),
    }
}
