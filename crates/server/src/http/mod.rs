//! The HTTP port: `/metrics`, `/health` and `/ready`, for whoever watches servers.
//!
//! `serve` answers requests on a thread of its own; `state` is what it answers from, filled as the server starts; `health`
//! judges it, `hosts` says by which names it may be asked. `metrics` gathers figures when somebody scrapes, and `exposition` writes them as Prometheus reads them: nothing
//! is kept or computed between scrapes.

mod exposition;
mod health;
mod hosts;
mod metrics;
mod serve;
mod state;

pub use serve::{HttpLimits, HttpServer};
pub use state::{HttpState, Watched};
