//! COPY: writes a table to files, or files to a table, over several connections.
//!
//! `options` parses the statement, `dialect` reads and writes CSV, `json` finds the objects of a JSON file, `input`
//! cuts files into chunks of complete records, `import` and its `worker`s send them, `resend` decides what is sent again, `export` reads ranges of tokens
//! and writes them, `progress` reports the rate.

mod dialect;
mod export;
mod glob;
mod import;
mod input;
mod json;
mod options;
mod progress;
mod resend;
mod run;
mod worker;

pub use options::{HELP, OPTION_NAMES};
pub use run::{CopyContext, run};
