//! The settings of a gateway, and why it cannot start.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Weak};
use std::time::Duration;

use helenus_tls::ServerTls;
use thiserror::Error;
use uuid::Uuid;

/// The settings of a gateway's side towards clients.
#[derive(Clone)]
pub struct GatewayOptions {
    /// The address to listen on.
    pub listen: SocketAddr,
    /// The address for connections by TLS alone; the first one is then in the clear.
    pub listen_encrypted: Option<SocketAddr>,
    /// One more address, for the same connections as the first.
    pub listen_also: Option<SocketAddr>,
    /// The longest request of v3 and v4, header included.
    pub frame_bytes_max: u64,
    /// The longest request of v5.
    pub message_bytes_max: u64,
    /// The most connections; `None`: without limit.
    pub connections_max: Option<u64>,
    /// The most connections of one address; `None`: without limit.
    pub connections_max_per_address: Option<u64>,
    /// Who admits connections besides these limits, if anybody does.
    pub admission: Option<Admission>,
    /// The most bytes of requests that arrive or have no answer, of all clients. Beyond it nothing is read.
    pub bytes_max: u64,
    /// The most bytes of answers that clients have not taken, but for long ones (`helenus_cluster::AnswerRoom`). Beyond it nothing is read,
    /// and what was asked for gets an error.
    pub unread_bytes_max: u64,
    /// The memory of prepared statements, bytes. The least used are forgotten first.
    pub statements_bytes_max: u64,
    /// How long a connection may take to send STARTUP.
    pub handshake_timeout: Duration,
    /// How long a client may be silent while none of its requests is in progress; `None`: without limit.
    pub idle_timeout: Option<Duration>,
    /// How long a request may take to arrive once its first byte has. To it is added the time that its bytes take at 128 KiB a second.
    pub frame_grace: Duration,
    /// How long a client may leave its answers unread.
    pub reader_grace: Duration,
    /// TLS towards clients; `None`: in the clear.
    pub tls: Option<Arc<ServerTls>>,
    /// Whether clients see the nodes of the cluster beside the gateway, and so connect to them.
    pub shows_nodes: bool,
    /// The statements that the server had prepared which the gateway continues; they are prepared at the cluster when they are first
    /// executed. `None`: it continues none.
    pub known_statements: Option<KnownStatements>,
    /// What clients see of the gateway itself; `None`: what follows from the cluster and the address.
    pub own_node: Option<OwnNode>,
}

/// Admits a connection from an address until the value is dropped, or says why it has no place: the process has other connections and
/// files too.
pub type Admission = Arc<dyn Fn(IpAddr) -> Result<Box<dyn Place>, String> + Send + Sync>;

/// The place of a connection among all of the process, until it is dropped.
pub trait Place: Send + Sync {
    /// Makes its memory on the account of the process this many bytes. False: there are not so many, and it keeps what it had. Fewer
    /// than it had are always there.
    fn take_memory(&self, bytes: u64) -> bool;

    /// Tells the process of the connection, which may have to make room for others until its client has begun.
    fn show_newcomer(&self, newcomer: Weak<dyn Newcomer>);
}

/// A connection whose client has not begun: who it is is not known yet.
pub trait Newcomer: Send + Sync {
    /// Whether it has begun meanwhile, or ends.
    fn has_begun(&self) -> bool;

    /// Ends it, so that there is room for another, unless it has begun meanwhile.
    fn displace(&self);
}

/// Finds the keyspace in use and the text of a prepared statement by its id.
pub type KnownStatements = Arc<dyn Fn(&[u8; 16]) -> Option<(Option<String>, String)> + Send + Sync>;

/// The node as which a gateway appears, where it continues a server that clients know.
#[derive(Clone, Debug)]
pub struct OwnNode {
    /// Its id.
    pub host_id: Uuid,
    /// The name of its cluster. Some drivers refuse nodes whose cluster has another name than the first that they have seen.
    pub cluster_name: String,
    /// Its data center. Drivers may be told to use nodes of one alone.
    pub datacenter: String,
    /// Its rack.
    pub rack: String,
}

/// Why a gateway cannot start.
#[derive(Debug, Error)]
pub enum GatewayError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
}
