//! Checks that a role has what a statement needs, each time before one runs. The needs are named in `plan::access`.
//!
//! Source: `ClientState.ensurePermission`.

use crate::backend::Identity;
use crate::error::{CqlError, Result};
use crate::local::LocalBackend;
use crate::plan::access::{Need, Resource, Wanted, has_masks};
use crate::syntax::ast::Permission;

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

impl LocalBackend {
    /// Checks that an identity has what a statement needs, and returns how it sees masked columns.
    ///
    /// # Errors
    /// It has not, in Cassandra's words; `WouldBlock` if the check needs the disk and may not wait.
    pub(crate) fn authorize(&self, identity: &Identity, needs: &[Need], may_block: bool) -> Result<Sight> {
        let mut sight = Sight::Plain;
        if !self.access().has_logins() || identity.is_server() {
            return Ok(sight);
        }
        let Some(role) = identity.role.as_deref() else {
            return Err(CqlError::Unauthorized(NOT_LOGGED_IN.to_owned()));
        };
        if self.access().has_limits() {
            self.check_reach(identity, role, may_block)?;
        }
        for need in needs {
            match need {
                Need::Superuser(refusal) => {
                    if !self.is_super(identity, may_block)? {
                        return Err(CqlError::Unauthorized((*refusal).to_owned()));
                    }
                }
                Need::Unmasked(read) => {
                    if self.is_granted(identity, Permission::Unmask, &read.unmask.names, may_block)? {
                        continue;
                    }
                    let names = &read.select_masked.names;
                    if !read.restricted.is_empty()
                        && !self.is_granted(identity, Permission::SelectMasked, names, may_block)?
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
                Need::Permission(Wanted { permission, resource, names }) => {
                    if !self.is_granted(identity, *permission, names, may_block)? {
                        return Err(CqlError::Unauthorized(format!(
                            "User {role} has no {} permission on {resource} or any of its parents",
                            permission.as_str()
                        )));
                    }
                }
            }
        }
        Ok(sight)
    }

    /// Whether permissions are checked (`authorizer`).
    pub fn checks_permissions(&self) -> bool {
        self.access().has_permissions()
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
