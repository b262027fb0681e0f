//! `helenus cli`: the statements of the old command-line client, over the old RPC interface.
//!
//! A script's statements end with `;`. What is written is read by the comparator and the validators of the column family,
//! as `cassandra-cli` did, and the answers are printed in its words. `lexer` and `parser` read, `session` keeps what is
//! known of the server, `schema` and `data` run the statements.

mod ast;
mod data;
mod describe;
mod lexer;
mod parser;
mod run;
mod schema;
mod session;
mod values;

pub use run::{CliOptions, run};
