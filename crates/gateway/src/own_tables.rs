//! The rows of `system.local` and `system.peers` that clients of a gateway get: one node, which owns all tokens.
//!
//! The statement itself goes to a node of the cluster, whose answer has the columns that were asked for, whatever its version; here
//! the cells that tell of the node are replaced. So a client never learns of nodes that it might not reach.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

use helenus_wire::WireError;
use helenus_wire::native::{ColumnSpec, Put, Rows};

use crate::shared::Shared;
use crate::statement_text::OwnTable;

/// The one token. A node with any token owns the whole ring if it is alone.
const TOKEN: &str = "0";
const RACK: &str = "rack1";

/// The encoded cells for a client, and the number of rows.
pub(crate) fn rows(
    shared: &Shared,
    local: SocketAddr,
    table: OwnTable,
    (rows, columns): (&Rows<'_>, &[ColumnSpec]),
) -> Result<(usize, Vec<u8>), WireError> {
    let mut cells = Vec::new();
    if table == OwnTable::Peers {
        return Ok((0, cells));
    }
    let own = own_cells(shared, local);
    let mut count = 0;
    for row in rows.iter() {
        for (column, cell) in columns.iter().zip(row?.cells()) {
            cells.put_optional_bytes(own.get(&*column.name).map(Vec::as_slice).or(cell));
        }
        count += 1;
    }
    Ok((count, cells))
}

fn own_cells(shared: &Shared, local: SocketAddr) -> HashMap<&'static str, Vec<u8>> {
    let topology = shared.cluster.topology();
    let ip = match local.ip().to_canonical() {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    };
    let mut tokens = Vec::new();
    tokens.put_int(1);
    tokens.put_bytes(TOKEN.as_bytes());
    let port = i32::from(local.port()).to_be_bytes().to_vec();
    HashMap::from([
        ("host_id", shared.host_id.as_bytes().to_vec()),
        ("tokens", tokens),
        ("data_center", topology.local_dc.clone().into_bytes()),
        ("rack", RACK.as_bytes().to_vec()),
        ("release_version", topology.oldest_release().into_bytes()),
        ("rpc_address", ip.clone()),
        ("broadcast_address", ip.clone()),
        ("listen_address", ip),
        ("rpc_port", port),
    ])
}
