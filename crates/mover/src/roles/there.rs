//! Reads the roles of the target, and what it knows of roles.

use super::role::{Cells, QUERIES, Roles, is_true, roles, text};
use super::wanted::Facts;
use crate::error::MoveError;
use crate::versions::major_minor;
use helenus_cluster::{Cluster, ClusterError, Extras, Node, OwnedAnswer};
use helenus_model::types::quote_identifier;
use helenus_wire::native::{Consistency, ErrorCode, Query, QueryParameters, Request};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

/// The class that checks permissions, and that which limits roles to data centers, without their package.
const AUTHORIZER: &str = "CassandraAuthorizer";
const NETWORK_AUTHORIZER: &str = "CassandraNetworkAuthorizer";

async fn ask(cluster: &Cluster, query: &str) -> Result<Vec<Cells>, ClusterError> {
    cells(&cluster.query(query, &[], Consistency::LocalQuorum).await?)
}

fn cells(answer: &OwnedAnswer) -> Result<Vec<Cells>, ClusterError> {
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
        Some(ErrorCode::Unauthorized) if !error.may_repeat(true) => MoveError::Refused(vec![format!(
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

/// What a node shows of a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    Value(String),
    /// The role of the move may not read it, or the node has none.
    Nothing,
    /// The node does not say, and why.
    Silent(String),
}

/// What each node of the target shows of a setting. Settings are each node's own, and clients are served by all of them.
pub(crate) async fn setting(cluster: &Cluster, name: &str) -> Vec<(SocketAddr, Shown)> {
    let mut shown = Vec::new();
    for node in &cluster.topology().nodes {
        let of_node = match shown_setting(node, name).await {
            Ok(Some(value)) => Shown::Value(value),
            Ok(None) => Shown::Nothing,
            Err(error) if error.is_invalid() || is_forbidden(&error) => Shown::Nothing,
            Err(error) => Shown::Silent(error.to_string()),
        };
        shown.push((node.address, of_node));
    }
    shown
}

fn is_forbidden(error: &ClusterError) -> bool {
    let code = error.server().map(|error| error.detail.code());
    // A node that could not read permissions has not refused.
    code == Some(ErrorCode::Unauthorized) && !error.may_repeat(true)
}

/// As `ask`, at this node.
async fn ask_at(node: &Node, query: &str) -> Result<Vec<Cells>, ClusterError> {
    let connection = node.connection().ok_or_else(|| ClusterError::NoNode { reason: node.error() })?;
    let query = Query { query, parameters: QueryParameters::default() };
    cells(&connection.call(&Request::Query(query), &Extras::default()).await?)
}

async fn shown_setting(node: &Node, name: &str) -> Result<Option<String>, ClusterError> {
    let query = format!("SELECT value FROM system_views.settings WHERE name = '{name}'");
    let rows = ask_at(node, &query).await?;
    Ok(rows.first().map(|row| text(row, 0)).filter(|value| !value.is_empty()))
}

/// The class of a setting that names one: with its parameters it has another name since 5.0 (`ParameterizedClass`).
///
/// # Errors
/// The node refuses it, or does not answer.
async fn class(node: &Node, setting: &str) -> Result<Option<String>, ClusterError> {
    for name in [setting.to_owned(), format!("{setting}.class_name")] {
        let shown = shown_setting(node, &name).await?;
        if shown.is_some() {
            return Ok(shown);
        }
    }
    Ok(None)
}

/// The nodes that are connected.
///
/// # Errors
/// There are none.
fn connected(cluster: &Cluster) -> Result<Vec<Arc<Node>>, ClusterError> {
    let topology = cluster.topology();
    let nodes: Vec<_> = topology.nodes.iter().filter(|node| node.is_connected()).cloned().collect();
    match nodes.is_empty() {
        true => Err(ClusterError::NoNode { reason: None }),
        false => Ok(nodes),
    }
}

/// Whether each node of the target that is connected is known to check what roles may do. `login`: the role of the move there.
///
/// Its setting says so. Where the role may not read that, it is because of its permissions; a target older than 4.0 shows no settings,
/// but lists permissions only if it has them (`AllowAllAuthorizer.list`).
///
/// # Errors
/// It does not answer.
pub(super) async fn checks_permissions(cluster: &Cluster, login: Option<&str>) -> Result<bool, MoveError> {
    for node in connected(cluster)? {
        if !node_checks_permissions(&node, login).await? {
            return Ok(false);
        }
    }
    Ok(true)
}

async fn node_checks_permissions(node: &Node, login: Option<&str>) -> Result<bool, ClusterError> {
    match class(node, "authorizer").await {
        Ok(Some(class)) => return Ok(class.ends_with(AUTHORIZER)),
        Err(error) if is_forbidden(&error) => return Ok(true),
        Err(error) if error.server().is_none() => return Err(error),
        _ => {}
    }
    let Some(login) = login else { return Ok(false) };
    let query = format!("LIST ALL PERMISSIONS OF {}", quote_identifier(login));
    match ask_at(node, &query).await {
        Ok(_) => Ok(true),
        Err(error) if error.server().is_some() => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether each node of the target that is connected is known to limit roles to data centers.
///
/// # Errors
/// It does not answer.
pub(super) async fn limits_datacenters(cluster: &Cluster) -> Result<bool, MoveError> {
    for node in connected(cluster)? {
        let class = match class(&node, "network_authorizer").await {
            Err(error) if error.server().is_some() => None,
            class => class?,
        };
        if !class.is_some_and(|class| class.ends_with(NETWORK_AUTHORIZER)) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// What the target knows of roles.
///
/// # Errors
/// It does not answer.
pub(super) async fn facts(cluster: &Cluster) -> Result<Facts, MoveError> {
    let topology = cluster.topology();
    Ok(Facts {
        version: major_minor(&topology.oldest_release()),
        limits_datacenters: limits_datacenters(cluster).await?,
        datacenters: topology.nodes.iter().map(|node| node.datacenter.clone()).collect(),
    })
}

#[cfg(test)]
#[path = "../../../cluster/tests/nodes/scripted_node.rs"]
pub(crate) mod scripted_node;

#[cfg(test)]
mod tests {
    use super::scripted_node::{Says, nodes};
    use super::*;
    use helenus_cluster::ClusterOptions;

    const CLASS: &str = "org.apache.cassandra.auth.CassandraAuthorizer";

    async fn cluster(says: &[Says]) -> Cluster {
        let address = nodes(says).await;
        let options = ClusterOptions { connections: 1, ..ClusterOptions::new(vec![address]) };
        let cluster = Cluster::connect(options).await.unwrap();
        let up = says.iter().filter(|says| **says != Says::Down).count();
        while connected(&cluster).unwrap().len() < up {
            tokio::task::yield_now().await;
        }
        cluster
    }

    /// One of the nodes, wherever it stands, says something else than the others.
    #[tokio::test]
    async fn a_setting_is_asked_of_every_node() {
        for other in [
            Says::Value("false"),
            Says::Nothing,
            Says::Error(ErrorCode::Unauthorized),
            Says::Error(ErrorCode::Overloaded),
            Says::Down,
        ] {
            for at in 0..3 {
                if other == Says::Down && at == 0 {
                    continue;
                }
                let mut says = [Says::Value("true"); 3];
                says[at] = other;
                let cluster = cluster(&says).await;
                let shown = setting(&cluster, "dynamic_data_masking_enabled").await;
                assert_eq!(shown.len(), 3);
                let of = |shown: &Shown| match shown {
                    Shown::Value(value) => value.clone(),
                    Shown::Nothing => "nothing".to_owned(),
                    Shown::Silent(_) => "silent".to_owned(),
                };
                let expected = match other {
                    Says::Value(value) => value,
                    Says::Nothing | Says::Error(ErrorCode::Unauthorized) => "nothing",
                    Says::Error(_) | Says::Down => "silent",
                };
                for (address, shown) in &shown {
                    let is_it = address.ip() == std::net::IpAddr::from([127, 0, 0, at as u8 + 1]);
                    assert_eq!(of(shown), if is_it { expected } else { "true" }, "{other:?} {address}");
                }
            }
        }
    }

    #[tokio::test]
    async fn one_node_that_checks_no_permissions_is_enough() {
        for at in 0..3 {
            let mut says = [Says::Value(CLASS); 3];
            assert!(checks_permissions(&cluster(&says).await, None).await.unwrap());
            says[at] = Says::Value("org.apache.cassandra.auth.AllowAllAuthorizer");
            let cluster = cluster(&says).await;
            assert!(!checks_permissions(&cluster, None).await.unwrap(), "{at}");
            assert!(!limits_datacenters(&cluster).await.unwrap(), "{at}");
        }
    }
}
