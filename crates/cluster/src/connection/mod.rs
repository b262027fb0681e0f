//! Connections to nodes, which any number of requests share.

mod framing;
mod handshake;
mod in_flight;
mod multiplexed;
mod stream;
mod tasks;

pub use in_flight::Done;
pub use multiplexed::{Connection, Extras, Refused};
pub(crate) use multiplexed::{EventBody, read_event};
