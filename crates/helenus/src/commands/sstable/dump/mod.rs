//! `helenus sstable dump`.
//!
//! `run` reads files and hands their elements to one of three writers: `line` for our own lines of JSON, `partition` over
//! `printer` for what sstabledump prints, `debug` for what it prints with -d.

mod debug;
mod line;
mod partition;
mod printer;
mod run;

pub use run::{DumpOptions, key_types, run};
