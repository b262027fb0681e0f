//! `helenus shell`: runs typed statements, or those of a file, on a server, and shows the results. It has the commands,
//! options and output of cqlsh, and those backslash commands of psql that have a meaning here.
//!
//! `run` reads the options and chooses the source of statements, `statement` splits text into statements, `command`
//! parses the shell's own commands, `interpreter` runs these, `run_statement` runs the others over a `session`,
//! `agreement` waits for the cluster after schema changes, `output` shows results with the help of `value`, `explain`
//! and `describe` show the answers to EXPLAIN and DESCRIBE, `trace` reads traces. `edit` is the line editor, with
//! completion from the `catalog`. `rc` reads cqlsh's file of defaults. `copy` copies tables to files and back.

mod agreement;
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
mod run_statement;
mod session;
mod statement;
mod suggest;
mod trace;
mod value;

pub use options::ShellOptions;
pub use run::run;
