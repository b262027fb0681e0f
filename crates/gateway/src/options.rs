//! The settings of a gateway, and why it cannot start.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use helenus_tls::ServerTls;
use thiserror::Error;

/// The settings of a gateway's side towards clients.
#[derive(Clone, Debug)]
pub struct GatewayOptions {
    /// The address to listen on.
    pub listen: SocketAddr,
    /// The longest request of v3 and v4, header included.
    pub frame_bytes_max: u64,
    /// The longest request of v5.
    pub message_bytes_max: u64,
    /// The most connections; `None`: without limit.
    pub connections_max: Option<u64>,
    /// The most bytes of requests without answer and of answers that are not sent, of all clients. Beyond it nothing is read.
    pub bytes_max: u64,
    /// How long a connection may take to send STARTUP.
    pub handshake_timeout: Duration,
    /// How long a client may leave its answers unread.
    pub reader_grace: Duration,
    /// TLS towards clients; `None`: in the clear.
    pub tls: Option<Arc<ServerTls>>,
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
