//! JSON in statements: `SELECT JSON`, `INSERT JSON`, `to_json` and `from_json`.
//!
//! `parse` reads a text into a `tree` as Jackson does, or returns an `error`. `value` converts the tree to a value of a
//! type. Printing values as JSON is part of the types (`helenus_model::types::write_json`).

mod error;
mod parse;
mod tree;
mod value;

pub(crate) use error::{ParseError, Unread};
pub(crate) use parse::parse;
pub(crate) use tree::{Json, shown};
pub(crate) use value::{JsonReading, Mismatch, fold_case, from_json, room_to_fold};
