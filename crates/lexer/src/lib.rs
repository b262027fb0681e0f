//! Splits the text of a CQL statement into tokens, by the rules of Cassandra's `Lexer.g`.
//!
//! `cql` parses statements from these tokens. `gateway` looks at a statement's first words and passes the text on to a node, which splits it
//! by the same rules: two lexers that disagree about a comment would let a client hide a statement from the gateway.

mod keyword;
pub mod lexer;
pub mod token;
