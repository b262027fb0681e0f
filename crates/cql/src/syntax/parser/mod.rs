//! Parses tokens to statements by recursive descent. One file for each group of statements.
//!
//! The parser looks ahead at most a few tokens, except where Cassandra's grammar itself tries one alternative and falls
//! back to another: JSON and DISTINCT, which can also be column names, and `(type)value` in a SELECT. Nested attempts
//! repeat work at most once for each level, so parsing takes polynomial time, and linear time in practice.

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
pub(crate) use statement::parse_term;
pub(crate) use statement::parse_within;
pub use statement::{parse, parse_type};
