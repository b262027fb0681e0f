//! What stands behind SELECT: typed, named, and ready to be taken from rows.
//!
//! `source` says where in a row a column is, `selected` what an output column is made of, `typing` turns selectables
//! into these, `result` describes the outcome to drivers.

mod result;
mod selected;
mod source;
mod typing;

pub(crate) use result::result_columns;
pub(crate) use selected::{Leaf, Selected, Selection};
pub(crate) use source::{Shape, Source};
pub(crate) use typing::columns_of_wildcard;
