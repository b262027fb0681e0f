//! The results of runs: `run_result` has those of one run as `--json` writes them, `files` reads and writes files of
//! one or several runs, `table` prints them for people, `page` for a browser, and `compare` prints two files side by
//! side.

mod compare;
mod files;
mod page;
mod run_result;
mod table;

pub(super) use compare::compare;
pub(super) use files::{Results, ended, write_files};
pub(super) use run_result::{
    ClientUse, Errors, FORMAT, Latency, Paced, RunResult, Second, ServerFigures, StatementFigures, buckets,
    spectrum,
};
pub(super) use table::{micros, side_by_side, table};
