//! The doors: sockets in, `Backend` calls, frames out.
//!
//! `native` serves the CQL native protocol. Doors decode, ask the `Backend`, and encode what it gives; no rule of CQL is
//! known here. `rpc` serves the old Thrift interface, whose calls are `helenus_rpc`'s. `admin` is the owner's socket, `config` the table of
//! options.

pub mod admin;
pub mod config;
mod error;
pub mod native;
pub mod rpc;

pub use error::ServerError;
