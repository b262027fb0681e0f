//! What runs come to: `figures` is a run's, as `--json` writes it, `files` are the files of several, `table` is for people,
//! `page` for a browser, `compare` sets two files side by side.

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
