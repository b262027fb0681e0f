//! JSON in statements: `SELECT JSON`, `INSERT JSON`, `to_json` and `from_json`.
//!
//! `parse` reads a text as Jackson does, `value` makes what was read a value of a type. How values print is the types'
//! own (`helenus_model::types::write_json`).

mod parse;
mod value;

pub(crate) use parse::{Json, ParseError, parse};
pub(crate) use value::{Mismatch, fold_case, from_json};
