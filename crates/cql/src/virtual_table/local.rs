//! `system.local`: what drivers need to know of the server they are connected to.

use super::table::{VirtualContext, VirtualRows, VirtualTable};
use helenus_engine::Database;
use helenus_model::schema::Table;
use helenus_model::types::pack;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// What `system.local` says beside identity and schema.
#[derive(Clone, Debug)]
pub struct NodeInfo {
    /// The cluster's name.
    pub cluster_name: String,
    /// Datacenter; drivers' load balancing goes by it.
    pub datacenter: String,
    /// Rack.
    pub rack: String,
    /// Where clients connect to.
    pub native_address: SocketAddr,
}

impl Default for NodeInfo {
    /// As a stock Cassandra on this machine.
    fn default() -> NodeInfo {
        NodeInfo {
            cluster_name: "Test Cluster".into(),
            datacenter: "datacenter1".into(),
            rack: "rack1".into(),
            native_address: SocketAddr::from(([127, 0, 0, 1], 9042)),
        }
    }
}

/// The release whose features and messages this server has: drivers choose their schema parser by it.
pub const RELEASE_VERSION: &str = "5.0.9";
const CQL_VERSION: &str = "3.4.7";
const NATIVE_PROTOCOL_VERSION: &str = "5";
const PARTITIONER: &str = "org.apache.cassandra.dht.Murmur3Partitioner";
/// Where nodes of a cluster would listen for each other; nobody does here.
const STORAGE_PORT: i32 = 7000;
/// How many pieces the ring is said to be in: all of them are here, and token-aware clients want some.
const TOKENS: i64 = 16;

struct Local {
    table: Arc<Table>,
    node: NodeInfo,
    /// When the server started, seconds.
    generation: i32,
}

/// The table, if the schema has it.
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

/// The ends of the ring's pieces, evenly spread, as text in the order of text.
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
