//! The raw clients that `stress` and `profile` share, for the native protocol and the Thrift RPC interface: a socket
//! with its framing, one request at a time or many in flight, and requests that are encoded once and patched in place.

pub mod calls;
mod connection;
mod pipeline;
mod rpc;
mod session;
mod template;
mod text;
mod transport;

pub use connection::Connection;
pub use pipeline::{
    AnswerBody, BlockingClient, Endpoint, Pair, PipelinedConnection, column, columns, of_reply,
};
pub use rpc::{RpcClient, exception_text, nothing};
pub use session::{PreparedStatement, Session, takes_certificates};
pub use template::{Copy, Template};
pub use text::Text;
pub use transport::{PATIENCE, Received};
