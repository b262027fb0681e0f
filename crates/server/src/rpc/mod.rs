//! The old RPC interface (Thrift): sockets in, `helenus_rpc` calls, messages out.
//!
//! `server` accepts and owns the threads; `connection` is one client's task. A client's calls are answered in their order,
//! as its protocol wants it; those that arrive together are answered with one write. `watch` counts and logs.

mod connection;
mod server;
mod watch;

pub use server::{RpcLimits, RpcServer};
pub use watch::RpcFigures;
