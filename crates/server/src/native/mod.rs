//! The CQL native protocol: takes frames from sockets, calls the `Backend`, and sends frames back.
//!
//! `accept` accepts connections and `refused` answers those over the limits; `event_loops` runs the event loops.
//! `connection` is the task of one client, with its time limits in `deadlines`; `requests` handles each request.
//! `answer` translates a request for the backend and the outcome for the client; `disk_pool` runs requests that must
//! wait. `client_history` keeps the clients seen so far.

mod accept;
mod answer;
mod client_history;
mod clients;
mod columns;
mod connection;
mod deadlines;
mod disk_pool;
mod errors;
mod event_loops;
mod in_flight;
mod limits;
mod mailbox;
mod metrics;
mod output;
mod refused;
mod requests;
mod rows;
mod session;
mod statement_cache;
mod statement_text;
mod trace_parameters;

pub use event_loops::NativeServer;
pub(crate) use event_loops::bind;
pub(crate) use in_flight::{ConnectionShare, InFlightBytes, Reservation};
pub use limits::Limits;
pub use metrics::NativeMetrics;
