//! `helenus profile`: what reads of wide rows cost, as the rows grow from a hundred columns to ten million.
//!
//! The workloads and the table of figures are those of two old texts on Cassandra 0.8: "Cassandra Query Plans" (names
//! and starts) and "Reversed Comparators" (the most recent columns). `cases` has the queries, `subject` is what they are
//! asked: the engine in this process (`embedded`) or a server, over CQL or the old RPC interface (`remote`). `run` loads, warms up, measures and
//! checks every answer; `small_rows` does the same over the size of a table; `results` is what comes out, for `table`, `page` and `compare`.

mod answer;
mod cases;
mod compare;
mod door;
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

pub use door::Door;
pub use options::ProfileOptions;
pub use run::run;
