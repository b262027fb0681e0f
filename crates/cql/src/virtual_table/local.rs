//! `system.local`: information for drivers about the server they are connected to.

use super::table::{VirtualContext, VirtualRows, VirtualTable};
use helenus_engine::Database;
use helenus_model::schema::Table;
use helenus_model::types::pack;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// The node's properties in `system.local`, besides identity and schema.
#[derive(Clone, Debug)]
pub struct NodeInfo {
    /// The cluster's name.
    pub cluster_name: String,
    /// Datacenter; drivers use it for load balancing.
    pub datacenter: String,
    /// Rack.
    pub rack: String,
    /// The address for clients.
    pub native_address: SocketAddr,
}

impl Default for NodeInfo {
    /// The values of an unconfigured Cassandra on this machine.
    fn default() -> NodeInfo {
        NodeInfo {
            cluster_name: "Test Cluster".into(),
            datacenter: "datacenter1".into(),
            rack: "rack1".into(),
            native_address: SocketAddr::from(([127, 0, 0, 1], 9042)),
        }
    }
}

/// The Cassandra release whose features and messages this server has; drivers choose their schema parser by it.
pub const RELEASE_VERSION: &str = "5.0.9";
const CQL_VERSION: &str = "3.4.7";
const NATIVE_PROTOCOL_VERSION: &str = "5";
const PARTITIONER: &str = "org.apache.cassandra.dht.Murmur3Partitioner";
/// The port for other nodes of a cluster; it is only displayed.
const STORAGE_PORT: i32 = 7000;
/// Number of displayed ring ranges: this node has all of them, but token-aware clients expect some.
const TOKENS: i64 = 16;

struct Local {
    table: Arc<Table>,
    node: NodeInfo,
    /// Start time of the server, seconds.
    generation: i32,
}

/// The table, if it is in the schema.
pub(super) fn tables(database: &Database, node: NodeInfo) -> Option<Arc<dyn VirtualTable>> {
    let table = database.schema().table("system", "local")?.clone();
    let generation = i32::try_from(database.now_s()).unwrap_or(i32::MAX);
    Some(Arc::new(Local { table, node, generation }))
}

impl VirtualTable for Local {
    fn table(&self) -> &Arc<Table> {
        &self.table
    }

    fn rows(&self, cx: &VirtualContext<'_>, rows: &mut VirtualRows) {
        let text = |text: &str| text.as_bytes().to_vec();
        let address = match self.node.native_address.ip() {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        };
        let port = |port: i32| port.to_be_bytes().to_vec();
        rows.row(&[
            ("key", text("local")),
            ("bootstrapped", text("COMPLETED")),
            ("broadcast_address", address.clone()),
            ("broadcast_port", port(STORAGE_PORT)),
            ("cluster_name", text(&self.node.cluster_name)),
            ("cql_version", text(CQL_VERSION)),
            ("data_center", text(&self.node.datacenter)),
            ("gossip_generation", port(self.generation)),
            ("host_id", cx.database.host_id().as_bytes().to_vec()),
            ("listen_address", address.clone()),
            ("listen_port", port(STORAGE_PORT)),
            ("native_protocol_version", text(NATIVE_PROTOCOL_VERSION)),
            ("partitioner", text(PARTITIONER)),
            ("rack", text(&self.node.rack)),
            ("release_version", text(RELEASE_VERSION)),
            ("rpc_address", address),
            ("rpc_port", port(i32::from(self.node.native_address.port()))),
            ("schema_version", cx.schema.version.as_bytes().to_vec()),
            ("tokens", tokens()),
        ]);
    }
}

/// The evenly spread ends of the ring ranges, as text in text order.
pub fn ring_tokens() -> Vec<String> {
    const STEP: i64 = (i64::MAX / TOKENS) * 2;
    let mut tokens: Vec<String> = (0..TOKENS)
        .map(|index| i64::MIN.wrapping_add(STEP / 2).wrapping_add(index.wrapping_mul(STEP)).to_string())
        .collect();
    tokens.sort();
    tokens
}

fn tokens() -> Vec<u8> {
    let tokens = ring_tokens();
    let mut out = Vec::new();
    pack(tokens.len(), tokens.iter().map(|token| Some(token.as_bytes())), &mut out);
    out
}
