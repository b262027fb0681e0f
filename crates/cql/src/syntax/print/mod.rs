//! Prints trees as canonical CQL: keywords in capitals, names quoted unless they are read back unchanged without
//! quotes, one space between tokens, and the shortest of equivalent forms. `parse(print(tree))` gives the same tree.

mod access;
mod message;
mod modify;
mod printer;
mod relation;
mod schema;
mod select;
mod statement;
mod term;

pub(super) use message::{term_in_message, type_in_message};
pub use printer::{print, print_term, print_type};
