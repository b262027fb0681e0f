//! Reads the roles of the target, and what it knows of roles.

use super::role::{Cells, QUERIES, Roles, is_true, roles, text};
use super::wanted::Facts;
use crate::error::MoveError;
use crate::schema::major_minor;
use helenus_cluster::{Cluster, ClusterError};
use helenus_wire::native::{Consistency, ErrorCode};
use std::collections::BTreeSet;

async fn ask(cluster: &Cluster, query: &str) -> Result<Vec<Cells>, ClusterError> {
    let answer = cluster.query(query, &[], Consistency::LocalQuorum).await?;
    let rows = answer.rows()?;
    let mut found = Vec::new();
    for row in rows.iter() {
        found.push(row?.cells().map(|cell| cell.map(<[u8]>::to_vec)).collect());
    }
    Ok(found)
}

/// All roles there.
///
/// # Errors
/// The role of the move may not read them, or they cannot be read.
pub(super) async fn read(cluster: &Cluster) -> Result<Roles, MoveError> {
    let mut rows = [Vec::new(), Vec::new(), Vec::new()];
    for (rows, query) in rows.iter_mut().zip(QUERIES) {
        *rows = ask(cluster, query).await.map_err(refused)?;
    }
    Ok(roles(rows))
}

/// The error, with what to do if the role may not.
fn refused(error: ClusterError) -> MoveError {
    match error.server().map(|error| error.detail.code()) {
        Some(ErrorCode::Unauthorized) => MoveError::Refused(vec![format!(
            "{error}; to move roles, give the login of a superuser of the target (--username)"
        )]),
        _ => error.into(),
    }
}

/// The roles that may log in there, as far as the role of the move sees them.
///
/// # Errors
/// They cannot be listed.
pub(super) async fn that_log_in(cluster: &Cluster) -> Result<BTreeSet<String>, MoveError> {
    let rows = ask(cluster, "LIST ROLES").await?;
    Ok(rows.iter().filter(|row| is_true(row, 2)).map(|row| text(row, 0)).collect())
}

/// A setting of the target; `None` if it does not show it, or has none.
///
/// # Errors
/// It does not answer.
pub(super) async fn setting(cluster: &Cluster, name: &str) -> Result<Option<String>, MoveError> {
    let query = format!("SELECT value FROM system_views.settings WHERE name = '{name}'");
    match ask(cluster, &query).await {
        Ok(rows) => Ok(rows.first().map(|row| text(row, 0)).filter(|value| !value.is_empty())),
        Err(error) if error.server().is_some() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// What the target knows of roles.
///
/// # Errors
/// It does not answer.
pub(super) async fn facts(cluster: &Cluster) -> Result<Facts, MoveError> {
    let topology = cluster.topology();
    let mut network = None;
    for name in ["network_authorizer", "network_authorizer.class_name"] {
        network = network.or(setting(cluster, name).await?);
    }
    Ok(Facts {
        version: major_minor(&topology.oldest_release()),
        limits_datacenters: network.is_some_and(|class| class.ends_with("CassandraNetworkAuthorizer")),
        datacenters: topology.nodes.iter().map(|node| node.datacenter.clone()).collect(),
    })
}
