//! The first dialect of CQL (2.0, as Cassandra 0.8 to 1.2 had it), over column families.
//!
//! Column names and values are words or texts that the comparator and the validators read; the row key has a name, `KEY`
//! unless the family gives it another. Source: `org.apache.cassandra.cql` of Cassandra 2.1.

mod ast;
mod calls;
mod lexer;
mod modify;
mod parser;
mod schema;
mod select;
mod term;
