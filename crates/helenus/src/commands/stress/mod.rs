//! `helenus stress`: one raw client of the native protocol that loads a server, checks what it answers, and says how
//! fast and at what cost.
//!
//! It speaks to Helenus and to Cassandra alike. Requests are encoded once and patched in place, pipelined, written many
//! at a time; answers are read in large pieces, so that the client costs about a microsecond of CPU an operation and
//! what is measured is the server. `bench/compare.py` runs it on both in turn.

mod content;
mod cost;
mod drive;
mod lane;
mod measure;
mod options;
mod report;
mod run;
mod single_rows;
mod wide_rows;
mod workload;

pub use options::StressOptions;
pub use run::run;
