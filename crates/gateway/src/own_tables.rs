//! The rows of `system.local` and `system.peers` that clients of a gateway get: one node, which owns all tokens. By option, the
//! nodes of the cluster are its peers; then the gateway owns no token, so that drivers send each request to a node that holds its
//! partition, and to the gateway if they reach no other.
//!
//! The statement itself goes to a node of the cluster, whose answer has the columns that were asked for, whatever its version; here
//! the cells that tell of the node are replaced. So a client never learns by accident of nodes that it might not reach.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

use helenus_cluster::Node;
use helenus_wire::WireError;
use helenus_wire::native::{ColumnSpec, Put, Rows};
use uuid::Uuid;

use crate::job::{Job, values};
use crate::peers_select::PeersSelect;
use crate::statement_text::OwnTable;

/// The one token. A node with any token owns the whole ring if it is alone.
const TOKEN: &str = "0";
const RACK: &str = "rack1";

/// The encoded cells for the client of `job`, and the number of rows.
pub(crate) fn rows(
    job: &Job,
    table: &OwnTable,
    (rows, columns): (&Rows<'_>, &[ColumnSpec]),
) -> Result<(usize, Vec<u8>), WireError> {
    let mut cells = Vec::new();
    match table {
        OwnTable::Peers(Ok(select)) if job.shared.options.shows_nodes => peers(job, select, columns),
        OwnTable::Peers(_) => Ok((0, cells)),
        OwnTable::Local => {
            let own = own_cells(job);
            let mut count = 0;
            for row in rows.iter() {
                for (column, cell) in columns.iter().zip(row?.cells()) {
                    cells.put_optional_bytes(own.get(&*column.name).map(Vec::as_slice).or(cell));
                }
                count += 1;
            }
            Ok((count, cells))
        }
    }
}

/// A row for each node of the cluster that is asked for.
fn peers(job: &Job, select: &PeersSelect, columns: &[ColumnSpec]) -> Result<(usize, Vec<u8>), WireError> {
    let message = job.message()?;
    let values = values(&message.request);
    let topology = job.shared.cluster.topology();
    let versions = job.schema_versions.get();
    // A node that is not connected is shown with the schema of the others, because drivers do not see nodes without one.
    let common = versions.and_then(|versions| versions.values().next());
    let shown = topology.nodes.iter().filter(|node| job.shared.shown.has(node));
    let nodes = shown.filter(|node| select.matches(node.peer, &values));
    let (mut count, mut cells) = (0, Vec::new());
    for node in nodes.take(select.limit(&values)) {
        let version = versions.and_then(|versions| versions.get(&node.host_id)).or(common);
        let of_node = cells_of(node, version);
        for column in columns {
            cells.put_optional_bytes(of_node.get(&*column.name).map(Vec::as_slice));
        }
        count += 1;
    }
    Ok((count, cells))
}

fn cells_of(node: &Node, schema_version: Option<&Uuid>) -> HashMap<&'static str, Vec<u8>> {
    let tokens: Vec<String> = node.tokens.iter().map(i64::to_string).collect();
    let native = ip_cell(node.named);
    let mut cells = HashMap::from([
        ("peer", ip_cell(node.peer)),
        ("peer_port", port_cell(node.peer)),
        ("data_center", node.datacenter.clone().into_bytes()),
        ("host_id", node.host_id.as_bytes().to_vec()),
        ("native_address", native.clone()),
        ("native_port", port_cell(node.named)),
        ("rack", node.rack.clone().into_bytes()),
        ("release_version", node.release_version.clone().into_bytes()),
        ("rpc_address", native),
        ("tokens", set_cell(tokens.iter().map(String::as_str))),
    ]);
    cells.extend(schema_version.map(|version| ("schema_version", version.as_bytes().to_vec())));
    cells
}

fn own_cells(job: &Job) -> HashMap<&'static str, Vec<u8>> {
    let (shared, local) = (&job.shared, job.client.local);
    let topology = shared.cluster.topology();
    let ip = ip_cell(local);
    let tokens = (!shared.options.shows_nodes).then_some(TOKEN);
    let mut cells = HashMap::from([
        ("host_id", shared.host_id.as_bytes().to_vec()),
        ("tokens", set_cell(tokens.into_iter())),
        ("data_center", topology.local_dc.clone().into_bytes()),
        ("rack", RACK.as_bytes().to_vec()),
        ("release_version", topology.oldest_release().into_bytes()),
        ("rpc_address", ip.clone()),
        ("broadcast_address", ip.clone()),
        ("listen_address", ip),
        ("rpc_port", port_cell(local)),
    ]);
    if let Some(own) = &shared.options.own_node {
        cells.insert("cluster_name", own.cluster_name.clone().into_bytes());
        cells.insert("data_center", own.datacenter.clone().into_bytes());
        cells.insert("rack", own.rack.clone().into_bytes());
    }
    cells
}

fn ip_cell(address: SocketAddr) -> Vec<u8> {
    match address.ip().to_canonical() {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    }
}

fn port_cell(address: SocketAddr) -> Vec<u8> {
    i32::from(address.port()).to_be_bytes().to_vec()
}

fn set_cell<'a>(elements: impl Iterator<Item = &'a str>) -> Vec<u8> {
    let (mut count, mut packed) = (0, Vec::new());
    for element in elements {
        packed.put_bytes(element.as_bytes());
        count += 1;
    }
    let mut cell = Vec::with_capacity(packed.len() + 4);
    cell.put_int(count);
    cell.extend_from_slice(&packed);
    cell
}
