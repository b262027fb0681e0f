//! The servers: they take frames from sockets, call the `Backend`, and send frames back.
//!
//! `native` serves the CQL native protocol. It decodes requests, calls the `Backend` and encodes the results; no rule
//! of CQL is in this crate. `rpc` serves the old Thrift interface, whose calls are in `helenus_rpc`. `admin` is the
//! owner's socket, `http` the port of metrics and health, `backup` the format of backups, and `config` the table of
//! options. `connection_budget` limits the connections of all servers. `log` writes the log, `policy` decides what a
//! failed disk means, and `engine_journal` gives both what the engine reports. `history` keeps a sample of the server's figures an hour. `tls` encrypts connections. `logins` checks
//! the logins of all interfaces on a few threads. Work that may wait runs in `helenus_host::thread_pool`. `busy_poll` is busy polling: it keeps an event loop awake between requests that follow each other.

pub mod address;
pub mod admin;
pub mod audit;
pub mod backup;
mod busy_poll;
pub mod config;
pub mod connection_budget;
pub mod engine_journal;
mod error;
pub mod history;
pub mod http;
pub mod log;
pub mod logins;
pub mod native;
pub mod policy;
pub mod quantity;
pub mod rpc;
pub mod similar;
mod tls;

pub use error::ServerError;
use helenus_host::thread_pool;
