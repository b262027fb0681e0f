//! Checks that a role has what a statement needs, each time before one runs. The needs are named in `plan::access`.
//!
//! Source: `ClientState.ensurePermission`.

use super::options::NetworkAuthorizer;
use super::state::now_ns;
use crate::backend::{Identity, Prepared};
use crate::error::{CqlError, Result};
use crate::local::LocalBackend;
use crate::plan::access::{Need, Resource, Wanted, has_masks};
use crate::syntax::ast::Permission;
use helenus_model::schema::Table;

/// Cassandra's message to anonymous users (`ClientState.ensureNotAnonymous`).
pub(super) const ANONYMOUS: &str = "You have to be logged in and not anonymous to perform this request";
/// Cassandra's message to clients that have not logged in.
const NOT_LOGGED_IN: &str = "You have not logged in";

/// How a role sees the values of masked columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sight {
    /// As they are.
    Plain,
    /// Masked.
    Masked,
}

/// The refusal of a permission, in Cassandra's words.
pub(super) fn refusal(user: &str, wanted: &Wanted) -> String {
    let Wanted { permission, resource, .. } = wanted;
    format!("User {user} has no {} permission on {resource} or any of its parents", permission.as_str())
}

impl LocalBackend {
    /// Checks that an identity has what a statement needs, and returns how it sees masked columns.
    ///
    /// # Errors
    /// It has not, in Cassandra's words; `WouldBlock` if the check needs the disk and may not wait.
    pub(crate) fn authorize(&self, identity: &Identity, needs: &[Need], may_block: bool) -> Result<Sight> {
        let mut sight = Sight::Plain;
        let Some((role, is_super)) = self.session_role(identity, may_block)? else { return Ok(sight) };
        for need in needs {
            match need {
                Need::Superuser(refusal) => {
                    if !is_super {
                        return Err(CqlError::Unauthorized((*refusal).to_owned()));
                    }
                }
                Need::Unmasked(read) => {
                    if self.role_has((role, is_super), &read.unmask, may_block)? {
                        continue;
                    }
                    if !read.restricted.is_empty()
                        && !self.role_has((role, is_super), &read.select_masked, may_block)?
                    {
                        return Err(CqlError::Unauthorized(format!(
                            "User {role} has no UNMASK nor SELECT_MASKED permission on table {}, cannot query masked columns \
                             [{}]",
                            read.unmask.resource.name().trim_start_matches("data/").replace('/', "."),
                            read.restricted.join(", ")
                        )));
                    }
                    sight = Sight::Masked;
                }
                Need::Permission(wanted) => {
                    if !self.role_has((role, is_super), wanted, may_block)? {
                        return Err(CqlError::Unauthorized(refusal(role, wanted)));
                    }
                }
            }
        }
        Ok(sight)
    }

    /// The same for a statement that may run often: what was allowed a moment ago is not looked up again (`request::permits`).
    ///
    /// # Errors
    /// Those of `authorize`.
    pub(in crate::local) fn authorize_statement(
        &self,
        identity: &Identity,
        statement: &Prepared,
        may_block: bool,
    ) -> Result<Sight> {
        let access = self.access();
        if !access.has_logins() || access.has_limits() {
            return self.authorize(identity, &statement.needs, may_block);
        }
        let permit = identity.permit(access.changes(), now_ns(self.database()), &access.permit_numbers);
        if permit.is_some_and(|permit| statement.permitted.is(permit)) {
            return Ok(Sight::Plain);
        }
        let sight = self.authorize(identity, &statement.needs, may_block)?;
        if let (Some(permit), Sight::Plain) = (permit, sight) {
            statement.permitted.note(permit);
        }
        Ok(sight)
    }

    /// The role of a session, and whether it is a superuser; `None` for one that may do everything: the server's own, or any
    /// where nobody logs in.
    ///
    /// # Errors
    /// There was no login. `SessionEnded`: the role may not log in any more; Cassandra lets its sessions go on. The role may not
    /// use the server from where its client is. `WouldBlock`.
    fn session_role<'i>(&self, identity: &'i Identity, may_block: bool) -> Result<Option<(&'i str, bool)>> {
        let Some(role) = self.check_logged_in(identity)? else { return Ok(None) };
        let roles = self.role_set(role, may_block)?;
        // A role that was made since under the same name is another one.
        let has_ended = identity.is_of_ended_role();
        if has_ended || !roles.can_login() {
            let why = match (roles.roles.is_empty(), has_ended && roles.can_login()) {
                (true, _) => "was dropped",
                (false, true) => "was dropped or locked meanwhile",
                (false, false) => "may not log in any more",
            };
            return Err(CqlError::SessionEnded(format!(
                "This session has ended because its role {role} {why}; connect again as another role"
            )));
        }
        if self.access().has_limits() {
            self.check_reach(identity, role, may_block)?;
        }
        Ok(Some((role, roles.is_super())))
    }

    /// The role of an identity; `None` if it may do everything.
    ///
    /// # Errors
    /// There was no login.
    pub(crate) fn check_logged_in<'i>(&self, identity: &'i Identity) -> Result<Option<&'i str>> {
        if !self.access().has_logins() || identity.is_server() {
            return Ok(None);
        }
        match identity.role.as_deref() {
            Some(role) => Ok(Some(role)),
            None => Err(CqlError::Unauthorized(NOT_LOGGED_IN.to_owned())),
        }
    }

    /// Whether permissions are checked (`authorizer`).
    pub fn checks_permissions(&self) -> bool {
        self.access().has_permissions()
    }

    /// Whether roles may be limited to data centers.
    pub fn limits_datacenters(&self) -> bool {
        self.access().options.network == NetworkAuthorizer::Cassandra
    }

    /// Checks that an identity may read changes of a table, which is as it was when they were made. A table is its id, not its name:
    /// for the changes of one that was dropped, which another may have replaced, the rights to its name say nothing, and those to
    /// all keyspaces are asked for. Masks count that the table had then or has now.
    ///
    /// # Errors
    /// As a statement that needs the permissions.
    pub fn check_changes(&self, identity: &Identity, table: &Table) -> Result<()> {
        let schema = self.database().schema();
        let now = schema.table(&table.keyspace, &table.name).filter(|now| now.id == table.id);
        let resource = match now {
            Some(_) => Resource::table(&table.keyspace, &table.name),
            None => Resource::AllKeyspaces,
        };
        let is_masked = now.is_none_or(|now| !now.masks.is_empty()) || !table.masks.is_empty();
        let wanted = [Some(Permission::Select), is_masked.then_some(Permission::Unmask)];
        let needs =
            wanted.into_iter().flatten().filter_map(|permission| Wanted::new(permission, resource.clone()));
        self.authorize(identity, &needs.map(Need::Permission).collect::<Vec<_>>(), true).map(|_| ())
    }

    /// Checks permissions on a table for a caller without statements, such as a call of the RPC interface. An empty
    /// list checks the login alone.
    ///
    /// # Errors
    /// As a statement that needs them.
    pub fn check_permissions(
        &self,
        identity: &Identity,
        permissions: &[Permission],
        (keyspace, table): (&str, &str),
        may_block: bool,
    ) -> Result<()> {
        if !self.access().has_logins() {
            return Ok(());
        }
        let is_masked = permissions.contains(&Permission::Select)
            && has_masks(&self.database().schema(), keyspace, table);
        let wanted = permissions.iter().copied().chain(is_masked.then_some(Permission::Unmask));
        let needs = wanted.filter_map(|permission| {
            Wanted::new(permission, Resource::table(keyspace, table)).map(Need::Permission)
        });
        self.authorize(identity, &needs.collect::<Vec<_>>(), may_block).map(|_| ())
    }
}
