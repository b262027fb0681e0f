//! The limits of a role in `system_auth`: where they stand, and how statements read and change them. Their names and values are in
//! `request::role_limits`, what counts them in `request::role_use`.

use super::role_statements::SET_CIDRS;
use super::store::{Changes, text_set};
use crate::error::{CqlError, Result};
use crate::local::LocalBackend;
use crate::plan::access::RoleOptions;
use crate::request::RoleLimits;

/// The key of the row with a role's limits begins so, before its name.
///
/// The tables of `system_auth` are Cassandra's alone, so that a node of Cassandra starts on them, and none of them has a column for the
/// options of a role. In `cidr_permissions`, of all its tables, a row of a role that does not exist means nothing to Cassandra
/// (`CIDRPermissionsManager` reads the row of one role, or keeps it by its name).
pub const LIMITS_OF: &str = "helenus.limits/";

impl LocalBackend {
    /// The limits of a role, as the table says now. What is no limit there, as of a later version or of a statement on the table
    /// itself, limits nothing: it must not keep the role out, and the next change of its limits removes it.
    ///
    /// # Errors
    /// Those of a read.
    pub(super) fn limits_of(&self, name: &str) -> Result<RoleLimits> {
        let query = "SELECT cidr_groups FROM system_auth.cidr_permissions WHERE role = ?";
        let rows = self.ask(query, &[&format!("{LIMITS_OF}{name}")], true)?;
        let mut limits = RoleLimits::default();
        for text in rows.iter().flat_map(|row| row.texts(0)) {
            let (option, value) = text.split_once('=').unwrap_or((&text, ""));
            if let Err(problem) = limits.set(option, value) {
                self.database().note_ignored(&format!(
                    "role {name} has no limit {text}, which stands in system_auth.cidr_permissions: {problem}; ALTER ROLE ... WITH \
                     OPTIONS removes it"
                ));
            }
        }
        Ok(limits)
    }
}

/// Sets those limits that are named; the others stay as they are in `limits`.
pub(super) fn set_limits(
    (name, mut limits): (&str, RoleLimits),
    options: &RoleOptions,
    changes: &mut Changes,
) -> Result<()> {
    let Some(pairs) = &options.options else { return Ok(()) };
    set_all(&mut limits, pairs)?;
    let texts: Vec<String> =
        limits.texts().iter().map(|(option, value)| format!("{option}={value}")).collect();
    let key = format!("{LIMITS_OF}{name}");
    changes.add(SET_CIDRS, &[key.as_bytes(), &text_set(texts.iter().map(String::as_str))]);
    changes.limits.push((name.into(), limits));
    Ok(())
}

/// Sets limits by their texts.
pub(super) fn set_all(limits: &mut RoleLimits, pairs: &[(Box<str>, Box<str>)]) -> Result<()> {
    pairs.iter().try_for_each(|(name, value)| limits.set(name, value).map_err(CqlError::Invalid))
}
