//! `helenus stress`: loads a server, checks what it answers, and says how fast and at what cost.
//!
//! It speaks to Helenus and to Cassandra alike, over the native protocol and the old RPC interface. Requests are encoded once
//! and patched in place, pipelined, written many at a time; answers are read in large pieces, so that the client costs about
//! a microsecond of CPU an operation and what is measured is the server. `bench/*.py` run it on several servers in turn.
//!
//! A `workload` makes requests and judges answers; a `lane` is a connection with its requests in flight, which `schedule`
//! lets leave; `drive` is the loop of a thread over its lanes and hands over each second what it has counted (`measure`) to
//! `collect`, which tells `live` and makes `results`. `interfaces` makes four tests over every interface; `custom` has the
//! statements of a user's file.

mod collect;
pub(in crate::commands) mod content;
mod cost;
mod custom;
mod drive;
mod interface;
mod interfaces;
mod interrupt;
mod lane;
mod live;
mod loading;
mod mailings;
mod measure;
mod options;
mod results;
mod run;
mod scatter;
mod schedule;
mod single_rows;
mod statements;
mod wide_rows;
mod workload;

pub use custom::FileError;
pub(in crate::commands) use loading::{WideLoad, load_wide};
pub(in crate::commands) use options::Order as WideOrder;
pub use options::StressOptions;
pub use run::run;
pub(in crate::commands) use wide_rows::create_table as create_wide_table;
