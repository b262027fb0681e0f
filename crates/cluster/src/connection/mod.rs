//! Connections to nodes, which any number of requests share.

mod expected;
mod framing;
mod handshake;
mod in_flight;
mod multiplexed;
mod node_events;
mod stream;
mod tasks;
mod turns;

#[cfg(test)]
pub(crate) mod tests;

pub use expected::Asks;
pub use in_flight::Done;
pub(crate) use multiplexed::read_event;
pub use multiplexed::{Connection, Extras, Refused};
pub(crate) use node_events::{EventBody, EventReceiver, Received, events};
pub use turns::Turn;
