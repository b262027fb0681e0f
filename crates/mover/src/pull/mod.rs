//! `helenus pull`: copies tables of a cluster into the database here, each cell with its timestamp and TTL.
//!
//! `schema` makes keyspace, types, table and indexes (`layout` those that DESCRIBE cannot give), `parts` cuts what is wanted into SELECTs, `mask` changes values on the way, `run`
//! reads and writes. `puller` starts and stops it all; `messages` are what it is asked and answers.

mod layout;
mod mask;
mod messages;
mod parts;
mod puller;
mod run;
mod schema;

pub use messages::{PullOrder, PullReport, PullRequest, PulledTable};
pub use puller::Puller;
