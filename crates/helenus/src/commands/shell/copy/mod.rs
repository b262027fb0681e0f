//! COPY: a table to files, and files into a table, over several connections.
//!
//! `options` reads the statement, `dialect` is CSV (and `json` finds the objects of a JSON file), `input` cuts files into
//! chunks of whole records, `import` and its `worker`s send them, `export` reads ranges of tokens and writes them,
//! `progress` says how far it is.

mod dialect;
mod export;
mod glob;
mod import;
mod input;
mod json;
mod options;
mod progress;
mod run;
mod worker;

pub use options::{HELP, OPTION_NAMES};
pub use run::{Place, run};
