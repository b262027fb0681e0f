//! The CQL native protocol: sockets in, `Backend` calls, frames out.
//!
//! `doors` accepts and owns the threads; `connection` is one client's task, `requests` what it does with each request;
//! `answer` translates a request for the backend and its outcome for the client; `disk_pool` runs what has to wait.

mod answer;
mod clients;
mod columns;
mod connection;
mod disk_pool;
mod doors;
mod errors;
mod figures;
mod ledger;
mod limits;
mod mailbox;
mod output;
mod recent;
mod requests;
mod rows;
mod session;
mod shown;
mod traced;

pub use doors::NativeServer;
pub(crate) use doors::bind;
pub use figures::NativeFigures;
pub(crate) use ledger::{Ledger, Seat};
pub use limits::Limits;
