//! JSON in statements: `SELECT JSON`, `INSERT JSON`, `to_json` and `from_json`.
//!
//! `parse` reads a text into a `tree` as Jackson does, or says with its `error` why it cannot; `value` makes what was read a
//! value of a type. How values print is the types' own (`helenus_model::types::write_json`).

mod error;
mod parse;
mod tree;
mod value;

pub(crate) use error::ParseError;
pub(crate) use parse::parse;
pub(crate) use tree::Json;
pub(crate) use value::{Mismatch, fold_case, from_json};
