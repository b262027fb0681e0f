//! Deletes what an earlier role of a name has left in the tables of `system_auth`, before a role is made with that name.
//!
//! DROP ROLE leaves nothing. But a superuser may delete the row of a role, and a Cassandra that runs on the same files drops a role
//! without the row of its limits here. The new role would have the rights, the members, the limits and the certificates of the old one,
//! and a session of the old one would go on as the new one.

use super::grants::Grant;
use super::role_limits::LIMITS_OF;
use super::role_statements::{REMOVE_IDENTITY, REMOVE_MEMBERSHIP};
use super::store::{Changes, text_set};
use crate::error::Result;
use crate::local::LocalBackend;
use crate::plan::access::Resource;

/// The rows that a role has in tables besides `roles` and those of grants: a statement that deletes each, and its key.
pub(super) fn rows_of_role(name: &str) -> [(&'static str, String); 4] {
    [
        ("DELETE FROM system_auth.role_members WHERE role = ?", name.to_owned()),
        ("DELETE FROM system_auth.network_permissions WHERE role = ?", Resource::Role(name.into()).name()),
        ("DELETE FROM system_auth.cidr_permissions WHERE role = ?", name.to_owned()),
        ("DELETE FROM system_auth.cidr_permissions WHERE role = ?", format!("{LIMITS_OF}{name}")),
    ]
}

/// A query that finds a row for each statement of `rows_of_role`.
const FIND: [&str; 4] = [
    "SELECT role FROM system_auth.role_members WHERE role = ? LIMIT 1",
    "SELECT role FROM system_auth.network_permissions WHERE role = ?",
    "SELECT role FROM system_auth.cidr_permissions WHERE role = ?",
    "SELECT role FROM system_auth.cidr_permissions WHERE role = ?",
];

impl LocalBackend {
    /// Adds the deletion of what is left of a role that does not exist to `changes`, and the end of its sessions. `changing` is held,
    /// or no client is there yet.
    ///
    /// # Errors
    /// Those of a read.
    pub(super) fn note_left(&self, name: &str, changes: &mut Changes) -> Result<()> {
        let mut left = Changes::default();
        self.remove_members(name, &mut left)?;
        // A deletion that deletes nothing would stay as a tombstone for each role that was made.
        let grants: Vec<Grant> = self.grants_to(Some(name), true)?;
        if !grants.is_empty() {
            self.revoke_all_of(name, &mut left)?;
        }
        self.revoke_all_on(&Resource::Role(name.into()), &mut left)?;
        // CREATE ROLE refuses a name that has some, as in Cassandra; a start and `passwd` make the role all the same.
        for (identity, _) in self.identities()?.iter().filter(|(_, role)| **role == *name) {
            left.add_texts(REMOVE_IDENTITY, &[identity]);
        }
        for ((statement, key), find) in rows_of_role(name).into_iter().zip(FIND) {
            if !self.ask(find, &[&key], true)?.is_empty() {
                left.add_texts(statement, &[&key]);
            }
        }
        changes.before = (!left.is_empty()).then(|| Box::new(left));
        changes.ended.push(name.into());
        Ok(())
    }

    /// Makes the deletions that come before `changes`.
    ///
    /// # Errors
    /// Those of a write. Nothing may be made then.
    pub(super) fn remove_left(&self, changes: &Changes) -> Result<()> {
        match &changes.before {
            Some(before) => self.change_and_wait(before, None),
            None => Ok(()),
        }
    }

    /// Adds the removal of all members of a role to `changes`.
    pub(super) fn remove_members(&self, name: &str, changes: &mut Changes) -> Result<()> {
        let members =
            self.ask("SELECT member FROM system_auth.role_members WHERE role = ?", &[name], true)?;
        for member in members.iter().filter_map(|row| row.text(0)) {
            changes.add(REMOVE_MEMBERSHIP, &[&text_set([name]), member.as_bytes()]);
        }
        Ok(())
    }
}
