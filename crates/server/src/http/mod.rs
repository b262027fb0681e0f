//! The HTTP port: `/metrics`, `/health` and `/ready`, for monitoring.
//!
//! `serve` answers requests on its own thread and `hosts` checks the names in them. `state` holds the parts of the
//! server that answers come from, and is filled while the server starts; `health` judges them. `metrics` collects the
//! metrics at each scrape, and `exposition` formats them for Prometheus; nothing is kept or computed between scrapes.

mod exposition;
mod health;
mod hosts;
mod metrics;
mod serve;
mod state;

pub use serve::{HttpLimits, HttpServer};
pub use state::{HttpState, Watched};
