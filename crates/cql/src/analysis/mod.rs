//! What a statement means: names resolved against a schema, terms typed, bind markers described.
//!
//! Nothing here runs anything. What comes out are the plans of `crate::plan`.

mod assignment;
mod data_type;
mod literal;
mod names;
mod receiver;
mod term;
mod term_text;
mod values;

pub use assignment::{exact_type, test_assignment};
pub use data_type::resolve_type;
pub use names::{Scope, undefined_column};
pub use receiver::{Markers, Receiver};
pub use term::Term;
pub use term_text::term_text;
pub use values::{Bindings, Bound, BoundValues};
