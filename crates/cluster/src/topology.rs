//! The nodes, the ring and the keyspaces of a cluster, as its system tables describe them.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};

use helenus_model::token::Token;
use helenus_wire::native::{Query, QueryParameters, Reader, Request};
use uuid::Uuid;

use crate::node::Node;
use crate::ring::{Place, Replicas, Ring};
use crate::{ClusterError, Connection, Extras, OwnedAnswer, Replication};

/// The port of nodes among themselves, unless they name another.
const STORAGE_PORT: u16 = 7000;

/// A picture of the cluster. A newer one replaces it; this one stays as it is.
#[derive(Debug)]
pub struct Topology {
    /// The cluster's name.
    pub cluster_name: String,
    /// The class of the partitioner.
    pub partitioner: String,
    /// The data center whose nodes are asked first.
    pub local_dc: String,
    /// All nodes, those without a connection too.
    pub nodes: Vec<Arc<Node>>,
    /// The replication of each keyspace.
    pub keyspaces: BTreeMap<String, Replication>,
    pub(crate) ring: Ring,
    /// The holders of all ranges, for each kind of replication; computed when they are first needed.
    replicas: HashMap<Replication, OnceLock<Option<Replicas>>>,
}

impl Topology {
    pub(crate) fn new(read: ReadTopology, local_dc: String, nodes: Vec<Arc<Node>>) -> Topology {
        let is_murmur3 = read.partitioner.ends_with("Murmur3Partitioner");
        let place = |node: &Arc<Node>| Place {
            datacenter: node.datacenter.clone(),
            rack: node.rack.clone(),
            tokens: if is_murmur3 { node.tokens.clone() } else { Vec::new() },
        };
        let ring = Ring::new(nodes.iter().map(place).collect());
        let replicas = read.keyspaces.values().map(|replication| (replication.clone(), OnceLock::new()));
        Topology {
            cluster_name: read.cluster_name,
            partitioner: read.partitioner,
            local_dc,
            nodes,
            replicas: replicas.collect(),
            keyspaces: read.keyspaces,
            ring,
        }
    }

    /// The nodes that hold a partition, in the order of the ring. Empty if the keyspace is not known, or if the cluster has another
    /// partitioner than `Murmur3Partitioner`.
    pub fn replicas(&self, keyspace: &str, token: Token) -> Vec<Arc<Node>> {
        self.holders(keyspace, token).iter().filter_map(|number| self.nodes.get(*number)).cloned().collect()
    }

    pub(crate) fn holders(&self, keyspace: &str, token: Token) -> &[usize] {
        let Some(replication) = self.keyspaces.get(keyspace) else { return &[] };
        let Some(computed) = self.replicas.get(replication) else { return &[] };
        match computed.get_or_init(|| self.ring.replicas(replication)) {
            Some(replicas) => self.ring.holders(replicas, token),
            None => &[],
        }
    }

    /// The tokens of the ring, in order; each ends a range that begins behind the one before it.
    pub fn tokens(&self) -> &[i64] {
        self.ring.tokens()
    }

    /// The oldest version of the nodes' software, such as `4.1.7`.
    pub fn oldest_release(&self) -> String {
        let numbers = |text: &str| -> Vec<u64> {
            text.split(|c: char| !c.is_ascii_digit()).map_while(|part| part.parse().ok()).collect()
        };
        let releases = self.nodes.iter().map(|node| &node.release_version);
        releases.min_by_key(|release| numbers(release)).cloned().unwrap_or_default()
    }
}

/// What the system tables say.
pub(crate) struct ReadTopology {
    pub cluster_name: String,
    pub partitioner: String,
    pub keyspaces: BTreeMap<String, Replication>,
    /// The node that was asked comes first.
    pub nodes: Vec<ReadNode>,
}

/// A node as the system tables describe it.
pub(crate) struct ReadNode {
    pub address: SocketAddr,
    pub named: SocketAddr,
    pub peer: SocketAddr,
    pub host_id: Uuid,
    pub datacenter: String,
    pub rack: String,
    pub release_version: String,
    pub tokens: Vec<i64>,
}

/// Asks a node for all of it.
pub(crate) async fn read(connection: &Connection) -> Result<ReadTopology, ClusterError> {
    let local = select(connection, "SELECT * FROM system.local WHERE key = 'local'").await?;
    let local = named_rows(&local)?;
    let local = local.first().ok_or_else(|| invalid("system.local is empty"))?;
    let mut nodes = vec![read_node(local, connection.node())?];
    let peers = match select(connection, "SELECT * FROM system.peers_v2").await {
        // Cassandra before 4.0 and ScyllaDB have no such table.
        Err(error) if error.is_invalid() => select(connection, "SELECT * FROM system.peers").await?,
        other => other?,
    };
    for row in named_rows(&peers)? {
        // A row that is half there belongs to a node that comes or goes; Cassandra leaves such rows behind.
        let Some(address) = address_of(&row, connection.node().port()) else { continue };
        let Ok(node) = read_node(&row, address) else { continue };
        if nodes.iter().all(|known| known.host_id != node.host_id && known.address != node.address) {
            nodes.push(node);
        }
    }
    let text = |column: &str| local.get(column).and_then(|cell| text_of(cell)).unwrap_or_default();
    let keyspaces =
        select(connection, "SELECT keyspace_name, replication FROM system_schema.keyspaces").await?;
    let keyspaces = named_rows(&keyspaces)?.into_iter().filter_map(|row| {
        let name = text_of(row.get("keyspace_name")?)?;
        let pairs = elements_of(row.get("replication")?, 2)?;
        let pairs =
            pairs.chunks_exact(2).filter_map(|pair| Some((text_of(pair.first()?)?, text_of(pair.last()?)?)));
        Some((name, Replication::parse(&pairs.collect())))
    });
    let keyspaces = keyspaces.collect();
    Ok(ReadTopology {
        cluster_name: text("cluster_name"),
        partitioner: text("partitioner"),
        keyspaces,
        nodes,
    })
}

/// The schema version of the node that is asked.
pub(crate) async fn schema_version(connection: &Connection) -> Result<Option<Uuid>, ClusterError> {
    let answer = select(connection, "SELECT schema_version FROM system.local WHERE key = 'local'").await?;
    let rows = named_rows(&answer)?;
    Ok(rows.first().and_then(|row| Uuid::from_slice(row.get("schema_version")?).ok()))
}

async fn select(connection: &Connection, text: &str) -> Result<OwnedAnswer, ClusterError> {
    let query = Query { query: text, parameters: QueryParameters::default() };
    let answer = connection.call(&Request::Query(query), &Extras::default()).await?;
    answer.rows()?;
    Ok(answer)
}

type NamedRow<'a> = HashMap<String, &'a [u8]>;

fn named_rows(answer: &OwnedAnswer) -> Result<Vec<NamedRow<'_>>, ClusterError> {
    let rows = answer.rows()?;
    let columns = rows.metadata.columns.to_vec()?;
    let named = rows.iter().map(|row| {
        let cells = columns.iter().zip(row?.cells());
        Ok(cells.filter_map(|(column, cell)| Some((column.name.to_string(), cell?))).collect())
    });
    named.collect()
}

fn read_node(row: &NamedRow<'_>, address: SocketAddr) -> Result<ReadNode, ClusterError> {
    let text = |column: &str| row.get(column).and_then(|cell| text_of(cell));
    let missing = |column: &str| invalid(&format!("{address} has no {column}"));
    let host_id = row.get("host_id").and_then(|cell| Uuid::from_slice(cell).ok());
    let tokens = row.get("tokens").and_then(|cell| elements_of(cell, 1)).unwrap_or_default();
    // Cassandra before 4.0 and ScyllaDB name no ports.
    let with_port = |ip: Option<IpAddr>, port_column: &str, port: u16| {
        Some(SocketAddr::new(ip?, row.get(port_column).and_then(|cell| port_of(cell)).unwrap_or(port)))
    };
    let ip = |column: &str| row.get(column).and_then(|cell| ip_of(cell)).filter(|ip| !ip.is_unspecified());
    let named = match row.contains_key("key") {
        true => with_port(ip("rpc_address"), "rpc_port", address.port()),
        false => Some(address),
    };
    let peer = with_port(ip("peer"), "peer_port", STORAGE_PORT);
    let peer = peer.or_else(|| with_port(ip("broadcast_address"), "broadcast_port", STORAGE_PORT));
    Ok(ReadNode {
        address,
        named: named.unwrap_or(address),
        peer: peer.unwrap_or_else(|| SocketAddr::new(address.ip(), STORAGE_PORT)),
        host_id: host_id.ok_or_else(|| missing("host_id"))?,
        datacenter: text("data_center").ok_or_else(|| missing("data_center"))?,
        rack: text("rack").unwrap_or_default(),
        release_version: text("release_version").unwrap_or_default(),
        tokens: tokens.iter().filter_map(|token| text_of(token)?.parse().ok()).collect(),
    })
}

/// The address for clients of a row of `system.peers_v2` or `system.peers`, whose nodes all have the same port.
fn address_of(row: &NamedRow<'_>, port: u16) -> Option<SocketAddr> {
    let ip = |column: &str| row.get(column).and_then(|cell| ip_of(cell));
    let port = row.get("native_port").and_then(|cell| port_of(cell)).unwrap_or(port);
    let own = ip("native_address").or_else(|| ip("rpc_address"))?;
    // A node that listens on all addresses is reached by the one that other nodes use.
    let address = if own.is_unspecified() { ip("peer")? } else { own };
    Some(SocketAddr::new(address, port))
}

fn port_of(cell: &[u8]) -> Option<u16> {
    let port = i32::from_be_bytes(cell.try_into().ok()?);
    u16::try_from(port).ok().filter(|port| *port > 0)
}

fn text_of(cell: &[u8]) -> Option<String> {
    String::from_utf8(cell.to_vec()).ok()
}

fn ip_of(cell: &[u8]) -> Option<IpAddr> {
    match cell.len() {
        4 => <[u8; 4]>::try_from(cell).ok().map(IpAddr::from),
        16 => <[u8; 16]>::try_from(cell).ok().map(IpAddr::from),
        _ => None,
    }
}

/// The elements of a list or a set; of a map with `width` 2, keys and values in turn.
fn elements_of(cell: &[u8], width: usize) -> Option<Vec<&[u8]>> {
    let mut reader = Reader::new(cell);
    let count = usize::try_from(reader.int().ok()?).ok()?.checked_mul(width)?;
    let mut elements = Vec::new();
    for _ in 0..count {
        elements.push(reader.bytes().ok()??);
    }
    Some(elements)
}

fn invalid(text: &str) -> ClusterError {
    ClusterError::Invalid(text.to_owned())
}
