//! The syntax of CQL 3.4.7, as Cassandra 5.0.9 reads it, and of `EXPLAIN`, which is our own.
//!
//! [`parse`] turns a text into a [`ast::Statement`] that borrows from it; [`print()`] turns it back into canonical CQL.
//! Nothing here knows a schema: names are not resolved, types not checked. What Cassandra's own parser refuses beyond
//! its grammar (a column set twice, a property given twice) is refused here, with the same text.
//!
//! `lexer` cuts bytes into `token`s, `parser` is a recursive descent over them that never goes deeper than
//! [`DEPTH_MAX`], `error` tells where and why a text is refused.

pub mod ast;
mod error;
mod keyword;
mod lexer;
mod parser;
mod print;
mod redact;
mod script;
#[cfg(test)]
mod tests;
mod token;

pub use error::SyntaxError;
pub(crate) use parser::parse_within;
pub use parser::{DEPTH_MAX, parse, parse_type};
pub use print::{print, print_term, print_type};
pub use redact::redact;
pub use script::split_statements;
