//! The results of runs: `figures` are those of a run as `--json` writes them, `files` reads and writes files of one or
//! several runs, `table` prints them for people, `page` for a browser, and `compare` prints two files side by side.

mod compare;
mod figures;
mod files;
mod page;
mod table;

pub(super) use compare::compare;
pub(super) use figures::{
    ClientUse, Errors, FORMAT, Figures, Latency, Paced, Second, ServerFigures, StatementFigures, buckets,
    spectrum,
};
pub(super) use files::{Results, ended, write_files};
pub(super) use table::{micros, side_by_side, table};
