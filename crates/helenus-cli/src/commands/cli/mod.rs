//! `helenus cli`: runs statements of `cassandra-cli` through the Thrift RPC interface.
//!
//! The statements of a script end with `;`. As in `cassandra-cli`, values are interpreted by the comparator and the
//! validators of the column family, and answers are printed in its words. `run` is the loop over a script. `lexer` and
//! `parser` read statements into the types of `ast`, `session` keeps the state of the client, `schema` and `data` run
//! the statements, `values` converts values, `describe` prints definitions.

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
