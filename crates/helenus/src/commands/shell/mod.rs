//! `helenus shell`: statements typed, or read from files, run on a server, and their results shown. For those who come
//! from cqlsh: its commands, its options, its output; and the backslash commands of psql that have a meaning here.
//!
//! `run` reads the flags and chooses where statements come from, `statement` takes a text apart into statements, `command`
//! reads the shell's own, `interpreter` obeys these, `asking` runs the others over `session`, `agreement` waits for the cluster after changes of the schema, `output` shows what came back with
//! `value`. `edit` is the line editor with its completion from the `catalog`, `rc` the file of defaults, cqlsh's. `copy` moves tables to files and back.

mod agreement;
mod asking;
mod catalog;
mod command;
mod copy;
mod describe;
mod edit;
mod explain;
mod help;
mod interpreter;
mod options;
mod output;
mod rc;
mod refusal;
mod run;
mod session;
mod statement;
mod trace;
mod value;

pub use options::ShellOptions;
pub use run::run;
