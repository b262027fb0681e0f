//! The CQL native protocol: takes frames from sockets, calls the `Backend`, and sends frames back.
//!
//! `accept` accepts connections and `refused` answers those over the limits (`limits`); `event_loops` runs the event
//! loops. `connection` is the task of one client, with its time limits in `deadlines` and its protocol state in
//! `session`; other threads reach it through its `mailbox`. `hand_over` makes all connections wait, and gives them to a gateway. `requests` handles each request, and `in_flight` counts the
//! bytes of those that are not answered. `answer` translates a request for the backend and the outcome for the client,
//! with the prepared statements of `statement_cache`; `disk_pool` runs requests that must wait (`job`), and the login pool those that log in (`login_job`). `rows` encodes rows
//! (`columns` their description), `audited` writes requests to the audit log, `errors` encodes errors, `output` holds what is not yet sent. `clients` lists the
//! connected clients, `client_history` those seen so far, `metrics` has the counters. `statement_text` and
//! `trace_parameters` word a request for the log and for traces.

mod accept;
mod answer;
mod audited;
mod client_history;
mod clients;
mod columns;
mod connection;
mod deadlines;
mod disk_pool;
mod errors;
mod event_loops;
mod hand_over;
mod in_flight;
mod job;
mod job_queue;
mod limits;
mod login_job;
mod mailbox;
mod metrics;
mod output;
mod own_clients;
mod refused;
mod requests;
mod room_queue;
mod rows;
mod session;
mod statement_cache;
mod statement_text;
mod trace_parameters;

pub use accept::Listeners;
pub use event_loops::NativeServer;
pub(crate) use event_loops::bind;
pub use hand_over::{NotAtRest, Taker};
pub(crate) use in_flight::{ConnectionShare, InFlightBytes, LITTLE_BYTES, PartialFrame, Reservation};
pub use limits::Limits;
pub use metrics::NativeMetrics;
pub use own_clients::OwnClients;
