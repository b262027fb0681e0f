//! What stands behind SELECT: typed, named, and ready to be taken from rows.
//!
//! `source` says where in a row a column is, `selected` what an output column is made of. `node` finds the columns and
//! functions of selectables, `typing` types them and turns them into these, `statics` says whether they are of static columns
//! alone, `group` adds GROUP BY, `result` describes the outcome to drivers.

mod group;
mod node;
mod result;
mod selected;
mod source;
mod statics;
mod typing;

pub(crate) use group::GroupBy;
pub(crate) use result::result_columns;
pub(crate) use selected::{Leaf, Selected, Selection, TermUse, TimePath};
pub(crate) use source::{Shape, Source};
