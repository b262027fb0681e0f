//! The old RPC interface (Thrift): takes messages from sockets, calls `helenus_rpc`, and sends messages back.
//!
//! `server` accepts connections and owns the threads; `connection` is the task of one client, `input` what it has sent,
//! `calls` calls it, and `newcomer` is its state before it has begun. A client's calls are
//! answered in order, as the protocol requires; the answers to those that arrive together are sent in one write.
//! `watch` counts and logs calls, `under_way` the logins for which the end of the server waits.

mod calls;
mod connection;
mod input;
mod newcomer;
mod output;
mod server;
mod under_way;
mod watch;

pub use server::{RpcLimits, RpcServer};
pub use watch::RpcMetrics;
