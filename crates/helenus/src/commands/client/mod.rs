//! The raw client of the native protocol that `stress` and `profile` share: a socket with its framing, one request at a
//! time, and requests that are encoded once and patched in place.

mod connection;
mod rpc;
mod session;
mod template;

pub use connection::{Connection, PATIENCE, Received};
pub use rpc::{RpcClient, exception_text, nothing};
pub use session::Session;
pub use template::Template;
