//! Reads the roles of this server.

use super::role::{Cells, QUERIES, Roles, resource_role, roles, set, text};
use crate::error::MoveError;
use helenus_cql::LocalBackend;
use helenus_cql::backend::{Backend, Identity, Request, ResultColumns, RowsOut};
use std::collections::BTreeSet;
use std::sync::Arc;

#[derive(Default)]
struct Collected {
    rows: Vec<Cells>,
    row: Cells,
}

impl RowsOut for Collected {
    fn columns(&mut self, _columns: &Arc<ResultColumns>) {}

    fn cell(&mut self, value: Option<&[u8]>) {
        self.row.push(value.map(<[u8]>::to_vec));
    }

    fn end_row(&mut self) {
        self.rows.push(std::mem::take(&mut self.row));
    }

    fn bytes(&self) -> usize {
        0
    }

    fn clear(&mut self) {
        *self = Collected::default();
    }
}

fn ask(backend: &LocalBackend, query: &str) -> Result<Vec<Cells>, MoveError> {
    let (identity, mut out) = (Identity::server(), Collected::default());
    let request = Request { may_block: true, ..Request::plain(&identity, &[]) };
    let asked = backend.query(query, &request, &mut out);
    asked.map_err(|error| MoveError::Table(format!("the roles here cannot be read: {error}")))?;
    Ok(out.rows)
}

/// All roles here.
///
/// # Errors
/// The tables cannot be read.
pub(super) fn read(backend: &LocalBackend) -> Result<Roles, MoveError> {
    let [of_roles, of_permissions, of_datacenters] = QUERIES.map(|query| ask(backend, query));
    Ok(roles([of_roles?, of_permissions?, of_datacenters?]))
}

/// The query for the groups of networks, with which the limits of roles are kept.
const OF_NETWORKS: &str = "SELECT role, cidr_groups FROM system_auth.cidr_permissions";

/// The roles with limits (OPTIONS), which no node of Cassandra keeps.
///
/// # Errors
/// The table cannot be read.
pub(super) fn limited_by_options(backend: &LocalBackend) -> Result<Vec<String>, MoveError> {
    Ok(with_options(&ask(backend, OF_NETWORKS)?).into_iter().collect())
}

fn with_options(rows: &[Cells]) -> BTreeSet<String> {
    let limited = rows.iter().filter(|row| !set(row, 1).is_empty());
    limited.filter_map(|row| Some(text(row, 0).strip_prefix(helenus_cql::LIMITS_OF)?.to_owned())).collect()
}

/// What roles have here that no statement moves, a line each.
///
/// # Errors
/// The tables cannot be read.
pub(crate) fn not_moved(backend: &LocalBackend) -> Result<Vec<String>, MoveError> {
    let names = |rows: Vec<Cells>| rows.iter().map(|row| text(row, 0)).collect::<BTreeSet<String>>();
    let listed = |names: BTreeSet<String>| names.into_iter().collect::<Vec<_>>().join(", ");
    let mut notes = Vec::new();
    let identities = names(ask(backend, "SELECT role, identity FROM system_auth.identity_to_role")?);
    if !identities.is_empty() {
        notes.push(format!(
            "identities of certificates are not moved, those of the roles {}: ADD IDENTITY at the target",
            listed(identities)
        ));
    }
    let mut networks = ask(backend, OF_NETWORKS)?;
    let limited = with_options(&networks);
    if !limited.is_empty() {
        notes.push(format!(
            "limits of roles (OPTIONS) are not moved, those of the roles {}: the target has none like them",
            listed(limited)
        ));
    }
    // Each role has a row.
    networks.retain(|row| !set(row, 1).is_empty() && !text(row, 0).starts_with(helenus_cql::LIMITS_OF));
    if !networks.is_empty() {
        notes.push(format!(
            "groups of networks are not moved, and so the roles {} are not limited to them at the target: ALTER ROLE there",
            listed(networks.iter().map(resource_role).collect())
        ));
    }
    Ok(notes)
}
