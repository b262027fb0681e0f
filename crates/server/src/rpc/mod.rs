//! The old RPC interface (Thrift): takes messages from sockets, calls `helenus_rpc`, and sends messages back.
//!
//! `server` accepts connections and owns the threads; `connection` is the task of one client. A client's calls are
//! answered in order, as the protocol requires; the answers to those that arrive together are sent in one write.
//! `watch` counts and logs calls.

mod connection;
mod server;
mod watch;

pub use server::{RpcLimits, RpcServer};
pub use watch::RpcMetrics;
