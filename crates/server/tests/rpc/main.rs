//! The connections of the old RPC interface: clients that do not behave, and what a client may take of a server.
#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod connections;
mod roles;
mod server;
mod strangers;
mod turns;
