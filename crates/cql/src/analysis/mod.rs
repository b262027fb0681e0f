//! Analysis of statements: resolves names against a schema, types terms, describes bind markers.
//!
//! Nothing here executes a statement. The results are parts of the plans, which are above.

mod assignment;
mod data_type;
mod durations;
mod json_row;
mod literal;
mod markers;
pub(crate) mod restrictions;
pub(crate) mod selection;
mod term;
mod term_text;
mod values;

pub(crate) use crate::functions::{assignable, compatible};
pub(crate) use crate::scope::existing_column;
pub use crate::scope::{Memo, Receiver, Scope, undefined_column};
pub(crate) use assignment::{Operand, combine, common_type, compatible_type};
pub use assignment::{exact_type, test_assignment};
pub use data_type::resolve_type;
pub(crate) use data_type::{Resolver, check_class, native_type, resolve_type_in};
pub(crate) use durations::{check_slice_type, references_duration};
pub use json_row::JsonRow;
pub(crate) use json_row::json_columns;
pub use markers::Markers;
pub(crate) use selection::result_columns;
pub use term::Term;
pub use term_text::term_text;
pub use values::{Bindings, Bound, BoundValues};
