//! The CQL native protocol: takes frames from sockets, calls the `Backend`, and sends frames back.
//!
//! `arrivals` accepts connections and `refused` answers those over the limits; `doors` runs the event loops.
//! `connection` is the task of one client, with its time limits in `deadlines`; `requests` handles each request.
//! `answer` translates a request for the backend and the outcome for the client; `disk_pool` runs requests that must
//! wait. `client_history` keeps the clients seen so far.

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
