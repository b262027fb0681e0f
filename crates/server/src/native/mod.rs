//! The CQL native protocol: sockets in, `Backend` calls, frames out.
//!
//! `arrivals` accepts, `doors` owns the threads; `connection` is one client's task, `requests` what it does with each request;
//! `client_history` is who was connected. `deadlines` are what a client must keep, `refused` tells those that find no room.
//! `answer` translates a request for the backend and its outcome for the client; `disk_pool` runs what has to wait.

mod answer;
mod arrivals;
mod client_history;
mod clients;
mod columns;
mod connection;
mod deadlines;
mod disk_pool;
mod doors;
mod errors;
mod figures;
mod ledger;
mod limits;
mod mailbox;
mod output;
mod recent;
mod refused;
mod requests;
mod rows;
mod session;
mod shown;
mod traced;

pub use doors::NativeServer;
pub(crate) use doors::bind;
pub use figures::NativeFigures;
pub(crate) use ledger::{Ledger, Reservation, Seat};
pub use limits::Limits;
