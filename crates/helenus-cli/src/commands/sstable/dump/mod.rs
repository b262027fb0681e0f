//! `helenus sstable dump`.
//!
//! `run` reads files and passes their elements to one of three writers: `line` writes Helenus's own lines of JSON,
//! `partition` with `printer` writes the output of sstabledump, `debug` that of sstabledump -d.

mod debug;
mod line;
mod partition;
mod printer;
mod run;

pub use run::{DumpOptions, key_types, run};
