//! `helenus profile`: measures reads of wide rows from a hundred columns to ten million.
//!
//! The workloads and the layout of the results are those of two articles of 2011 on Cassandra 0.8: "Cassandra Query
//! Plans" (names and starts) and "Reversed Comparators" (the most recent columns). Comments call them the two articles.
//! `cases` defines the queries. A `subject` is the database measured: the engine in this process (`embedded`) or a
//! server over CQL or Thrift RPC (`remote`). `run` loads, warms up, measures, and checks every answer. `small_rows`
//! does the same with tables of growing size. `results` holds the outcome, which `table`, `page` and `compare` print.

mod admin_client;
mod answer;
mod cases;
mod compare;
mod embedded;
mod history;
mod options;
mod page;
mod progress;
mod remote;
mod results;
mod rows;
mod run;
mod small_rows;
mod subject;
mod table;

pub use admin_client::AdminClient;
pub use options::ProfileOptions;
pub use run::run;
