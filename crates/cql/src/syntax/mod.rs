//! The syntax of CQL 3.4.7, as Cassandra 5.0.9 accepts it, and of `EXPLAIN`, which is an extension.
//!
//! [`parse`] turns a text into an [`ast::Statement`] that borrows from it; [`print()`] turns it back into canonical
//! CQL. This module does not use the schema: names are not resolved, types not checked. What Cassandra's own parser
//! rejects beyond its grammar (a column set twice, a property given twice) is rejected here, with the same text.
//!
//! `helenus_lexer` splits bytes into tokens. `parser` is a recursive-descent parser whose depth is limited to [`DEPTH_MAX`].
//! `error` describes where and why a text is rejected.

pub mod ast;
mod error;
mod parser;
mod print;
mod redact;
mod script;
#[cfg(test)]
mod tests;

use helenus_lexer::{lexer, token};

pub use crate::error::SyntaxError;
pub use parser::{DEPTH_MAX, parse, parse_type};
pub(crate) use parser::{parse_term, parse_within};
pub use print::{print, print_term, print_type};
pub use redact::{
    audited, cut_at_password, has_secret_values, obscured_message, shown, shown_message,
    shown_without_values, without_literals, without_passwords,
};
pub(crate) use redact::{end_of_batch, is_access_table};
pub use script::split_statements;
