//! CQL 2 (the dialect of Cassandra 0.8 to 1.2), over column families.
//!
//! Column names and values are words or texts that the comparator and the validators parse. The row key is named `KEY`,
//! unless the family has another name for it. Source: `org.apache.cassandra.cql` of Cassandra 2.1.

mod ast;
mod calls;
mod lexer;
mod modify;
mod parser;
mod schema;
mod select;
mod subject;
mod term;

pub(crate) use subject::subject;
