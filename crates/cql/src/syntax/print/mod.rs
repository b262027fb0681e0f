//! Trees to canonical CQL: words in capitals, names as they count (quoted unless every reader takes them as they
//! are), one space between, the shortest form where several say the same. `parse(print(tree))` is the tree again.

mod access;
mod modify;
mod printer;
mod relation;
mod schema;
mod select;
mod statement;
mod term;
mod words;

pub use printer::{print, print_term, print_type};
pub(super) use words::{term_in_words, type_in_words};
