//! The doors: sockets in, `Backend` calls, frames out.
//!
//! `native` serves the CQL native protocol. Doors decode, ask the `Backend`, and encode what it gives; no rule of CQL is
//! known here. `rpc` serves the old Thrift interface, whose calls are `helenus_rpc`'s. `admin` is the owner's socket, `backup` what
//! backups are made of, `http` the port of metrics and health, `config` the table of options. `connection_budget` is how many connections there may be. `log` writes what happens, `policy`
//! says what a failed disk means. `vigil` keeps a door awake between requests that follow each other.

pub mod admin;
pub mod backup;
pub mod config;
pub mod connection_budget;
mod error;
pub mod http;
pub mod log;
pub mod native;
pub mod policy;
pub mod rpc;
mod vigil;

pub use error::ServerError;
