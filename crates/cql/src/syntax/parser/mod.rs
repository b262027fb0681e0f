//! Tokens to statements, by recursive descent. One file a family of statements.
//!
//! The parser looks ahead at most a few tokens, except where Cassandra's grammar itself tries one reading and falls back
//! to another: JSON and DISTINCT, which are also column names, and `(type)value` in a SELECT. Those attempts never
//! repeat work inside each other more than once a level, so time stays polynomial and in practice linear.

mod access;
mod create;
mod cursor;
mod describe;
mod follow;
mod modify;
mod names;
mod property;
mod relation;
mod routine;
mod select;
mod selectable;
mod statement;
mod table;
mod term;
mod types;

pub use cursor::DEPTH_MAX;
pub(super) use names::RESERVED_TYPE_NAMES;
pub(crate) use statement::parse_within;
pub use statement::{parse, parse_type};
