//! `helenus stress`: one raw client of the native protocol that loads a server, checks what it answers, and says how
//! fast and at what cost.
//!
//! It speaks to Helenus and to Cassandra alike. Requests are encoded once and patched in place, pipelined, written many
//! at a time; answers are read in large pieces, so that the client costs about a microsecond of CPU an operation and
//! what is measured is the server. `bench/compare.py` runs it on both in turn.

pub(in crate::commands) mod content;
mod cost;
mod drive;
mod lane;
mod loading;
mod mailings;
mod measure;
mod options;
mod report;
mod run;
mod single_rows;
mod wide_rows;
mod workload;

pub(in crate::commands) use loading::{WideLoad, load_wide};
pub(in crate::commands) use options::Order as WideOrder;
pub use options::StressOptions;
pub use run::run;
pub(in crate::commands) use wide_rows::create_table as create_wide_table;
