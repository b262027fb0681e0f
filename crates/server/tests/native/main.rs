//! The native protocol's server over real sockets, before a backend of canned answers.
#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]
#![allow(clippy::indexing_slicing, reason = "as above")]

mod canned;
mod client;
mod flow;
mod handshake;
mod hostile;
mod results;
