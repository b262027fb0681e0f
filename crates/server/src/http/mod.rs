//! The HTTP port: `/metrics`, `/health` and `/ready`, for monitoring, and `/changes`, the feed of changes.
//!
//! `serve` answers requests on its own thread, and `connections` knows which connection makes room for others; `hosts`
//! checks the names of hosts in requests, and `logins` the names and passwords of roles. `state` holds the parts of the server that answers come from, and is filled while the server starts;
//! `health` judges them, `changes` streams the changes of a table. `metrics` collects the metrics at each scrape, and `exposition` formats them for Prometheus;
//! nothing is kept or computed between scrapes.

mod changes;
mod connections;
mod exposition;
mod health;
mod hosts;
mod logins;
mod metrics;
mod serve;
mod state;

pub use serve::{HttpLimits, HttpServer};
pub use state::{HttpState, Watched};
