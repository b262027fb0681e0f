//! A role with what it may do, as the tables of `system_auth` of either side have it.
//!
//! Source: `CassandraRoleManager`, `CassandraAuthorizer`, `CassandraNetworkAuthorizer`.

use helenus_model::types::Elements;
use std::collections::{BTreeMap, BTreeSet};

/// The queries that read all roles: their rows are the arguments of [`roles`].
pub(super) const QUERIES: [&str; 3] = [
    "SELECT role, can_login, is_superuser, salted_hash, member_of FROM system_auth.roles",
    "SELECT role, resource, permissions FROM system_auth.role_permissions",
    "SELECT role, dcs FROM system_auth.network_permissions",
];

/// The cells of a row.
pub(super) type Cells = Vec<Option<Vec<u8>>>;

/// All roles of a side by name.
pub(crate) type Roles = BTreeMap<String, Role>;

/// A role. It has no `Debug`, because of the hash.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Role {
    pub(super) can_login: bool,
    pub(super) is_superuser: bool,
    /// The hash of its password.
    pub(super) hash: Option<String>,
    /// The roles that are granted to it directly.
    pub(super) member_of: BTreeSet<String>,
    /// Permissions by the name of their resource, such as `data/ks/table`.
    pub(super) permissions: BTreeMap<String, BTreeSet<String>>,
    /// The data centers that it is limited to; empty for all.
    pub(super) datacenters: BTreeSet<String>,
}

/// Puts the rows of the three queries together.
pub(super) fn roles([of_roles, of_permissions, of_datacenters]: [Vec<Cells>; 3]) -> Roles {
    let mut roles: Roles = of_roles.iter().map(|row| (text(row, 0), of_row(row))).collect();
    for row in &of_permissions {
        if let Some(role) = roles.get_mut(&text(row, 0)) {
            role.permissions.insert(text(row, 1), set(row, 2));
        }
    }
    for row in &of_datacenters {
        if let Some(role) = roles.get_mut(&resource_role(row)) {
            role.datacenters = set(row, 1);
        }
    }
    roles
}

fn of_row(row: &Cells) -> Role {
    Role {
        can_login: is_true(row, 1),
        is_superuser: is_true(row, 2),
        hash: Some(text(row, 3)).filter(|hash| !hash.is_empty()),
        member_of: set(row, 4),
        ..Role::default()
    }
}

fn cell(row: &Cells, at: usize) -> &[u8] {
    row.get(at).and_then(Option::as_deref).unwrap_or_default()
}

/// A text; empty for null.
pub(super) fn text(row: &Cells, at: usize) -> String {
    String::from_utf8_lossy(cell(row, at)).into_owned()
}

/// The role of a row whose key is the name of a role as a resource (`RoleResource.getName`): `roles/app`.
pub(super) fn resource_role(row: &Cells) -> String {
    let name = text(row, 0);
    name.strip_prefix("roles/").map_or(name.clone(), str::to_owned)
}

/// A boolean.
pub(super) fn is_true(row: &Cells, at: usize) -> bool {
    cell(row, at).first().is_some_and(|byte| *byte != 0)
}

/// A set of texts.
pub(super) fn set(row: &Cells, at: usize) -> BTreeSet<String> {
    let elements = Elements::of_list(cell(row, at)).flatten();
    elements.map(|element| String::from_utf8_lossy(element).into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use helenus_model::types::pack;

    #[test]
    fn limits_to_data_centers_belong_to_the_role_of_their_resource() {
        let cell = |text: &str| Some(text.as_bytes().to_vec());
        let role = |name: &str| vec![cell(name), None, None, None, None];
        let limit = |name: &str, of: &str| {
            let mut set = Vec::new();
            pack(1, [Some(of.as_bytes())], &mut set);
            vec![cell(name), Some(set)]
        };
        let names = ["app", "roles", "roles/app"];
        let limits =
            vec![limit("roles/app", "one"), limit("roles/roles", "two"), limit("roles/roles/app", "three")];
        let found = roles([names.map(role).to_vec(), Vec::new(), limits]);
        let limits = names.map(|name| found[name].datacenters.iter().cloned().collect::<Vec<_>>().concat());
        assert_eq!(limits, ["one", "two", "three"]);
    }
}
