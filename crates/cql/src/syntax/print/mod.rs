//! Prints trees as canonical CQL: keywords in capitals, names quoted unless they are read back unchanged without
//! quotes, one space between tokens, and the shortest of equivalent forms. `parse(print(tree))` gives the same tree.

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
