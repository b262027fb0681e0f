//! The HTTP port: `/metrics`, `/health` and `/ready`, for monitoring, and `/changes`, the feed of changes.
//!
//! `serve` answers requests on its own thread, and `connections` knows which connection makes room for others; `hosts`
//! checks the names of hosts in requests, and `logins` the names and passwords of roles. `body` keeps answers on the memory account,
//! and `moving` closes a connection whose reader takes nothing. `state` holds the parts of the server that answers come from, and is filled while the server starts;
//! `health` judges them, `changes` streams the changes of a table. `metrics` collects the metrics at each scrape, and `exposition` formats them for Prometheus;
//! nothing is kept or computed between scrapes.

mod body;
mod changes;
mod connections;
mod exposition;
mod health;
mod hosts;
mod logins;
mod metrics;
mod moving;
mod serve;
mod state;

pub use serve::{HttpLimits, HttpServer};
pub use state::{HttpState, Watched};
