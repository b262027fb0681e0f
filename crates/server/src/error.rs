//! Errors that occur before any client is connected.

use std::net::SocketAddr;

/// An error of a listener.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The address is in use, or not of this machine.
    #[error(
        "cannot listen on {address}: {source}; give another address with --listen, or port 0 for a free one"
    )]
    Bind {
        /// The address asked for.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// The HTTP port's address is in use, or not of this machine.
    #[error(
        "cannot listen on {address}: {source}; give another address with --http, or port 0 for a free one"
    )]
    BindHttp {
        /// The address asked for.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// The system refused a resource that a runtime needs.
    #[error("cannot start: {source}")]
    Runtime {
        /// Why.
        source: std::io::Error,
    },
}
