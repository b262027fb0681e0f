//! The selectors of a SELECT: typed, named, and ready to be evaluated on rows.
//!
//! `source` is the location of a column in a row, `selected` the expression of an output column. `node` resolves the
//! columns and functions of selectables, `typing` types them and makes the expressions, `statics` checks for static
//! columns only, `group` adds GROUP BY, `mask` the masks of columns, `result` makes the metadata for drivers.

mod group;
mod mask;
mod node;
mod result;
mod selected;
mod source;
mod statics;
mod typing;

pub(crate) use group::{GroupBy, GroupedBy};
pub(crate) use mask::{OfType, mask_arguments};
pub(crate) use node::Finder;
pub(crate) use result::result_columns;
pub(crate) use selected::{RowValue, Selected, Selection, TermUse, TimePath};
pub(crate) use source::{Shape, Source};
