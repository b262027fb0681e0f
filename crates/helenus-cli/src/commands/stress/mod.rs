//! `helenus stress`: loads a server, checks its answers, and reports speed and cost.
//!
//! It works with Helenus and with Cassandra, over the native protocol and Thrift RPC. Requests are encoded once and
//! patched in place, pipelined, and written many at a time. Answers are read in large pieces. So the client costs about
//! a microsecond of CPU for each operation, and the measured limit is the server. `bench/*.py` run it on several
//! servers in turn.
//!
//! A `workload` makes requests and checks answers. A `connection` keeps a fixed number of requests in flight;
//! `schedule` determines when they are sent. `thread_loop` is the loop of a thread over its connections; each second it
//! hands its counts (`measure`) to `collect`, which updates `live` and makes `results`. `interfaces` runs four tests
//! over every interface. `custom` runs the statements of a user's file.

mod collect;
mod connection;
pub(in crate::commands) mod content;
mod cost;
mod custom;
mod interface;
mod interfaces;
mod interrupt;
mod live;
mod loading;
mod mailings;
mod measure;
mod options;
mod permutation;
mod results;
mod run;
mod schedule;
mod single_rows;
mod statements;
mod thread_loop;
mod wide_rows;
mod workload;

pub use custom::FileError;
pub(in crate::commands) use loading::{WideLoad, load_wide};
pub(in crate::commands) use options::Order as WideOrder;
pub use options::StressOptions;
pub use run::run;
pub(in crate::commands) use wide_rows::create_table as create_wide_table;
